// The complete state of one netem queue, and its form on netlink. We encode it ourselves: libnl's
// object lacks rates, nanoseconds and several attributes, and a change that leaves an attribute out
// keeps the old value, so each message carries all of them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "netshape/burst_loss.hh"

namespace orrery::netshape {

/// How a delay is drawn. Both are tables of ours, so that a change from one to the other needs no
/// new queue: the kernel cannot take a table away.
enum class DelayTable { none, uniform, normal, pareto, paretonormal };
std::string to_string(DelayTable table);

/// The chains of burst_loss.hh as the kernel keeps them, probabilities of 2^32.
struct GilbertElliottShares {
  std::uint32_t p = 0, r = 0;
  std::uint32_t h = 0;   ///< a packet in bad to arrive
  std::uint32_t k1 = 0;  ///< a packet in good to be lost
  friend bool operator==(const GilbertElliottShares&, const GilbertElliottShares&) = default;
};
struct FourStateShares {
  std::uint32_t p13 = 0, p31 = 0, p32 = 0, p14 = 0, p23 = 0;
  friend bool operator==(const FourStateShares&, const FourStateShares&) = default;
};
using LossShares = std::variant<std::monostate, GilbertElliottShares, FourStateShares>;

/// The units and meanings of linux/pkt_sched.h. Probabilities are of 2^32.
struct Netem {
  std::int64_t latency_ns = 0;
  std::int64_t jitter_ns = 0;
  std::uint32_t limit = 1000;  ///< packets
  std::uint32_t loss = 0;
  LossShares chain;  ///< in place of `loss`
  std::uint32_t duplicate = 0;
  std::uint32_t corrupt = 0;
  std::uint32_t reorder = 0;
  std::uint32_t gap = 0;                   ///< 1 when reorder is used
  std::uint64_t rate = 0;                  ///< bytes a second; 0 is no limit
  std::int32_t packet_overhead = 0;        ///< bytes added to each packet's size before the rate
  DelayTable table = DelayTable::none;     ///< needed when there is jitter
  std::optional<std::uint64_t> seed = {};  ///< for kernels from 6.6 on

  friend bool operator==(const Netem&, const Netem&) = default;
};

/// Probability in [0, 1] to a share of 2^32, as iproute2 rounds it.
std::uint32_t share(double probability);

LossShares shares(const BurstLoss& loss);

/// Quantiles × 8192: of a distribution with mean 0 and variance 1, or of the even one over [-1, 1].
/// A table reaches to 4 standard deviations; Pareto's (shape 3) is cut where it comes to that, and
/// brought to mean 0 and variance 1 after.
const std::vector<std::int16_t>& quantiles(DelayTable table);

/// The value of TCA_OPTIONS: a tc_netem_qopt and all attributes, zeros included.
std::vector<std::byte> encode(const Netem& netem);

/// Reads what the kernel reports. The table is not reported: `table` stays none. Throws
/// Error when the bytes are not netem's.
Netem decode(std::span<const std::byte> options);

/// A field that is not as asked.
struct Mismatch {
  std::string field;
  std::string asked;
  std::string applied;
};
/// Leaves out what the kernel does not report (the table; the seed where it knows none).
std::vector<Mismatch> compare(const Netem& asked, const Netem& applied);

}  // namespace orrery::netshape
