// traffic_guest MBIT SEGMENTS MEGABYTES: one TCP flow over a link of that rate and 1 ms in the
// time-travel kernel, with super-packets of at most so many segments (0: as the plan chooses).
// Prints segments, the goodput over the wire's, and the emulated seconds. benchmarks/gso_cost.sh
// measures what it costs the host.

#include <cstdio>
#include <cstdlib>

#include "netshape/kernel_backend.hh"
#include "tests/netshape/traffic.hh"

int main(int argc, char** argv) {
  using namespace orrery;
  using namespace orrery::netshape;
  if (argc != 4) return 2;
  const double mbit = std::atof(argv[1]);
  const long segments = std::atol(argv[2]);
  const double megabytes = std::atof(argv[3]);
  LinkSpec up;
  up.rate = BitRate::mbit(mbit);
  up.delay = Duration::milliseconds(1);
  LinkSpec back;
  back.delay = up.delay;
  Plan chosen = plan(star({{"a", up, back}, {"b", {}, {}}}), 1);
  if (segments > 0)
    for (VertexPlan& vertex : chosen.vertices) {
      if (vertex.is_switch) continue;
      vertex.gso_segments.value = segments;
      vertex.gso_bytes.value = segments > 1 ? 65536 : 1500;
    }
  KernelBackend backend([] { return Instant{test::now_ns()}; });
  backend.apply(chosen);
  const auto samples =
      test::tcp(backend, "a", "b", static_cast<std::int64_t>(megabytes * 1e6), 1e6);
  const test::Sample& middle = samples[samples.size() / 2];
  const test::Sample& last = samples.back();
  const double goodput = static_cast<double>(last.bytes - middle.bytes) * 8e9 /
                         static_cast<double>(last.ns - middle.ns);
  const double wire = static_cast<double>(backend.current().link("a->switch").tcp_goodput.value);
  std::printf("%lld %.5f %.3f\n",
              static_cast<long long>(backend.current().vertex("a").gso_segments.value),
              goodput / wire, static_cast<double>(last.ns) * 1e-9);
}
