#include "agents/torch/calibrate.hh"

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/mm_cpu_dispatch.h>
#include <dlfcn.h>
#include <torch/version.h>

#include <algorithm>
#include <array>
#include <ctime>

namespace orrery {
namespace {

template <typename Function>
Function* find_symbol(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_DEFAULT, name));
}

}  // namespace

long long thread_cpu_ns() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<long long>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

void use_one_thread() {
  at::set_num_threads(1);
  // OpenBLAS has a pool of its own, which libtorch does not know of. This stops its use; that it is
  // not even started takes OPENBLAS_NUM_THREADS=1 before the process begins.
  if (auto* set_threads = find_symbol<void(int)>("openblas_set_num_threads")) set_threads(1);
}

double measure_gemm_flops() {
  use_one_thread();
  constexpr std::int64_t edge = 512;
  const at::Tensor a = at::full({edge, edge}, 0.5, at::kFloat);
  const at::Tensor b = at::full({edge, edge}, 0.25, at::kFloat);
  at::Tensor c = at::empty({edge, edge}, at::kFloat);
  at::cpu::mm_out(c, a, b);  // faults the pages in and wakes the vector units
  std::array<double, 9> times{};
  for (double& time : times) {
    const long long begin = thread_cpu_ns();
    at::cpu::mm_out(c, a, b);
    time = static_cast<double>(thread_cpu_ns() - begin) * 1e-9;
  }
  std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
  return 2.0 * edge * edge * edge / times[times.size() / 2];
}

std::string library_version() {
  std::string text = "libtorch " TORCH_VERSION;
  if (auto* config = find_symbol<char*()>("openblas_get_config")) {
    // "OpenBLAS 0.3.21 NO_AFFINITY USE64BITINT …": name and version are enough.
    const std::string whole = config();
    const std::size_t name_end = whole.find(' ');
    text += ", " + whole.substr(
                       0, name_end == std::string::npos ? name_end : whole.find(' ', name_end + 1));
    if (auto* core = find_symbol<char*()>("openblas_get_corename"))
      text += " " + std::string(core());
  } else {
    text += ", reference or unknown BLAS";
  }
  return text;
}

}  // namespace orrery
