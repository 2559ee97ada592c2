// network_accuracy [kernel|fabric] [TABLE]...: how near a backend's links come to what is asked, as
// the tables of docs/accuracy.md. The kernel's runs in the time-travel kernel, and gives the same
// there every time; the fabric's on the host, by its clock:
//
//   orrery-guest --mem 3GiB -- build/release/benchmarks/network_accuracy kernel
//   build/release/benchmarks/network_accuracy fabric
//
// Each table says what was asked, what packets or TCP flows of our own saw, and the deviation.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "netshape/netem.hh"
#include "netshape/open_backend.hh"
#include "netshape/shapes.hh"
#include "tests/netshape/traffic.hh"

namespace {

using namespace orrery;
using namespace orrery::netshape;
using test::Sample;
using test::Udp;

Instant now() { return {test::now_ns()}; }

// Which backend; and whether its time is the host's, so that long measurements take long.
BackendKind backend_kind = BackendKind::kernel;
bool wall_time() { return backend_kind == BackendKind::fabric; }

std::unique_ptr<Backend> built(const Plan& plan) {
  auto backend = open_backend(backend_kind, now);
  backend->apply(plan);
  return backend;
}

// `count` small packets, and the one-way times of those that arrive. In virtual time one after the
// other; in wall time `spacing` apart, received meanwhile.
std::vector<double> one_way_ms(Udp& udp, int count, std::int64_t spacing_ns) {
  std::vector<double> seen;
  const auto take = [&](const test::Arrival& arrival) {
    seen.push_back(static_cast<double>(arrival.one_way()) * 1e-6);
  };
  if (!wall_time()) {
    for (int i = 0; i < count; ++i) {
      udp.send(static_cast<std::uint32_t>(i), 32);
      take(udp.arrival());
    }
    return seen;
  }
  std::thread receiver([&] {
    while (const auto arrival = udp.receive(1'000'000'000)) take(*arrival);
  });
  for (int i = 0; i < count; ++i) {
    udp.send(static_cast<std::uint32_t>(i), 32);
    test::sleep_ns(spacing_ns);
  }
  receiver.join();
  return seen;
}

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

LinkSpec link(std::optional<BitRate> rate, Duration delay) {
  LinkSpec spec;
  spec.rate = rate;
  spec.delay = delay;
  return spec;
}

// Two nodes; what is of interest lies on the way from a to the switch, and what comes back (an
// acknowledgement) is held up as long.
Plan pair_of(const LinkSpec& up) {
  LinkSpec back;
  back.delay = up.delay;
  return plan(star({{"a", up, back}, {"b", {}, {}}}), 1);
}

// --- delay

void delays() {
  const int count = wall_time() ? 500 : 20;
  std::printf(
      "\n| delay asked | measured, mean of %d | off by | 99th percentile off by "
      "|\n|---|---|---|---|\n",
      count);
  for (const double ms : {0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0}) {
    const auto network = built(pair_of(link({}, Duration{std::llround(ms * 1e6)})));
    Backend& backend = *network;
    Udp udp(backend, "a", "b");
    std::vector<double> seen = one_way_ms(udp, count, 2'000'000);
    std::sort(seen.begin(), seen.end());
    std::printf("| %g ms | %.4f ms | %+.1f us | %+.1f us |\n", ms, mean(seen),
                (mean(seen) - ms) * 1e3, (seen[seen.size() * 99 / 100] - ms) * 1e3);
    std::fflush(stdout);
  }
}

// --- jitter

void jitters() {
  const int n = wall_time() ? 4000 : 8000;
  std::printf(
      "\n| jitter of 5 ms about 50 ms, %d packets | standard deviation | off by | KS distance × √n "
      "(below 1.63) |\n|---|---|---|---|\n",
      n);
  struct Kind {
    Distribution distribution;
    DelayTable table;
  };
  for (const Kind& kind : {Kind{Distribution::uniform, DelayTable::uniform},
                           Kind{Distribution::normal, DelayTable::normal},
                           Kind{Distribution::pareto, DelayTable::pareto},
                           Kind{Distribution::paretonormal, DelayTable::paretonormal}}) {
    LinkSpec spec = link({}, Duration::milliseconds(50));
    spec.jitter = Duration::milliseconds(5);
    spec.distribution = kind.distribution;
    spec.keep_order = false;  // packets of wall time are on the way together
    const auto network = built(pair_of(spec));
    Backend& backend = *network;
    Udp udp(backend, "a", "b");
    std::vector<double> seen = one_way_ms(udp, n, 1'000'000);
    for (double& x : seen) x = (x - 50) / 5;
    std::sort(seen.begin(), seen.end());
    double squares = 0;
    for (const double x : seen) squares += (x - mean(seen)) * (x - mean(seen));
    const double asked = kind.distribution == Distribution::uniform ? 1 / std::sqrt(3.0) : 1;
    const double sigma = std::sqrt(squares / n);
    const auto& table = quantiles(kind.table);
    double distance = 0;
    for (int i = 0; i < n; ++i) {
      const auto above =
          std::upper_bound(table.begin(), table.end(), seen[static_cast<std::size_t>(i)] * 8192,
                           [](double value, std::int16_t entry) { return value < entry; });
      const double p =
          static_cast<double>(above - table.begin()) / static_cast<double>(table.size());
      distance = std::max({distance, std::abs(p - static_cast<double>(i) / n),
                           std::abs(p - static_cast<double>(i + 1) / n)});
    }
    std::printf("| %s | %.3f ms | %+.1f %% | %.2f |\n", to_string(kind.distribution).c_str(),
                sigma * 5, (sigma / asked - 1) * 100, distance * std::sqrt(n));
  }
}

// --- TCP

struct Flow {
  std::string from;
  std::string to;
};

// Payload that each flow got between a third and the end of `seconds`, bit/s.
std::vector<double> goodputs(const Backend& backend, const std::vector<Flow>& flows,
                             double seconds) {
  std::vector<std::vector<Sample>> samples(flows.size());
  std::vector<std::thread> threads;
  const std::int64_t begun = test::now_ns();
  std::vector<std::int64_t> offsets(flows.size());
  for (std::size_t i = 0; i < flows.size(); ++i)
    threads.emplace_back([&, i] {
      offsets[i] = test::now_ns() - begun;
      samples[i] = test::tcp(backend, flows[i].from, flows[i].to, std::int64_t{1} << 50, seconds);
    });
  for (std::thread& thread : threads) thread.join();
  std::vector<double> result;
  for (std::size_t i = 0; i < flows.size(); ++i) {
    const auto at = [&](double t) {
      const Sample* last = &samples[i].front();
      for (const Sample& sample : samples[i]) {
        if (static_cast<double>(sample.ns + offsets[i]) > t * 1e9) break;
        last = &sample;
      }
      return *last;
    };
    const Sample middle = at(seconds / 3);
    const Sample end = at(seconds * 0.98);
    result.push_back(static_cast<double>(end.bytes - middle.bytes) * 8e9 /
                     static_cast<double>(end.ns - middle.ns));
  }
  return result;
}

void rates() {
  std::puts(
      "\n| rate asked | round trip | flows | TCP goodput, all flows | of the wire's | off by "
      "|\n|---|---|---|---|---|---|");
  for (const double mbit : {1.0, 10.0, 100.0, 500.0, 10000.0}) {
    if (wall_time() && mbit > 500) continue;
    for (const int round_trip_ms : {0, 10, 50}) {
      for (const int count : {1, 4}) {
        // Four flows at 1 Mbit/s wait for time-outs, and what has arrived out of order counts when
        // the gap is filled: only minutes tell their rate.
        if (wall_time() && mbit < 5 && count > 1) continue;
        const LinkSpec trunk =
            link(BitRate::mbit(mbit), Duration::microseconds(round_trip_ms * 500));
        std::vector<StarNode> nodes;
        std::vector<Flow> flows;
        for (int i = 0; i < count; ++i) nodes.push_back({"a" + std::to_string(i), {}, {}});
        for (int i = 0; i < count; ++i) {
          nodes.push_back({"b" + std::to_string(i), {}, {}});
          flows.push_back({"a" + std::to_string(i), "b" + std::to_string(i)});
        }
        const auto network = built(plan(make_shape(Shape::dumbbell, nodes, trunk, 0), 1));
        Backend& backend = *network;
        // Long enough for samples of 128 KiB to be fine, and for Cubic to fill the line.
        const double seconds = wall_time()   ? (mbit < 5 ? 30 : 10)
                               : mbit < 5    ? 600
                               : mbit < 1000 ? 20
                                             : (round_trip_ms < 20 ? 2 : 10);
        const auto each = goodputs(backend, flows, seconds);
        const double all = std::accumulate(each.begin(), each.end(), 0.0);
        const auto wire =
            static_cast<double>(backend.current().link("left->right").tcp_goodput.value);
        std::printf("| %g Mbit/s | %d ms | %d | %.4g Mbit/s | %.4g Mbit/s | %+.2f %% |\n", mbit,
                    round_trip_ms, count, all * 1e-6, wire * 1e-6, (all / wire - 1) * 100);
        std::fflush(stdout);
      }
    }
  }
}

// --- loss

void losses() {
  std::puts(
      "\n| loss asked | packets | lost | 99 % interval | runs of losses, mean "
      "|\n|---|---|---|---|---|");
  struct Case {
    double share;
    double burst;
    int packets;
  };
  for (const Case& c : {Case{0.0001, 1, 400'000}, Case{0.001, 1, 100'000}, Case{0.01, 1, 50'000},
                        Case{0.1, 1, 20'000}, Case{0.01, 5, 100'000}, Case{0.05, 20, 100'000}}) {
    LinkSpec spec = link(BitRate::mbit(1000), Duration::milliseconds(1));
    if (c.burst > 1)
      spec.burst_loss = gilbert({c.share}, c.burst);
    else
      spec.loss = {c.share};
    const auto network = built(pair_of(spec));
    Backend& backend = *network;
    Udp udp(backend, "a", "b");
    std::vector<bool> arrived(static_cast<std::size_t>(c.packets));
    for (int first = 0; first < c.packets; first += 1000) {
      for (int i = first; i < first + 1000; ++i) udp.send(static_cast<std::uint32_t>(i), 32);
      for (const test::Arrival& arrival : udp.receive_all(20'000'000))
        arrived.at(arrival.number) = true;
    }
    double lost = 0;
    double runs = 0;
    for (std::size_t i = 0; i < arrived.size(); ++i) {
      lost += !arrived[i];
      runs += !arrived[i] && (i == 0 || arrived[i - 1]);
    }
    // Of a chain, losses hang together: Gilbert's with this mean length.
    const double together = c.burst > 1 ? 2 * c.burst * (1 - c.share) - 1 : 1;
    const double sigma = std::sqrt(c.packets * c.share * (1 - c.share) * together);
    std::printf(
        "| %g %%%s | %d | %.0f | %.0f … %.0f | %.2f |\n", c.share * 100,
        c.burst > 1 ? (", " + std::to_string(static_cast<int>(c.burst)) + " in a row").c_str() : "",
        c.packets, lost, c.packets * c.share - 2.576 * sigma, c.packets * c.share + 2.576 * sigma,
        runs > 0 ? lost / runs : 0);
    std::fflush(stdout);
  }
}

// --- sharing, size, change

void sharing() {
  std::puts("\n| two flows over 50 Mbit/s | round trip | goodput |\n|---|---|---|");
  const LinkSpec trunk = link(BitRate::mbit(50), Duration::milliseconds(5));
  const LinkSpec near = link({}, Duration::microseconds(2500));
  const LinkSpec far = link({}, Duration::microseconds(7500));
  const auto network = built(
      plan(make_shape(Shape::dumbbell,
                      {{"a0", near, near}, {"a1", far, far}, {"b0", near, near}, {"b1", far, far}},
                      trunk, 0),
           1));
  Backend& backend = *network;
  const auto each = goodputs(backend, {{"a0", "b0"}, {"a1", "b1"}}, wall_time() ? 30 : 120);
  std::printf("| first | 20 ms | %.1f Mbit/s |\n| second | 40 ms | %.1f Mbit/s |\n", each[0] * 1e-6,
              each[1] * 1e-6);
}

void many() {
  std::vector<StarNode> nodes;
  std::vector<Flow> flows;
  const LinkSpec access = link(BitRate::mbit(10), Duration::milliseconds(2));
  for (int i = 0; i < 64; ++i) {
    const std::string number = std::to_string(i);
    nodes.push_back({"n" + number, access, access});
    // Each sends to the next, so all 64 links are busy in both directions.
    flows.push_back({"n" + number, "n" + std::to_string((i + 1) % 64)});
  }
  const auto network = built(plan(star(nodes), 1));
  Backend& backend = *network;
  const auto each = goodputs(backend, flows, 10);
  const double wire = 10e6 * 1448 / 1538;
  const auto [least, most] = std::minmax_element(each.begin(), each.end());
  std::printf(
      "\n64 nodes, 64 links of 10 Mbit/s, busy both ways: goodput %.3f to %.3f of the wire's\n",
      *least / wire, *most / wire);

  std::vector<LinkChange> changes;
  for (int i = 0; i < 50; ++i) {
    LinkSpec other = access;
    other.delay = Duration::milliseconds(10);
    const std::string name = "n" + std::to_string(i);
    changes.push_back({name + "->switch", other});
    changes.push_back({"switch->" + name, other});
  }
  const Instant planned = now();
  const ChangeTimes times = backend.change(changes, planned);
  std::printf("A change of %zu directions: in force %.1f us after it was begun\n", changes.size(),
              static_cast<double>((times.actual - planned).ns) * 1e-3);
  std::int64_t latest = 0;
  for (const ReleaseLateness& late : backend.lateness()) latest = std::max(latest, late.p99.ns);
  if (latest > 0)
    std::printf("Of 100 packets one left the link that it is worst for %.1f us late, or later\n",
                static_cast<double>(latest) * 1e-3);
}

// Making and taking away; in virtual time it takes the host's time, which is told apart by the
// host.
void lifetimes() {
  std::vector<StarNode> nodes;
  const LinkSpec access = link(BitRate::mbit(100), Duration::milliseconds(1));
  for (int i = 0; i < 16; ++i) nodes.push_back({"n" + std::to_string(i), access, access});
  const Plan tree = plan(make_shape(Shape::fat_tree, nodes, access, 4), 1);
  const std::int64_t begun = test::now_ns();
  auto backend = built(tree);
  const std::int64_t built_ns = test::now_ns();
  backend->remove();
  const std::int64_t removed = test::now_ns();
  std::printf("A fat tree of arity 4 with 16 nodes: made in %.3f s, removed in %.3f s\n",
              static_cast<double>(built_ns - begun) * 1e-9,
              static_cast<double>(removed - built_ns) * 1e-9);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string wish = argc > 1 ? argv[1] : "kernel";
  if (wish != "kernel" && wish != "fabric") {
    std::fputs("network_accuracy [kernel|fabric] [TABLE]...\n", stderr);
    return 2;
  }
  backend_kind = wish == "fabric" ? BackendKind::fabric : BackendKind::kernel;
  const std::vector<std::string> only(argv + std::min(argc, 2), argv + argc);
  const std::pair<const char*, void (*)()> tables[] = {
      {"delays", delays},   {"jitters", jitters}, {"losses", losses},      {"rates", rates},
      {"sharing", sharing}, {"many", many},       {"lifetimes", lifetimes}};
  for (const auto& [name, print] : tables)
    if (only.empty() || std::find(only.begin(), only.end(), name) != only.end()) print();
}
