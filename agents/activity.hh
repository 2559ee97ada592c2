// What a node does at this moment, in a page of memory that can be read while nothing in the guest
// runs any more: for a watchdog that is to say who waits for what.
//
// It costs a few stores a message and no system call. The page is found by its first bytes, in the
// guest's memory, from outside (emulator/uml/guest_memory.hh).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "agents/kernel.hh"
#include "agents/transport.hh"
#include "base/units.hh"

namespace orrery {

class ActivityPage {
 public:
  /// For node `rank` of a cluster. Throws SystemError if there is no memory.
  ActivityPage(int rank, int incarnation);
  /// The page is forgotten: nobody finds it afterwards.
  ~ActivityPage();
  ActivityPage(const ActivityPage&) = delete;
  ActivityPage& operator=(const ActivityPage&) = delete;

  /// The real code of a kernel runs.
  void computing(const KernelSpec& kernel, Instant since);
  /// Nothing of `sources` is there; of each, `numbers` messages (by source) have come so far.
  void waiting(std::span<const Source> sources, std::span<const std::int64_t> numbers,
               Instant since);
  /// A message is given to the transport, which may have to wait for room.
  void sending(int peer, std::uint32_t tag, Instant since);
  /// It sleeps until the end of what it computed.
  void sleeping(Instant until);
  /// None of these: the strategy's own code.
  void own_code(Instant since);

 private:
  struct Contents;
  friend struct Activity;
  Contents* page_;
};

/// A page as read from outside.
struct Activity {
  /// How each page begins.
  static std::string_view mark();
  /// Nothing if `page` (its first bytes, as many as there are) is none, or none that makes sense.
  static std::optional<Activity> read(std::span<const char> page);

  int rank = 0;
  int incarnation = 0;
  /// "n1 has been computing candidates x250x150 since 1.25 s",
  /// "n0 has been waiting since 1.2 s for message 5 on channel 2 from n1".
  std::string describe(const std::vector<std::string>& names) const;

 private:
  std::vector<char> bytes_;
};

}  // namespace orrery
