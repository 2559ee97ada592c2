// Kernels in plain C++, small and slow: for tests of strategies without libtorch, and to compare
// libtorch's with. Linear, tanh, ReLU and flatten layers.
#pragma once

#include <memory>

#include "agents/kernels.hh"

namespace orrery::test {

/// Throws std::logic_error for a layer that it does not know.
std::unique_ptr<Kernels> make_reference_kernels();

}  // namespace orrery::test
