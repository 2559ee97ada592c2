// What this machine's libtorch is, and how fast.
#pragma once

#include <string>

namespace orrery {

/// Floating-point operations a second of a 512 × 512 × 512 float32 matrix product on one thread:
/// median of several. Near 5e9 where libtorch fell back to the reference BLAS, 20 times that with
/// OpenBLAS on a CPU of this decade.
double measure_gemm_flops();

/// libtorch's version and its BLAS with the kernels it chose, e.g. "libtorch 1.13.1, OpenBLAS
/// 0.3.21 Zen". Two processes with different answers may compute different last digits.
std::string library_version();

/// One thread for libtorch and for its BLAS, from now on.
void use_one_thread();

/// CPU time of the calling thread in nanoseconds: it does not count what others do to this host.
long long thread_cpu_ns();

}  // namespace orrery
