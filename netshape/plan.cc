#include "netshape/plan.hh"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <stdexcept>

#include "base/error.hh"
#include "base/philox.hh"

namespace orrery::netshape {
namespace {

constexpr std::int64_t ethernet_header = 14;
constexpr std::int64_t wire_extra = 24;   // preamble 8, frame check sequence 4, gap 12
constexpr std::int64_t tcp_headers = 52;  // IPv4 20, TCP 20, timestamps 12
constexpr std::int64_t largest_super_packet = 65536;
constexpr Duration longest_burst = Duration::microseconds(50);
constexpr Duration default_queue = Duration::milliseconds(50);
constexpr std::int64_t default_queue_most = 4 << 20;
constexpr std::int64_t socket_buffer_least = 4 << 20;
constexpr std::int64_t socket_buffer_most = 512 << 20;
constexpr std::int64_t fewest_super_packets = 200;
constexpr std::int64_t spare_packets = 1000;
constexpr std::int64_t most_packets = 1'000'000;
// Stands for "no limit" where a rate is only there to keep packets in order: a frame takes 0 ns.
constexpr std::uint64_t order_keeping_rate = 1'000'000'000'000'000;

std::int64_t ceiling(double value) { return static_cast<std::int64_t>(std::ceil(value - 1e-9)); }

// One decimal, so that reasons read well and snapshots do not hang on a last digit.
std::string short_number(double value) {
  std::string text = std::to_string(std::round(value * 10) / 10);
  text.erase(text.find('.') + 2);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text;
}

[[noreturn]] void refuse(const std::vector<std::string>& problems) {
  std::string text;
  for (const std::string& problem : problems) text += (text.empty() ? "" : "\n") + problem;
  throw ValueError(text);
}

// --- routes: fewest links; among equals, one by a hash of seed, vertex and target

struct Edges {
  std::map<std::string, std::vector<std::string>> neighbours;
};

Edges edges_of(const Topology& topology) {
  Edges edges;
  for (const Link& link : topology.links) {
    edges.neighbours[link.a].push_back(link.b);
    edges.neighbours[link.b].push_back(link.a);
  }
  return edges;
}

// For each vertex that can reach `target`, the neighbour to send to. Where several are as near, all
// that goes to one target takes the same: packets of a connection must not overtake each other.
std::map<std::string, std::string> next_hops(const Edges& edges, const std::string& target,
                                             std::uint64_t seed) {
  std::map<std::string, std::size_t> distance{{target, 0}};
  std::map<std::string, std::vector<std::string>> nearer;  // in the order of the links
  std::vector<std::string> frontier{target};
  while (!frontier.empty()) {
    std::vector<std::string> further;
    for (const std::string& at : frontier) {
      const auto found = edges.neighbours.find(at);
      if (found == edges.neighbours.end()) continue;
      for (const std::string& neighbour : found->second) {
        const auto [known, fresh] = distance.emplace(neighbour, distance.at(at) + 1);
        if (fresh) further.push_back(neighbour);
        if (known->second == distance.at(at) + 1) nearer[neighbour].push_back(at);
      }
    }
    frontier = std::move(further);
  }
  std::map<std::string, std::string> next;
  for (const auto& [vertex, choices] : nearer) {
    const std::uint64_t draw = philox4x32(hash_name(vertex + ">" + target), 1, seed)[0];
    next[vertex] = choices[choices.size() == 1 ? 0 : (draw * choices.size()) >> 32];
  }
  return next;
}

std::string address_text(std::size_t second, std::size_t index) {
  // Never .0 or .255, which some programs refuse.
  const std::size_t high = index / 254;
  const std::size_t low = index % 254 + 1;
  return "10." + std::to_string(second + high / 256) + "." + std::to_string(high % 256) + "." +
         std::to_string(low);
}

void add_vertices(Plan& plan) {
  const Topology& topology = plan.topology;
  for (std::size_t i = 0; i < topology.nodes.size(); ++i)
    plan.vertices.push_back({topology.nodes[i], false, address_text(0, i), {}, {}, {}, {}});
  for (std::size_t i = 0; i < topology.switches.size(); ++i)
    plan.vertices.push_back({topology.switches[i], true, address_text(200, i), {}, {}, {}, {}});

  const Edges edges = edges_of(topology);
  std::map<std::string, std::size_t> index;
  for (std::size_t i = 0; i < plan.vertices.size(); ++i) index[plan.vertices[i].name] = i;
  std::vector<std::string> targets = topology.nodes;
  std::sort(targets.begin(), targets.end());
  for (const std::string& target : targets)
    for (const auto& [from, via] : next_hops(edges, target, plan.seed))
      plan.vertices[index.at(from)].routes.push_back({target, via});
}

// --- the figures of one link

struct Crossing {
  Duration longest_round_trip;     // of the paths over the link
  std::int64_t most_segments = 1;  // in a super-packet that may cross it
  std::string longest_path;
};

std::uint64_t link_seed(std::uint64_t seed, const std::string& name) {
  const auto words = philox4x32(hash_name(name), 0, seed);
  return (std::uint64_t{words[1]} << 32) | words[0];
}

bool draws_per_packet(const LinkSpec& spec) {
  return loss_share(spec) > 0 || spec.duplicate.value > 0 || spec.corrupt.value > 0 ||
         spec.reorder.value > 0;
}

DelayTable table_of(Distribution distribution) {
  switch (distribution) {
    case Distribution::uniform:
      return DelayTable::uniform;
    case Distribution::normal:
      return DelayTable::normal;
    case Distribution::pareto:
      return DelayTable::pareto;
    case Distribution::paretonormal:
      return DelayTable::paretonormal;
  }
  throw std::logic_error("a distribution of no known kind");
}

Derived queue_in_bytes(const LinkSpec& spec, const Crossing& crossing, std::int64_t frame) {
  const double rate = spec.rate->bytes_per_second();
  const double bdp = rate * crossing.longest_round_trip.in_seconds();
  const std::string round_trip =
      "longest round trip " + to_string(crossing.longest_round_trip) +
      (crossing.longest_path.empty() ? "" : " (" + crossing.longest_path + ")");
  Derived queue;
  if (const auto* bytes = std::get_if<Bytes>(&spec.queue)) {
    queue = {bytes->count, "as asked"};
  } else if (const auto* time = std::get_if<Duration>(&spec.queue)) {
    queue = {ceiling(rate * time->in_seconds()), to_string(*time) + " at " + to_string(*spec.rate)};
  } else if (const auto* multiple = std::get_if<BdpMultiple>(&spec.queue)) {
    queue = {ceiling(bdp * multiple->factor),
             short_number(multiple->factor) + " × " + to_string(*spec.rate) + " × " + round_trip};
  } else {
    const double by_time = rate * default_queue.in_seconds();
    const double most = static_cast<double>(default_queue_most);
    if (bdp >= std::min(by_time, most))
      queue = {ceiling(bdp), "default: 1 BDP, " + to_string(*spec.rate) + " × " + round_trip};
    else if (by_time <= most)
      queue = {ceiling(by_time), "default: 50ms at " + to_string(*spec.rate) + ", above 1 BDP"};
    else
      queue = {default_queue_most, "default: 50ms, at most 4MiB, above 1 BDP"};
  }
  if (queue.value < frame) queue = {frame, "one full frame, the least (" + queue.why + ")"};
  return queue;
}

// Frames that are on the way at once when the line is full; half as many again for small ones.
double delay_line(const LinkSpec& spec, double bits_per_second, std::int64_t mtu) {
  const double seconds = (spec.delay + spec.jitter * 4).in_seconds();
  return 1.5 * seconds * bits_per_second / (8 * static_cast<double>(mtu));
}

void derive_rate(LinkPlan& link, std::int64_t mtu, const Crossing& crossing) {
  const LinkSpec& spec = link.spec;
  const std::int64_t frame = mtu + ethernet_header;
  const std::int64_t extra = spec.layer == Layer::wire ? wire_extra : 0;
  const std::int64_t counted = frame + extra;
  link.overhead = {extra, spec.layer == Layer::wire
                              ? "wire: preamble 8 + frame check 4 + gap 12 a frame"
                              : "l2: only the bytes that Linux counts"};
  link.frame_time_ns = {spec.rate->time_for(counted).ns,
                        std::to_string(counted) + " B at " + to_string(*spec.rate)};
  const double goodput = static_cast<double>(spec.rate->bits_per_second) *
                         static_cast<double>(mtu - tcp_headers) / static_cast<double>(counted);
  link.tcp_goodput = {static_cast<std::int64_t>(goodput),
                      std::to_string(mtu - tcp_headers) + "/" + std::to_string(counted) +
                          " of the rate: one full segment in one full frame"};

  link.queue_bytes = queue_in_bytes(spec, crossing, frame);
  const std::int64_t unit = frame * crossing.most_segments;
  std::int64_t packets = std::max<std::int64_t>(
      1, ceiling(static_cast<double>(link.queue_bytes.value) / static_cast<double>(unit)));
  std::string why = std::to_string(link.queue_bytes.value) + " B / " + std::to_string(unit) + " B";
  if (crossing.most_segments > 1) {
    why += " (super-packets of " + std::to_string(crossing.most_segments) + " frames)";
    // netem counts a lone acknowledgement like a super-packet.
    if (packets < fewest_super_packets) {
      packets = fewest_super_packets;
      why +=
          ", at least " + std::to_string(fewest_super_packets) + " so that small packets find room";
    }
  }
  if (packets > most_packets) {
    packets = most_packets;
    why += ", at most " + std::to_string(most_packets);
  }
  link.queue_packets = {packets, why};
}

// What the rate limiter is told: bytes a second, and bytes more a packet.
struct Limiter {
  std::uint64_t rate;
  std::int32_t overhead;
};

Limiter limiter(const LinkSpec& spec, std::int64_t mtu, std::int64_t most_segments) {
  const double rate = spec.rate->bytes_per_second();
  const std::int64_t extra = spec.layer == Layer::wire ? wire_extra : 0;
  if (most_segments == 1 || extra == 0)
    return {static_cast<std::uint64_t>(std::llround(rate)), static_cast<std::int32_t>(extra)};
  // The limiter adds its overhead once a super-packet, not once a frame: scale the rate instead,
  // exactly for full frames.
  const double frame = static_cast<double>(mtu + ethernet_header);
  const double scale = frame / (frame + static_cast<double>(extra));
  return {static_cast<std::uint64_t>(std::llround(rate * scale)), 0};
}

void derive_queues(LinkPlan& link, std::int64_t mtu, const Crossing& crossing) {
  const LinkSpec& spec = link.spec;
  Netem& path = link.path;
  path = {};
  link.line.reset();
  path.latency_ns = spec.delay.ns;
  path.jitter_ns = spec.jitter.ns;
  if (spec.jitter.ns > 0) path.table = table_of(spec.distribution);
  path.loss = share(spec.loss.value);
  if (spec.burst_loss) path.chain = shares(*spec.burst_loss);
  path.duplicate = share(spec.duplicate.value);
  path.corrupt = share(spec.corrupt.value);
  path.reorder = share(spec.reorder.value);
  path.gap = path.reorder > 0 ? 1 : 0;
  path.seed = link.seed;
  if (spec.jitter.ns > 0 && spec.keep_order) path.rate = order_keeping_rate;

  if (!spec.rate) {
    const double line = delay_line(spec, 100e9, mtu);
    link.path_packets = {std::min(most_packets, ceiling(line) + spare_packets * 10),
                         "no rate: 1.5 × delay at 100Gbit/s + 10000, at most 1000000"};
    path.limit = static_cast<std::uint32_t>(link.path_packets.value);
    return;
  }
  const auto bits = static_cast<double>(spec.rate->bits_per_second);
  const std::int64_t on_the_way = ceiling(delay_line(spec, bits, mtu));
  const std::int64_t queue = link.queue_packets.value;
  const Limiter limit = limiter(spec, mtu, crossing.most_segments);
  if (path.duplicate > 0) {
    // Kernels since July 2025 take no second netem beside one that duplicates.
    link.path_packets = {std::min(most_packets, on_the_way + queue),
                         "duplicates, so one queue does both: 1.5 × delay line + queue (" +
                             std::to_string(on_the_way) + " + " + std::to_string(queue) + ")"};
    path.limit = static_cast<std::uint32_t>(link.path_packets.value);
    path.rate = limit.rate;
    path.packet_overhead = limit.overhead;
    return;
  }
  // Not a queue of its own: more than this in `path` would overflow `line` anyway.
  link.path_packets = {std::min(most_packets, on_the_way + 2 * queue + spare_packets),
                       "never the limit: 1.5 × delay line + 2 × queue + 1000 (" +
                           std::to_string(on_the_way) + " + " + std::to_string(2 * queue) +
                           " + 1000)"};
  path.limit = static_cast<std::uint32_t>(link.path_packets.value);
  Netem line;
  // One more than the queue: netem counts the packet on the line too.
  line.limit = static_cast<std::uint32_t>(std::min(most_packets, queue + 1));
  line.rate = limit.rate;
  line.packet_overhead = limit.overhead;
  link.line = line;
}

void derive(LinkPlan& link, std::int64_t mtu, const Crossing& crossing) {
  link.overhead = link.frame_time_ns = link.tcp_goodput = link.queue_bytes =
      link.queue_packets = {0, "no rate"};
  if (link.spec.rate) derive_rate(link, mtu, crossing);
  derive_queues(link, mtu, crossing);
}

// --- paths

std::map<std::string, std::size_t> link_index(const Plan& plan) {
  std::map<std::string, std::size_t> index;
  for (std::size_t i = 0; i < plan.links.size(); ++i) index[plan.links[i].name] = i;
  return index;
}

void add_links(Plan& plan) {
  const std::set<std::string> switches(plan.topology.switches.begin(),
                                       plan.topology.switches.end());
  const auto add = [&](const std::string& from, const std::string& to, const LinkSpec& spec) {
    LinkPlan link;
    link.name = link_name(from, to);
    link.from = from;
    link.to = to;
    link.spec = spec;
    link.place = switches.count(from) != 0 ? Place::egress : Place::ingress;
    link.seed = link_seed(plan.seed, link.name);
    plan.links.push_back(std::move(link));
  };
  for (const Link& link : plan.topology.links) {
    add(link.a, link.b, link.a_to_b);
    add(link.b, link.a, link.b_to_a);
  }
}

void add_paths(Plan& plan) {
  std::map<std::string, std::map<std::string, std::string>> via;
  for (const VertexPlan& vertex : plan.vertices)
    for (const Route& route : vertex.routes) via[vertex.name][route.to] = route.via;
  for (const std::string& from : plan.topology.nodes) {
    for (const std::string& to : plan.topology.nodes) {
      if (from == to) continue;
      PathPlan path;
      path.from = from;
      path.to = to;
      for (std::string at = from; at != to;) {
        const std::string& next = via.at(at).at(to);
        path.links.push_back(link_name(at, next));
        at = next;
      }
      plan.paths.push_back(std::move(path));
    }
  }
}

using Specs = std::map<std::string, std::vector<LinkSpec>>;

Duration delay_of(const Plan& plan, const PathPlan& path,
                  const std::map<std::string, std::size_t>& index) {
  Duration sum;
  for (const std::string& name : path.links) sum += plan.links[index.at(name)].spec.delay;
  return sum;
}

// add_paths() writes them by `from`, then `to`: the way back is found by counting.
std::size_t way_back(std::size_t path, std::size_t nodes) {
  const std::size_t from = path / (nodes - 1);
  std::size_t to = path % (nodes - 1);
  if (to >= from) ++to;
  return to * (nodes - 1) + (from < to ? from : from - 1);
}

void derive_path_delays(Plan& plan) {
  const auto index = link_index(plan);
  for (PathPlan& path : plan.paths) path.one_way = delay_of(plan, path, index);
  for (std::size_t i = 0; i < plan.paths.size(); ++i)
    plan.paths[i].round_trip =
        plan.paths[i].one_way + plan.paths[way_back(i, plan.topology.nodes.size())].one_way;
}

std::map<std::string, std::size_t> vertex_index(const Plan& plan) {
  std::map<std::string, std::size_t> index;
  for (std::size_t i = 0; i < plan.vertices.size(); ++i) index[plan.vertices[i].name] = i;
  return index;
}

// The largest super-packet that one link bears.
std::optional<Derived> segments_on(const std::string& name, const std::vector<LinkSpec>& specs,
                                   std::int64_t frame, std::int64_t most) {
  std::optional<Derived> fewest;
  for (const LinkSpec& spec : specs) {
    std::optional<Derived> here;
    if (draws_per_packet(spec)) {
      here = {1, name + " draws its losses for each packet"};
    } else if (spec.rate) {
      const double bytes = spec.rate->bytes_per_second() * longest_burst.in_seconds();
      const auto fit = static_cast<std::int64_t>(bytes / static_cast<double>(frame));
      here = {std::clamp<std::int64_t>(fit, 1, most),
              "a burst lasts at most 50us on " + name + " at " + to_string(*spec.rate)};
    }
    if (here && (!fewest || here->value < fewest->value)) fewest = here;
  }
  return fewest;
}

// A super-packet reaches every link of its path whole, so the most demanding one decides.
void derive_segments(Plan& plan, const Specs& future) {
  const std::int64_t frame = plan.mtu + ethernet_header;
  const std::int64_t most = largest_super_packet / frame;
  std::map<std::string, std::optional<Derived>> by_link;
  for (const auto& [name, specs] : future) by_link[name] = segments_on(name, specs, frame, most);

  const auto index = vertex_index(plan);
  std::vector<std::optional<Derived>> fewest(plan.vertices.size());
  for (const PathPlan& path : plan.paths) {
    std::optional<Derived>& mine = fewest[index.at(path.from)];
    for (const std::string& name : path.links) {
      const std::optional<Derived>& here = by_link.at(name);
      if (here && (!mine || here->value < mine->value)) mine = here;
    }
  }
  for (std::size_t i = 0; i < plan.vertices.size(); ++i) {
    VertexPlan& vertex = plan.vertices[i];
    vertex.gso_segments =
        fewest[i].value_or(Derived{most, "no link on its paths has a rate or a loss"});
    vertex.gso_bytes = {std::min(largest_super_packet, vertex.gso_segments.value * plan.mtu),
                        "segments × MTU, at most 64KiB"};
  }
}

std::map<std::string, Crossing> crossings(const Plan& plan) {
  std::map<std::string, Crossing> all;
  const auto index = vertex_index(plan);
  for (const PathPlan& path : plan.paths) {
    const std::int64_t segments = plan.vertices[index.at(path.from)].gso_segments.value;
    for (const std::string& name : path.links) {
      Crossing& crossing = all[name];
      crossing.most_segments = std::max(crossing.most_segments, segments);
      if (crossing.longest_path.empty() || path.round_trip > crossing.longest_round_trip) {
        crossing.longest_round_trip = path.round_trip;
        crossing.longest_path = path.from + " to " + path.to;
      }
    }
  }
  return all;
}

void derive_buffers(Plan& plan, const Specs& future) {
  const auto index = link_index(plan);
  std::map<std::string, Duration> worst_delay;
  std::map<std::string, std::optional<BitRate>> best_rate;
  for (const auto& [name, specs] : future) {
    // Over the timeline: the longest delay and the highest rate, though perhaps never together.
    Duration delay;
    std::optional<BitRate> rate = BitRate{0};
    for (const LinkSpec& spec : specs) {
      delay = std::max(delay, spec.delay + spec.jitter * 4);
      if (!spec.rate) rate.reset();
      if (rate && spec.rate) rate = std::max(*rate, *spec.rate);
    }
    worst_delay[name] = delay;
    best_rate[name] = rate;
  }
  std::vector<Duration> one_way(plan.paths.size());
  for (std::size_t i = 0; i < plan.paths.size(); ++i)
    for (const std::string& name : plan.paths[i].links) one_way[i] += worst_delay.at(name);

  for (std::size_t i = 0; i < plan.paths.size(); ++i) {
    PathPlan& path = plan.paths[i];
    path.rate.reset();
    path.tcp_goodput.reset();
    std::optional<BitRate> highest;
    std::int64_t queue = 0;
    std::string at;
    for (const std::string& name : path.links) {
      const LinkPlan& link = plan.links[index.at(name)];
      if (link.spec.rate && (!path.rate || *link.spec.rate < *path.rate)) {
        path.rate = link.spec.rate;
        path.tcp_goodput = BitRate{link.tcp_goodput.value};
        queue = link.queue_bytes.value;
        at = name;
      }
      const std::optional<BitRate>& rate = best_rate.at(name);
      if (rate && (!highest || *rate < *highest)) highest = rate;
    }
    if (path.rate)
      path.bdp = {ceiling(path.rate->bytes_per_second() * path.round_trip.in_seconds()),
                  to_string(*path.rate) + " of " + at + " × " + to_string(path.round_trip)};
    else
      path.bdp = {0, "no link of the path has a rate"};

    const Duration round_trip = one_way[i] + one_way[way_back(i, plan.topology.nodes.size())];
    const double bdp = highest
                           ? highest->bytes_per_second() * round_trip.in_seconds()
                           : BitRate{100'000'000'000}.bytes_per_second() * round_trip.in_seconds();
    const double want = 2 * bdp + static_cast<double>(queue);
    if (want <= static_cast<double>(socket_buffer_least))
      path.socket_buffer = {socket_buffer_least, "4MiB, above 2 BDP + queue"};
    else if (want >= static_cast<double>(socket_buffer_most))
      path.socket_buffer = {socket_buffer_most, "512MiB, the most, below 2 BDP + queue"};
    else
      path.socket_buffer = {ceiling(want), std::string("2 BDP + queue, at most demanding time") +
                                               (highest ? "" : ", counted at 100Gbit/s")};
  }
  for (VertexPlan& vertex : plan.vertices)
    vertex.socket_buffer = {socket_buffer_least, "4MiB, the least"};
  const auto vertices = vertex_index(plan);
  for (const PathPlan& path : plan.paths)
    for (const std::string* end : {&path.from, &path.to}) {
      Derived& mine = plan.vertices[vertices.at(*end)].socket_buffer;
      if (path.socket_buffer.value > mine.value)
        mine = {path.socket_buffer.value, "of the path " + path.from + " to " + path.to};
    }
}

Specs specs_over_time(const Plan& plan, std::span<const LinkChange> timeline) {
  Specs specs;
  for (const LinkPlan& link : plan.links) specs[link.name].push_back(link.spec);
  for (const LinkChange& change : timeline) specs.at(change.link).push_back(change.spec);
  return specs;
}

std::vector<std::string> change_problems(const Topology& topology,
                                         std::span<const LinkChange> changes) {
  std::vector<std::string> found;
  std::set<std::string> names;
  for (const Link& link : topology.links) {
    names.insert(link_name(link.a, link.b));
    names.insert(link_name(link.b, link.a));
  }
  for (const LinkChange& change : changes) {
    if (names.count(change.link) == 0)
      found.push_back("change of '" + change.link +
                      "': there is no such link; write \"from->to\" of two joined ends");
    for (const std::string& problem : problems(change.spec))
      found.push_back("change of " + change.link + ": " + problem);
  }
  return found;
}

template <typename T>
const T& find(const std::vector<T>& all, const std::string& name, const char* kind) {
  for (const T& one : all)
    if (one.name == name) return one;
  throw std::logic_error(std::string("the plan has no ") + kind + " '" + name + "'");
}

}  // namespace

const VertexPlan& Plan::vertex(const std::string& name) const {
  return find(vertices, name, "node or switch");
}
const LinkPlan& Plan::link(const std::string& name) const { return find(links, name, "link"); }
const PathPlan& Plan::path(const std::string& from, const std::string& to) const {
  for (const PathPlan& one : paths)
    if (one.from == from && one.to == to) return one;
  throw std::logic_error("the plan has no path from '" + from + "' to '" + to + "'");
}

Plan plan(const Topology& topology, std::uint64_t seed, std::span<const LinkChange> timeline) {
  std::vector<std::string> found = problems(topology);
  if (found.empty()) found = change_problems(topology, timeline);
  if (!found.empty()) refuse(found);

  Plan made;
  made.topology = topology;
  made.seed = seed;
  add_vertices(made);
  add_links(made);
  add_paths(made);
  const Specs future = specs_over_time(made, timeline);
  derive_path_delays(made);
  derive_segments(made, future);
  const auto crossing = crossings(made);
  for (LinkPlan& link : made.links) {
    const auto at = crossing.find(link.name);
    derive(link, made.mtu, at == crossing.end() ? Crossing{} : at->second);
  }
  derive_buffers(made, future);
  return made;
}

Plan changed(const Plan& before, std::span<const LinkChange> changes) {
  const std::vector<std::string> found = change_problems(before.topology, changes);
  if (!found.empty()) refuse(found);
  Plan after = before;
  const auto index = link_index(after);
  std::set<std::size_t> touched;
  for (const LinkChange& change : changes) {
    const std::size_t at = index.at(change.link);
    after.links[at].spec = change.spec;
    touched.insert(at);
    Link& link = after.topology.links[at / 2];
    (at % 2 == 0 ? link.a_to_b : link.b_to_a) = change.spec;
  }
  derive_path_delays(after);
  const auto crossing = crossings(after);
  for (const std::size_t at : touched) {
    const auto found_crossing = crossing.find(after.links[at].name);
    derive(after.links[at], after.mtu,
           found_crossing == crossing.end() ? Crossing{} : found_crossing->second);
  }
  // Super-packets and sockets stay: programs have opened theirs already.
  std::vector<Derived> path_buffers;
  for (const PathPlan& path : after.paths) path_buffers.push_back(path.socket_buffer);
  std::vector<Derived> vertex_buffers;
  for (const VertexPlan& vertex : after.vertices) vertex_buffers.push_back(vertex.socket_buffer);
  derive_buffers(after, specs_over_time(after, {}));
  for (std::size_t i = 0; i < after.paths.size(); ++i)
    after.paths[i].socket_buffer = path_buffers[i];
  for (std::size_t i = 0; i < after.vertices.size(); ++i)
    after.vertices[i].socket_buffer = vertex_buffers[i];
  return after;
}

Duration crossing_time(const Plan& plan, const PathPlan& path, std::int64_t ip_bytes) {
  Duration sum = path.one_way;
  for (const std::string& name : path.links) {
    const LinkPlan& link = plan.link(name);
    if (link.spec.rate)
      sum += link.spec.rate->time_for(ip_bytes + ethernet_header + link.overhead.value);
  }
  return sum;
}

}  // namespace orrery::netshape
