// Ring all-reduce in the exact engine, against its closed form.
//
// T = 2 (n − 1) (α + S / (n B)). B is what one direction of a link gives to payload: a full frame
// of 1538 bytes on the wire carries 1448. α is the one-way delay and one frame's time more: the
// switch forwards whole frames. In long transfers the opposite direction's acknowledgements share
// the line, one of 90 bytes (66 + 24 of framing) for each two frames; in short ones few of them are
// sent before all is over. So the form has two values, and what is measured lies between them,
// within 2 %.

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <regex>
#include <string>

namespace {

struct Output {
  int status;
  std::string text;
};

Output run(const std::string& command) {
  Output output{-1, ""};
  FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
  char buffer[4096];
  while (const std::size_t n = std::fread(buffer, 1, sizeof buffer, pipe))
    output.text.append(buffer, n);
  output.status = ::pclose(pipe);
  return output;
}

double closed_form(int n, double bytes, double delay, double rate, double acknowledgement) {
  const double frame_time = 1538 * 8 / rate;
  const double payload_rate = rate / 8 * 1448 / (1538 + acknowledgement / 2);
  return 2.0 * (n - 1) * (delay + frame_time + bytes / n / payload_rate);
}

void check_rings(int delay_us) {
  // As agents have it: host time, not emulated time, depends on these.
  const std::string environment =
      "GRPC_EXPERIMENTS=tcp_frame_size_tuning,tcp_rcv_lowat "
      "GLIBC_TUNABLES=glibc.malloc.mmap_threshold=4294967296:glibc.malloc.trim_threshold="
      "8589934592:"
      "glibc.malloc.top_pad=16777216:glibc.malloc.arena_max=1 ";
  const Output output = run(environment + ORRERY_GUEST + " --mem 2GiB -- " + RING_GUEST + " " +
                            std::to_string(delay_us) + " 2 4 8");
  ASSERT_EQ(output.status, 0) << output.text;
  const std::regex line(
      R"(ring n=(\d+) bytes=(\d+) delay_ns=(\d+) rate=(\d+) round_ns=(\d+) round_ns=(\d+) ok)");
  int cases = 0;
  for (std::sregex_iterator it(output.text.begin(), output.text.end(), line), end; it != end;
       ++it) {
    const std::smatch& m = *it;
    const auto form = [&](double acknowledgement) {
      return closed_form(std::stoi(m[1]), std::stod(m[2]), std::stod(m[3]) * 1e-9, std::stod(m[4]),
                         acknowledgement);
    };
    for (const int round : {5, 6}) {
      const double measured = std::stod(m[static_cast<std::size_t>(round)]) * 1e-9;
      EXPECT_GT(measured / form(0), 0.98) << m.str();
      EXPECT_LT(measured / form(90), 1.02) << m.str();
    }
    ++cases;
  }
  EXPECT_EQ(cases, 9) << output.text;
}

TEST(Ring, ShortDelay) { check_rings(100); }
TEST(Ring, LongDelay) { check_rings(10000); }

}  // namespace
