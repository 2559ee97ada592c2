// What `orrery profile` measures: how long each kernel takes on this host, and where that is kept.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "agents/device.hh"
#include "agents/kernel.hh"

namespace orrery {

/// The measured kernels of one model with one library on one CPU.
struct Profile {
  std::string model;    ///< ModelSpec::name
  std::string library;  ///< e.g. "libtorch 1.13.1, OpenBLAS 0.3.21 Zen"
  std::string cpu;      ///< e.g. "AMD EPYC 7763 64-Core Processor"
  std::vector<ProfileCost::Entry> entries;

  /// 16 hexadecimal digits over everything in it: two runs with one hash charge the same times.
  std::string hash() const;
  /// The largest p95 / median of its kernels (1 if it has none): how far to trust it.
  double spread() const;
  std::shared_ptr<const ProfileCost> cost() const;
};

/// JSON, one kernel a line, ordered by key; exact: profile_from_json() gives back the same profile.
std::string to_json(const Profile& profile);
/// Throws Error that begins with `origin` (a path) and says what is wrong.
Profile profile_from_json(std::string_view text, const std::string& origin);

/// The name of the file that caches the profile of these kernels, e.g.
/// "mlp-196-24-10-tanh-0123456789abcdef.json". Neither the order nor a repetition of kernels
/// matters.
std::string profile_file_name(const ModelSpec& model, std::span<const KernelSpec> kernels,
                              const std::string& library, const std::string& cpu);

/// The processor's name as /proc/cpuinfo (or another file of its form) tells it.
std::string cpu_name(const std::string& cpuinfo = "/proc/cpuinfo");

/// Prepares the data of one kernel and returns the code to time.
using ProfiledKernel = std::function<std::function<void()>(const KernelSpec&)>;
/// Says what to run to measure an operation whose code agents/torch does not know (ND-CAO's
/// estimator), or knows less well. The latest registration of an operation holds.
void register_profiled(KernelOp op, ProfiledKernel kernel);
/// Empty if nothing was registered.
const ProfiledKernel& profiled_kernel(KernelOp op);

}  // namespace orrery
