#include "netshape/netem.hh"

#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>
#include <numeric>
#include <stdexcept>

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

// Without this attribute a change goes back to independent losses.
void put_chain(std::vector<std::byte>& out, const LossShares& chain) {
  std::vector<std::byte> inner;
  if (const auto* two = std::get_if<GilbertElliottShares>(&chain))
    attribute(inner, NETEM_LOSS_GE, tc_netem_gemodel{two->p, two->r, two->h, two->k1});
  if (const auto* four = std::get_if<FourStateShares>(&chain))
    attribute(inner, NETEM_LOSS_GI,
              tc_netem_gimodel{four->p13, four->p31, four->p32, four->p14, four->p23});
  if (!inner.empty()) attribute(out, TCA_NETEM_LOSS | NLA_F_NESTED, inner.data(), inner.size());
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

LossShares read_chain(std::span<const std::byte> value) {
  const auto header = read<nlattr>(value, "loss model");
  const auto model = value.subspan(sizeof(nlattr));
  if ((header.nla_type & NLA_TYPE_MASK) == NETEM_LOSS_GE) {
    const auto two = read<tc_netem_gemodel>(model, "Gilbert-Elliott model");
    return GilbertElliottShares{two.p, two.r, two.h, two.k1};
  }
  if ((header.nla_type & NLA_TYPE_MASK) == NETEM_LOSS_GI) {
    const auto four = read<tc_netem_gimodel>(model, "four-state model");
    return FourStateShares{four.p13, four.p31, four.p32, four.p14, four.p23};
  }
  throw Error("netem's loss model " + std::to_string(header.nla_type & NLA_TYPE_MASK) +
              " in the kernel's answer is not known");
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

// Shape 3, as iproute2's; of the part below the quantile `most`.
double pareto_quantile(double p, double most) { return std::pow(1 - p * most, -1.0 / 3); }

std::vector<double> exact_quantiles(DelayTable kind, double most) {
  std::vector<double> exact(table_size);
  for (std::size_t i = 0; i < table_size; ++i) {
    const double p = (static_cast<double>(i) + 0.5) / static_cast<double>(table_size);
    switch (kind) {
      case DelayTable::uniform:
        exact[i] = 2 * p - 1;
        break;
      case DelayTable::normal:
        exact[i] = normal_quantile(p);
        break;
      case DelayTable::pareto:
        exact[i] = pareto_quantile(p, most);
        break;
      case DelayTable::paretonormal:
        exact[i] = 0.25 * normal_quantile(p) + 0.75 * pareto_quantile(p, most);
        break;
      case DelayTable::none:
        break;
    }
  }
  // A finite set of quantiles lacks the outermost tails: brought to the moments that are meant.
  const double n = static_cast<double>(table_size);
  const double mean = std::accumulate(exact.begin(), exact.end(), 0.0) / n;
  double squares = 0;
  for (double& value : exact) {
    value -= mean;
    squares += value * value;
  }
  const double variance = kind == DelayTable::uniform ? 1.0 / 3.0 : 1.0;
  const double stretch = std::sqrt(variance * n / squares);
  for (double& value : exact) value *= stretch;
  return exact;
}

std::vector<std::int16_t> build_table(DelayTable kind) {
  constexpr double farthest = std::numeric_limits<std::int16_t>::max() / table_scale;
  double most = 1;
  if (kind == DelayTable::pareto || kind == DelayTable::paretonormal) {
    double low = 0.5;
    for (int step = 0; step < 40; ++step) {
      const double middle = (low + most) / 2;
      (exact_quantiles(kind, middle).back() < farthest ? low : most) = middle;
    }
    most = low;
  }
  std::vector<std::int16_t> table;
  for (const double value : exact_quantiles(kind, most))
    table.push_back(static_cast<std::int16_t>(std::lround(value * table_scale)));
  return table;
}

std::string number(std::uint64_t value) { return std::to_string(value); }
std::string number(std::int64_t value) { return std::to_string(value); }

std::string chain_text(const LossShares& chain) {
  const auto list = [](std::initializer_list<std::uint32_t> values) {
    std::string text;
    for (const std::uint32_t value : values) text += " " + std::to_string(value);
    return text;
  };
  if (const auto* two = std::get_if<GilbertElliottShares>(&chain))
    return "Gilbert-Elliott" + list({two->p, two->r, two->h, two->k1});
  if (const auto* four = std::get_if<FourStateShares>(&chain))
    return "four-state" + list({four->p13, four->p31, four->p32, four->p14, four->p23});
  return "independent";
}

}  // namespace

std::uint32_t share(double probability) {
  const double scaled = std::rint(probability * std::numeric_limits<std::uint32_t>::max());
  return static_cast<std::uint32_t>(scaled);
}

LossShares shares(const BurstLoss& loss) {
  if (const auto* two = std::get_if<GilbertElliott>(&loss))
    return GilbertElliottShares{share(two->to_bad.value), share(two->to_good.value),
                                share(1 - two->loss_bad.value), share(two->loss_good.value)};
  const auto& four = std::get<FourState>(loss);
  return FourStateShares{share(four.p13.value), share(four.p31.value), share(four.p32.value),
                         share(four.p14.value), share(four.p23.value)};
}

std::string to_string(DelayTable table) {
  switch (table) {
    case DelayTable::none:
      return "none";
    case DelayTable::uniform:
      return "uniform";
    case DelayTable::normal:
      return "normal";
    case DelayTable::pareto:
      return "pareto";
    case DelayTable::paretonormal:
      return "paretonormal";
  }
  throw std::logic_error("a table of no known kind");
}

const std::vector<std::int16_t>& quantiles(DelayTable table) {
  static const std::vector<std::int16_t> none;
  static const std::vector<std::int16_t> uniform = build_table(DelayTable::uniform);
  static const std::vector<std::int16_t> normal = build_table(DelayTable::normal);
  // Made when first wanted: finding where to cut takes a while.
  if (table == DelayTable::pareto) {
    static const std::vector<std::int16_t> pareto = build_table(DelayTable::pareto);
    return pareto;
  }
  if (table == DelayTable::paretonormal) {
    static const std::vector<std::int16_t> mixed = build_table(DelayTable::paretonormal);
    return mixed;
  }
  return table == DelayTable::none ? none : table == DelayTable::uniform ? uniform : normal;
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
  put_chain(out, netem.chain);
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
      case TCA_NETEM_LOSS:
        netem.chain = read_chain(value);
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
  if (asked.chain != applied.chain)
    found.push_back({"loss model (of 2^32)", chain_text(asked.chain), chain_text(applied.chain)});
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
