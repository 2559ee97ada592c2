#include "agents/profile.hh"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "base/error.hh"
#include "base/fd.hh"
#include "base/philox.hh"

namespace orrery {
namespace {

constexpr int format_version = 1;

KernelOp parse_op(const std::string& text) {
  for (int i = 0; i <= static_cast<int>(KernelOp::message); ++i) {
    if (text == to_string(static_cast<KernelOp>(i))) return static_cast<KernelOp>(i);
  }
  throw Error("\"" + text + "\" is no operation of a kernel");
}

std::map<KernelOp, ProfiledKernel>& registry() {
  static std::map<KernelOp, ProfiledKernel> kernels;
  return kernels;
}

}  // namespace

std::string Profile::hash() const { return hexadecimal(hash_name(to_json(*this))); }

double Profile::spread() const {
  double largest = 1;
  for (const ProfileCost::Entry& entry : entries) {
    if (entry.median.ns <= 0) continue;
    largest =
        std::max(largest, static_cast<double>(entry.p95.ns) / static_cast<double>(entry.median.ns));
  }
  return largest;
}

std::shared_ptr<const ProfileCost> Profile::cost() const {
  return std::make_shared<ProfileCost>(entries);
}

std::string to_json(const Profile& profile) {
  using nlohmann::ordered_json;
  std::map<std::string, const ProfileCost::Entry*> by_key;
  for (const ProfileCost::Entry& entry : profile.entries) by_key[entry.kernel.key()] = &entry;

  std::ostringstream out;
  out << "{\n"
      << "  \"orrery_profile\": " << format_version << ",\n"
      << "  \"model\": " << ordered_json(profile.model).dump() << ",\n"
      << "  \"library\": " << ordered_json(profile.library).dump() << ",\n"
      << "  \"cpu\": " << ordered_json(profile.cpu).dump() << ",\n"
      << "  \"kernels\": [";
  const char* separator = "\n    ";
  for (const auto& [key, entry] : by_key) {
    const KernelSpec& kernel = entry->kernel;
    const ordered_json line = {
        {"kernel", key},          {"op", to_string(kernel.op)}, {"count", kernel.count},
        {"extra", kernel.extra},  {"first", kernel.first},      {"last", kernel.last},
        {"flops", kernel.flops},  {"bytes", kernel.bytes},      {"median_ns", entry->median.ns},
        {"p95_ns", entry->p95.ns}};
    out << separator << line.dump();
    separator = ",\n    ";
  }
  out << "\n  ]\n}\n";
  return out.str();
}

Profile profile_from_json(std::string_view text, const std::string& origin) {
  try {
    const nlohmann::json json = nlohmann::json::parse(text);
    if (json.at("orrery_profile") != format_version) {
      throw Error("is a profile of another version; version " + std::to_string(format_version) +
                  " is needed");
    }
    Profile profile;
    json.at("model").get_to(profile.model);
    json.at("library").get_to(profile.library);
    json.at("cpu").get_to(profile.cpu);
    for (const nlohmann::json& line : json.at("kernels")) {
      ProfileCost::Entry entry;
      entry.kernel.op = parse_op(line.at("op").get<std::string>());
      line.at("count").get_to(entry.kernel.count);
      line.at("extra").get_to(entry.kernel.extra);
      line.at("first").get_to(entry.kernel.first);
      line.at("last").get_to(entry.kernel.last);
      line.at("flops").get_to(entry.kernel.flops);
      line.at("bytes").get_to(entry.kernel.bytes);
      line.at("median_ns").get_to(entry.median.ns);
      line.at("p95_ns").get_to(entry.p95.ns);
      if (entry.median.ns < 0 || entry.p95.ns < entry.median.ns) {
        throw Error("kernel " + entry.kernel.key() +
                    " has a negative time or a p95 below its median");
      }
      profile.entries.push_back(std::move(entry));
    }
    return profile;
  } catch (const nlohmann::json::exception& error) {
    throw Error(origin + ": is no profile (" + error.what() + "); `orrery profile` writes one");
  } catch (const Error& error) {
    throw Error(origin + ": " + error.what());
  }
}

std::string profile_file_name(const ModelSpec& model, std::span<const KernelSpec> kernels,
                              const std::string& library, const std::string& cpu) {
  std::set<std::string> keys;
  for (const KernelSpec& kernel : kernels) keys.insert(kernel.key());
  std::string identity =
      std::to_string(format_version) + "\n" + model.name + "\n" + library + "\n" + cpu + "\n";
  for (const std::string& key : keys) identity += key + "\n";

  std::string readable = model.name.substr(0, 80);
  for (char& c : readable) {
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '.') c = '-';
  }
  return readable + "-" + hexadecimal(hash_name(identity)) + ".json";
}

std::string cpu_name(const std::string& cpuinfo) {
  std::istringstream lines(read_file(cpuinfo));
  for (std::string line; std::getline(lines, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown CPU";
}

void register_profiled(KernelOp op, ProfiledKernel kernel) { registry()[op] = std::move(kernel); }

const ProfiledKernel& profiled_kernel(KernelOp op) {
  static const ProfiledKernel none;
  const auto found = registry().find(op);
  return found == registry().end() ? none : found->second;
}

}  // namespace orrery
