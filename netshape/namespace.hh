// Network namespaces as values: made, held and entered through descriptors, without a name.
#pragma once

#include <string>

#include "base/fd.hh"

namespace orrery::netshape {

/// While it lives, the calling thread is in another network namespace; other threads are not moved.
class InNamespace {
 public:
  /// Enters an existing one.
  explicit InNamespace(int descriptor);
  /// Makes a new one and enters it. MachineError when this process may not.
  static InNamespace make();
  InNamespace(InNamespace&&) noexcept = default;
  InNamespace& operator=(InNamespace&&) = delete;
  /// Ends the program if the way back is barred: to go on in a wrong namespace would be worse.
  ~InNamespace();

  /// A descriptor of the namespace that the thread is in.
  static FileDescriptor current();

 private:
  struct MakeTag {};
  explicit InNamespace(MakeTag);
  FileDescriptor before_;
};

/// Writes a file below /proc/sys/net of the calling thread's namespace. False when the kernel has
/// no such file.
bool write_setting(const std::string& name, const std::string& value);

}  // namespace orrery::netshape
