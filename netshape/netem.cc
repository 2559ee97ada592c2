#include "netshape/netem.hh"

#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>

#include "base/error.hh"

namespace orrery::netshape {
namespace {

// The kernel's scheduler tick, PSCHED_SHIFT of include/net/pkt_sched.h.
constexpr std::int64_t ns_per_tick = 64;
// TCA_NETEM_PRNG_SEED, since Linux 6.6; older headers lack the name.
constexpr unsigned short attribute_seed = TCA_NETEM_SLOT_DIST + 1;
constexpr std::size_t table_size = 4096;
constexpr double table_scale = NETEM_DIST_SCALE;

template <typename T>
void append(std::vector<std::byte>& out, const T& value) {
  const std::size_t at = out.size();
  out.resize(at + sizeof(T));
  std::memcpy(out.data() + at, &value, sizeof(T));
}

void attribute(std::vector<std::byte>& out, unsigned short type, const void* data,
               std::size_t size) {
  append(out, nlattr{static_cast<unsigned short>(sizeof(nlattr) + size), type});
  const std::size_t at = out.size();
  out.resize(at + NLA_ALIGN(size));
  std::memcpy(out.data() + at, data, size);
}

template <typename T>
void attribute(std::vector<std::byte>& out, unsigned short type, const T& value) {
  attribute(out, type, &value, sizeof(T));
}

std::uint32_t ticks(std::int64_t ns) {
  const std::int64_t most = std::numeric_limits<std::uint32_t>::max();
  return static_cast<std::uint32_t>(std::min(ns / ns_per_tick, most));
}

template <typename T>
T read(std::span<const std::byte> bytes, const char* what) {
  if (bytes.size() < sizeof(T))
    throw Error(std::string("netem's ") + what + " is cut short in the kernel's answer");
  T value;
  std::memcpy(&value, bytes.data(), sizeof(T));
  return value;
}

double normal_quantile(double p) {
  double low = -8;
  double high = 8;
  for (int step = 0; step < 60; ++step) {
    const double middle = (low + high) / 2;
    (0.5 * std::erfc(-middle / std::numbers::sqrt2) < p ? low : high) = middle;
  }
  return (low + high) / 2;
}

std::vector<std::int16_t> build_table(DelayTable kind) {
  std::vector<double> exact(table_size);
  double squares = 0;
  for (std::size_t i = 0; i < table_size; ++i) {
    const double p = (static_cast<double>(i) + 0.5) / static_cast<double>(table_size);
    exact[i] = kind == DelayTable::normal ? normal_quantile(p) : 2 * p - 1;
    squares += exact[i] * exact[i];
  }
  // A finite set of quantiles lacks the outermost tails: stretch it to the variance that is meant.
  const double variance = kind == DelayTable::normal ? 1.0 : 1.0 / 3.0;
  const double stretch = std::sqrt(variance * static_cast<double>(table_size) / squares);
  std::vector<std::int16_t> table;
  for (const double value : exact)
    table.push_back(static_cast<std::int16_t>(std::lround(value * stretch * table_scale)));
  return table;
}

std::string number(std::uint64_t value) { return std::to_string(value); }
std::string number(std::int64_t value) { return std::to_string(value); }

}  // namespace

std::uint32_t share(double probability) {
  const double scaled = std::rint(probability * std::numeric_limits<std::uint32_t>::max());
  return static_cast<std::uint32_t>(scaled);
}

const std::vector<std::int16_t>& quantiles(DelayTable table) {
  static const std::vector<std::int16_t> none;
  if (table == DelayTable::none) return none;
  if (table == DelayTable::uniform) {
    static const std::vector<std::int16_t> uniform = build_table(DelayTable::uniform);
    return uniform;
  }
  static const std::vector<std::int16_t> normal = build_table(DelayTable::normal);
  return normal;
}

std::vector<std::byte> encode(const Netem& netem) {
  std::vector<std::byte> out;
  tc_netem_qopt options{};
  options.latency = ticks(netem.latency_ns);
  options.jitter = ticks(netem.jitter_ns);
  options.limit = netem.limit;
  options.loss = netem.loss;
  options.gap = netem.gap;
  options.duplicate = netem.duplicate;
  append(out, options);

  attribute(out, TCA_NETEM_CORR, tc_netem_corr{});
  attribute(out, TCA_NETEM_REORDER, tc_netem_reorder{netem.reorder, 0});
  attribute(out, TCA_NETEM_CORRUPT, tc_netem_corrupt{netem.corrupt, 0});
  constexpr std::uint64_t most = std::numeric_limits<std::uint32_t>::max();
  tc_netem_rate rate{};
  rate.rate = static_cast<std::uint32_t>(std::min(netem.rate, most));
  rate.packet_overhead = netem.packet_overhead;
  if (netem.rate > most) attribute(out, TCA_NETEM_RATE64, netem.rate);
  attribute(out, TCA_NETEM_RATE, rate);
  attribute(out, TCA_NETEM_ECN, std::uint32_t{0});
  attribute(out, TCA_NETEM_SLOT, tc_netem_slot{});
  attribute(out, TCA_NETEM_LATENCY64, netem.latency_ns);
  attribute(out, TCA_NETEM_JITTER64, netem.jitter_ns);
  if (netem.seed) attribute(out, attribute_seed, *netem.seed);
  if (netem.table != DelayTable::none) {
    const std::vector<std::int16_t>& table = quantiles(netem.table);
    attribute(out, TCA_NETEM_DELAY_DIST, table.data(), table.size() * sizeof(table[0]));
  }
  return out;
}

Netem decode(std::span<const std::byte> options) {
  Netem netem;
  const auto head = read<tc_netem_qopt>(options, "options");
  netem.latency_ns = std::int64_t{head.latency} * ns_per_tick;
  netem.jitter_ns = std::int64_t{head.jitter} * ns_per_tick;
  netem.limit = head.limit;
  netem.loss = head.loss;
  netem.gap = head.gap;
  netem.duplicate = head.duplicate;
  options = options.subspan(NLA_ALIGN(sizeof(head)));
  std::uint64_t rate64 = 0;
  while (!options.empty()) {
    const auto header = read<nlattr>(options, "attribute");
    if (header.nla_len < sizeof(nlattr) || header.nla_len > options.size())
      throw Error("netem's attribute " + std::to_string(header.nla_type) +
                  " has a wrong length in the kernel's answer");
    const auto value = options.subspan(sizeof(nlattr), header.nla_len - sizeof(nlattr));
    switch (header.nla_type & NLA_TYPE_MASK) {
      case TCA_NETEM_REORDER:
        netem.reorder = read<tc_netem_reorder>(value, "reorder").probability;
        break;
      case TCA_NETEM_CORRUPT:
        netem.corrupt = read<tc_netem_corrupt>(value, "corrupt").probability;
        break;
      case TCA_NETEM_RATE: {
        const auto rate = read<tc_netem_rate>(value, "rate");
        netem.rate = rate.rate;
        netem.packet_overhead = rate.packet_overhead;
        break;
      }
      case TCA_NETEM_RATE64:
        rate64 = read<std::uint64_t>(value, "rate64");
        break;
      case TCA_NETEM_LATENCY64:
        netem.latency_ns = read<std::int64_t>(value, "latency64");
        break;
      case TCA_NETEM_JITTER64:
        netem.jitter_ns = read<std::int64_t>(value, "jitter64");
        break;
      case attribute_seed:
        netem.seed = read<std::uint64_t>(value, "seed");
        break;
      default:
        break;
    }
    options = options.subspan(std::min(options.size(), std::size_t{NLA_ALIGN(header.nla_len)}));
  }
  netem.rate = std::max(netem.rate, rate64);
  return netem;
}

std::vector<Mismatch> compare(const Netem& asked, const Netem& applied) {
  std::vector<Mismatch> found;
  const auto check = [&found](const char* field, auto a, auto b) {
    if (a != b) found.push_back({field, number(a), number(b)});
  };
  const auto wide = [](std::uint32_t v) { return std::uint64_t{v}; };
  check("latency (ns)", asked.latency_ns, applied.latency_ns);
  check("jitter (ns)", asked.jitter_ns, applied.jitter_ns);
  check("limit (packets)", wide(asked.limit), wide(applied.limit));
  check("loss (of 2^32)", wide(asked.loss), wide(applied.loss));
  check("duplicate (of 2^32)", wide(asked.duplicate), wide(applied.duplicate));
  check("corrupt (of 2^32)", wide(asked.corrupt), wide(applied.corrupt));
  check("reorder (of 2^32)", wide(asked.reorder), wide(applied.reorder));
  check("gap (packets)", wide(asked.gap), wide(applied.gap));
  check("rate (bytes/s)", asked.rate, applied.rate);
  check("packet overhead (bytes)", std::int64_t{asked.packet_overhead},
        std::int64_t{applied.packet_overhead});
  if (asked.seed && applied.seed) check("seed", *asked.seed, *applied.seed);
  return found;
}

}  // namespace orrery::netshape
