// How an ordinary user gets to make network namespaces and devices: inside a user namespace of his
// own, where he is root and nothing of the host's is his.
#pragma once

namespace orrery::netshape {

/// Whether this process may make network namespaces as it is.
bool may_make_namespaces();

/// If it may not, moves this process, which must have one thread, into a new user namespace and an
/// empty network namespace of that, where it is root and may. True: it moved; the death signal of
/// its parent (PR_SET_PDEATHSIG) is then forgotten by the kernel, and must be set again. Throws
/// MachineError where that is not allowed.
bool enter_user_namespace();

}  // namespace orrery::netshape
