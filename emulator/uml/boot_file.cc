#include "emulator/uml/boot_file.hh"

#include <sstream>

#include "base/error.hh"

namespace orrery::uml {
namespace {

void put(std::string& text, const char* key, const std::string& value) {
  if (value.find('\n') != std::string::npos)
    throw ValueError("a line break in '" + value + "' cannot be passed into the guest; remove it");
  text += std::string(key) + " " + value + "\n";
}

Folder parse_folder(const std::string& value) {
  const std::size_t space = value.find(' ');
  if (space == std::string::npos)
    throw ValueError("'folder " + value + "' is not a boot line; write folder NAME HOST");
  return {value.substr(0, space), value.substr(space + 1)};
}

}  // namespace

// procfs has this empty folder on every machine, and nobody's files lie below it.
std::string folder_path(const std::string& name) { return "/proc/fs/orrery/" + name; }

std::string to_text(const BootFile& boot) {
  std::string text;
  for (const std::string& dir : boot.writable) put(text, "write", dir);
  for (const Folder& folder : boot.folders) put(text, "folder", folder.name + " " + folder.host);
  for (const std::string& entry : boot.environment) put(text, "env", entry);
  if (!boot.cwd.empty()) put(text, "cwd", boot.cwd);
  if (!boot.status.empty()) put(text, "status", boot.status);
  for (const std::string& argument : boot.argv) put(text, "arg", argument);
  return text;
}

BootFile parse_boot_file(const std::string& text) {
  BootFile boot;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t space = line.find(' ');
    const std::string key = line.substr(0, space);
    const std::string value = space == std::string::npos ? "" : line.substr(space + 1);
    if (key == "write")
      boot.writable.push_back(value);
    else if (key == "folder")
      boot.folders.push_back(parse_folder(value));
    else if (key == "env")
      boot.environment.push_back(value);
    else if (key == "cwd")
      boot.cwd = value;
    else if (key == "status")
      boot.status = value;
    else if (key == "arg")
      boot.argv.push_back(value);
    else
      throw ValueError("'" + line +
                       "' is not a boot line; write write, folder, env, cwd, status or arg");
  }
  return boot;
}

}  // namespace orrery::uml
