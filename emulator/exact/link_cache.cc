#include "emulator/exact/link_cache.hh"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <vector>

#include "base/error.hh"
#include "base/fd.hh"
#include "base/hash.hh"
#include "emulator/engine/host.hh"
#include "proto/record_stream.hh"

namespace orrery::emulator {
namespace {

namespace fs = std::filesystem;

// A program that was built anew is another one, whatever its name.
std::string identity(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) throw_errno("look at " + path);
  return path + " " + std::to_string(info.st_size) + " " + std::to_string(info.st_mtim.tv_sec) +
         "." + std::to_string(info.st_mtim.tv_nsec) + "\n";
}

// Empty if the file is missing, cut or no stream of records.
std::vector<wire::Record> read_records(const std::string& path) {
  std::vector<wire::Record> records;
  try {
    RecordFileReader reader(path);
    reader.poll([&](const wire::Record& record) { records.push_back(record); });
    if (reader.incomplete_bytes() > 0) records.clear();
  } catch (const Error&) {
    records.clear();
  }
  return records;
}

bool is_as_asked(const wire::Record& record) {
  return record.has_link_check() &&
         (record.link_check().verdict() == "ok" || record.link_check().verdict() == "none asked" ||
          record.link_check().verdict().starts_with("not measured"));
}

}  // namespace

LinkCache::LinkCache(const std::string& folder, const netshape::Plan& plan,
                     const std::string& kernel)
    : folder_(folder) {
  const std::string what = netshape::to_json(plan) + identity(kernel) +
                           identity(sibling_program("orrery-controller")) +
                           identity(sibling_program("orrery-init"));
  // Two hashes of 64 bits: one text's plan must not be taken for another's.
  path_ = folder + "/" + hexadecimal(hash_name(what)) +
          hexadecimal(hash_name(what, hash_name("links"))) + ".bin";
}

bool LinkCache::load(const std::string& path) const {
  std::vector<wire::Record> records = read_records(path_);
  if (records.empty()) return false;
  RecordFileWriter out(path);
  for (wire::Record& record : records) {
    record.mutable_link_check()->set_earlier(true);
    out.write(record);
  }
  out.flush();
  return true;
}

void LinkCache::store(const std::string& path) const {
  const std::vector<wire::Record> records = read_records(path);
  if (records.empty()) return;
  for (const wire::Record& record : records)
    if (!is_as_asked(record)) return;
  // In one step, for another run may store the same now.
  const std::string unfinished = path_ + "." + std::to_string(::getpid());
  std::error_code failed;
  fs::create_directories(folder_, failed);
  fs::copy_file(path, unfinished, fs::copy_options::overwrite_existing, failed);
  if (!failed) fs::rename(unfinished, path_, failed);
  if (failed) fs::remove(unfinished, failed);
}

}  // namespace orrery::emulator
