// The one impure seam of this folder: something that makes packets behave as a plan says.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "netshape/plan.hh"

namespace orrery::netshape {

/// When a batch of changes was to take place, and when it had.
struct ChangeTimes {
  Instant planned;
  Instant actual;
};

/// What one direction has carried since apply().
struct LinkCounters {
  std::string link;
  std::int64_t packets = 0;      ///< delivered at the far end; a super-packet counts its segments
  std::int64_t l2_bytes = 0;     ///< of those, Ethernet headers included
  std::int64_t wire_bytes = 0;   ///< and with preamble, checksum and gap
  std::int64_t queue_drops = 0;  ///< found the queue full
  std::int64_t loss_drops = 0;   ///< taken by the link's loss
  std::int64_t queued = 0;       ///< packets in the queue now
  std::int64_t in_flight = 0;    ///< packets on the way now
};

/// Asked and applied, for one field of one direction.
struct Applied {
  std::string link;
  std::string field;
  std::string asked;
  std::string applied;
};

/// How late packets left one direction, against the instants that the model gave them.
struct ReleaseLateness {
  std::string link;
  std::int64_t releases = 0;
  Duration p50;
  Duration p99;
  Duration largest;
};

class Backend {
 public:
  virtual ~Backend() = default;

  /// Builds all of it, or nothing: throws after taking down what it had built. MachineError names
  /// what the machine lacks; Error names a link and field that came out other than asked.
  virtual void apply(const Plan& plan) = 0;
  /// All of the changes, or none.
  virtual ChangeTimes change(std::span<const LinkChange> changes, Instant planned) = 0;
  virtual std::vector<LinkCounters> counters() = 0;
  /// Since apply(), one entry a direction; empty where releases are not ours to time (a kernel's
  /// queues do not tell).
  virtual std::vector<ReleaseLateness> lateness() { return {}; }
  /// Whether each segment of a super-packet is shaped by itself; if not, one holds a line for as
  /// long as all of it takes.
  virtual bool shapes_segments() const { return false; }
  /// What the last apply() or change() read back; one entry a field that was checked.
  virtual std::vector<Applied> applied() const = 0;
  /// The plan in force, changes included.
  virtual const Plan& current() const = 0;
  /// Takes down what apply() built. Doing it twice is harmless.
  virtual void remove() = 0;
  /// A descriptor that a process may setns() into; owned by the backend.
  virtual int node_namespace(const std::string& node) const = 0;
};

}  // namespace orrery::netshape
