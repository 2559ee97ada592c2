#include "emulator/controller/link_check.hh"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>

#include "netshape/verify.hh"

namespace orrery::emulator {
namespace {

// By link: bytes of the longest super-packet of the nodes whose paths lead over it.
std::map<std::string, std::int64_t> longest_bursts(const netshape::Plan& plan) {
  std::map<std::string, std::int64_t> bytes;
  for (const netshape::PathPlan& path : plan.paths) {
    const netshape::VertexPlan& sender = plan.vertex(path.from);
    if (sender.gso_segments.value <= 1) continue;
    for (const std::string& link : path.links)
      bytes[link] = std::max(bytes[link], sender.gso_bytes.value);
  }
  return bytes;
}

}  // namespace

void record_link_checks(const netshape::Backend& network, RecordSink& records) {
  const std::map<std::string, std::int64_t> bursts = longest_bursts(network.current());
  for (const netshape::LinkVerdict& verdict : netshape::verify(network)) {
    const auto put = [&](const char* property, double asked, double applied,
                         std::optional<double> measured, const std::string& text) {
      wire::Record record;
      wire::LinkCheck* check = record.mutable_link_check();
      check->set_link(verdict.link);
      check->set_property(property);
      check->set_asked(asked);
      check->set_applied(applied);
      check->set_measured(measured.value_or(std::nan("")));
      check->set_verdict(text);
      records.write(record);
    };
    // What was asked is what was applied: apply() has read it back and thrown if it differed.
    const double delay = verdict.asked_delay.in_seconds();
    put("delay", delay, delay,
        verdict.measured_delay ? std::optional(verdict.measured_delay->in_seconds()) : std::nullopt,
        verdict.delay_verdict);
    if (verdict.asked_rate) {
      const auto rate = static_cast<double>(verdict.asked_rate->bits_per_second);
      put("rate", rate, rate,
          verdict.measured_rate
              ? std::optional(static_cast<double>(verdict.measured_rate->bits_per_second))
              : std::nullopt,
          verdict.rate_verdict);
      const auto burst = bursts.find(verdict.link);
      const double line_time =
          burst == bursts.end() ? 0 : verdict.asked_rate->time_for(burst->second).in_seconds();
      put("burst", std::nan(""), line_time, std::nullopt, "none asked");
    }
    if (verdict.loss_asked > 0)
      put("loss", verdict.loss_asked, verdict.loss_asked, std::nullopt,
          "not measured: it would take many packets");
  }
}

}  // namespace orrery::emulator
