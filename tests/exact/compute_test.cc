// Who waits for whom, in the exact engine: two nodes that compute take the maximum, two kernels of
// one node the sum, a kernel and a transfer overlap.

#include <gtest/gtest.h>

#include "tests/exact/guest_output.hh"

namespace orrery::test {
namespace {

/// Milliseconds that a case takes.
double took(const std::string& name) {
  const Output output = run_in_kernel(COMPUTE_GUEST, name);
  const auto lines = lines_by_name(output.text);
  const auto found = lines.find(name);
  EXPECT_TRUE(output.status == 0 && found != lines.end()) << name << "\n" << output.text;
  return found == lines.end() ? 0 : std::stod(found->second) * 1e-6;
}

/// A word of some bytes from node to node: 1 ms of delay, and a frame of 140 bytes twice on a line
/// of 100 Mbit/s.
constexpr double word = 1.0 + 2 * 140 * 8 / 100e6 * 1e3;
/// Clocks read, threads woken.
constexpr double slack = 0.01;

TEST(Compute, NodesThatComputeAtOnceTakeTheMaximum) {
  // 10, 20, 30 and 40 ms; one after another it would be 100.
  EXPECT_NEAR(took("together"), 40 + word, slack);
}

TEST(Compute, KernelsOfOneNodeTakeTheSum) {
  EXPECT_NEAR(took("in_turn"), 30 + 50 + word, slack);
  EXPECT_NEAR(took("started_at_once"), 30 + 50 + word, slack);
}

TEST(Compute, AKernelAndATransferOverlap) {
  // 2 MB in frames of 1538 bytes that carry 1448, the switch forwards whole frames; then a word.
  // Acknowledgements pass in the other direction.
  const double alone = took("transfer");
  const double line = 2e6 / 1448 * 1538 * 8 / 100e6 * 1e3;
  EXPECT_NEAR(alone, line + 1.0 + 0.123 + word, 0.02 * line);
  EXPECT_NEAR(took("short_kernel_beside"), alone, slack);
  EXPECT_NEAR(took("long_kernel_beside"), 400, slack);
}

TEST(Compute, ATransferAfterAKernelTakesTheSum) {
  EXPECT_NEAR(took("kernel_before"), 50 + took("transfer"), slack);
}

TEST(Compute, MessagesInterruptAKernelForWhatTheyCost) {
  // Node 0 sends one and receives one while it computes.
  EXPECT_NEAR(took("dear_messages"), 400 + 2 * 3, slack);
}

}  // namespace
}  // namespace orrery::test
