// Runs the built programs as a user would.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

namespace orrery::e2e {

struct Result {
  int status = 0;  ///< exit status, 128 + signal if killed
  std::string out;
  std::string err;
};

/// `orrery ARGUMENTS`, quiet environment, no standard input.
Result orrery(const std::vector<std::string>& arguments);
Result run(const std::vector<std::string>& argv);

/// The same in the background.
class Background {
 public:
  explicit Background(const std::vector<std::string>& arguments);
  ~Background();
  void signal(int number);
  /// Exit status, as in Result; fails the test and kills after `seconds`.
  int wait(int seconds);
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
};

/// A folder that is removed at the end.
class Folder {
 public:
  Folder();
  ~Folder();
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::string read(const std::string& path);
/// A file of configs/.
std::string config(const std::string& name);
/// Processes that have something below `folder` open, work there or name it on their command line.
int processes_in(const std::string& folder);
/// Rows of a CSV file as maps from its header.
std::vector<std::map<std::string, std::string>> csv(const std::string& path);

/// What a run of configs/faults.yaml must have left in `directory`.
void expect_faults_took_place(const std::string& directory);

}  // namespace orrery::e2e
