#include "tests/e2e/program.hh"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

namespace orrery::e2e {
namespace {

namespace fs = std::filesystem;

pid_t start(const std::vector<std::string>& argv, const std::string& out, const std::string& err) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  std::vector<char*> pointers;
  for (const std::string& argument : argv) pointers.push_back(const_cast<char*>(argument.c_str()));
  pointers.push_back(nullptr);
  ::dup2(::open("/dev/null", O_RDONLY), 0);
  ::dup2(::open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644), 1);
  ::dup2(::open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644), 2);
  ::execvp(pointers[0], pointers.data());
  ::_exit(127);
}

int status_of(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

Result run(const std::vector<std::string>& argv) {
  const Folder folder;
  const pid_t child = start(argv, folder / "out", folder / "err");
  int status = 0;
  ::waitpid(child, &status, 0);
  return {status_of(status), read(folder / "out"), read(folder / "err")};
}

Result orrery(const std::vector<std::string>& arguments) {
  std::vector<std::string> argv{ORRERY_PROGRAM};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  return run(argv);
}

Background::Background(const std::vector<std::string>& arguments) {
  std::vector<std::string> argv{ORRERY_PROGRAM};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  pid_ = start(argv, "/dev/null", "/dev/null");
}

Background::~Background() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

void Background::signal(int number) { ::kill(pid_, number); }

int Background::wait(int seconds) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  int status = 0;
  while (::waitpid(pid_, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > limit) {
      ADD_FAILURE() << "still running after " << seconds << " s";
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, &status, 0);
      break;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  pid_ = -1;
  return status_of(status);
}

Folder::Folder() {
  std::string pattern = fs::temp_directory_path() / "orrery-e2e-XXXXXX";
  path_ = ::mkdtemp(pattern.data());
}

Folder::~Folder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

std::string read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string config(const std::string& name) { return std::string(ORRERY_CONFIGS) + "/" + name; }

namespace {

bool lies_in(const fs::path& link, const std::string& folder) {
  std::error_code gone;
  return fs::read_symlink(link, gone).string().starts_with(folder);
}

bool uses(const fs::path& process, const std::string& folder) {
  if (read(process / "cmdline").find(folder) != std::string::npos) return true;
  if (lies_in(process / "cwd", folder)) return true;
  std::error_code gone;
  for (const auto& file : fs::directory_iterator(process / "fd", gone))
    if (lies_in(file.path(), folder)) return true;
  return false;
}

}  // namespace

int processes_in(const std::string& folder) {
  int count = 0;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    if (std::stoi(name) != ::getpid() && uses(entry.path(), folder)) ++count;
  }
  return count;
}

std::vector<std::map<std::string, std::string>> csv(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::map<std::string, std::string>> rows;
  std::vector<std::string> header;
  for (std::string line; std::getline(file, line);) {
    std::vector<std::string> cells;
    std::istringstream parts(line);
    for (std::string cell; std::getline(parts, cell, ',');) cells.push_back(cell);
    if (header.empty()) {
      header = cells;
      continue;
    }
    auto& row = rows.emplace_back();
    for (std::size_t i = 0; i < header.size() && i < cells.size(); ++i) row[header[i]] = cells[i];
  }
  return rows;
}

void expect_faults_took_place(const std::string& directory) {
  const std::string events = read(directory + "/events.jsonl");
  for (const char* name : {"nap", "cut", "crash", "comeback"})
    EXPECT_NE(events.find(name), std::string::npos) << name;
  // The restarted worker takes part again.
  bool again = false;
  for (const auto& row : csv(directory + "/steps.csv"))
    again |= row.at("phase") == "update" && row.at("worker") == "3" && std::stod(row.at("t")) > 12;
  EXPECT_TRUE(again);
}

}  // namespace orrery::e2e
