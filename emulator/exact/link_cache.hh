// What earlier runs measured on their links, kept by plan: the time-travel kernel gives the same
// again, so measuring once is enough.
#pragma once

#include <string>

#include "netshape/plan.hh"

namespace orrery::emulator {

class LinkCache {
 public:
  /// `folder` holds one file of records a plan, kernel and build of our programs; it is made when
  /// needed. Throws SystemError if `kernel` or one of our programs is not there.
  LinkCache(const std::string& folder, const netshape::Plan& plan, const std::string& kernel);

  /// Writes the records to `path`, each marked as of an earlier run. False if there are none; a
  /// file that is damaged counts as none.
  bool load(const std::string& path) const;
  /// Keeps the records of `path` if every link was found as asked. What cannot be kept (no room, no
  /// right to write) is measured again next time.
  void store(const std::string& path) const;

 private:
  std::string folder_;
  std::string path_;
};

}  // namespace orrery::emulator
