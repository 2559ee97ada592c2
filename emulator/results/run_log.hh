// All records of a run in memory, in an order that does not depend on how they arrived.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "proto/record.pb.h"

namespace orrery::results {

/// Each list is sorted by (emulated time, node, place in the stream): records of one node reach the
/// stream in their own order, but how those of several nodes interleave is chance.
struct RunLog {
  std::optional<wire::RunStarted> started;
  std::vector<wire::NodeState> node_states;
  std::vector<wire::Step> steps;
  std::vector<wire::Span> spans;                  ///< by begin
  std::vector<wire::LinkCheck> link_checks;       ///< by link, then as they came
  std::vector<wire::LinkCounters> link_counters;  ///< by time, then link
  std::vector<wire::LinkLateness> link_lateness;  ///< by link
  std::vector<wire::TimelineEvent> timeline;      ///< by actual time
  std::vector<wire::Traffic> traffic;             ///< by node, peer, kind; the last of each
  std::vector<wire::NodeTotals> totals;           ///< by node; the last of each
  std::vector<wire::Evaluation> evaluations;
  std::optional<wire::RunEnded> ended;
  std::int64_t last_t = 0;  ///< the latest emulated time in any record, ns
  std::int64_t records = 0;
  std::size_t incomplete_bytes = 0;  ///< at the end of the stream: the run was cut off
  bool damaged = false;              ///< bytes that are no record; what came before them is kept

  /// False if the stream ends before the run does.
  bool complete() const { return ended.has_value() && incomplete_bytes == 0 && !damaged; }
  /// "node 3" if the stream does not name it.
  std::string node_name(int node) const;
  /// As many as are named or occur.
  int node_count() const;
  /// The run's length in emulated ns: when it ended, else the last thing that is known.
  std::int64_t end_ns() const { return ended ? ended->t() : last_t; }
};

RunLog make_log(const std::vector<wire::Record>& records);
/// Reads `records.bin`. A stream cut in the middle is read up to the cut; a missing file is an
/// empty log. Throws SystemError; throws Error if not even the first record is one.
RunLog load(const std::string& path);

/// "board0->switch" → {"board0", "switch"}; a name without "->" is {name, ""}.
struct LinkEnds {
  std::string from;
  std::string to;
};
LinkEnds link_ends(const std::string& link);

}  // namespace orrery::results
