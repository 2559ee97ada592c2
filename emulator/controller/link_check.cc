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

void record_link_checks(const netshape::Backend& network, RecordSink& records,
                        const netshape::VerifyOptions& options) {
  const std::map<std::string, std::int64_t> bursts = longest_bursts(network.current());
  for (const netshape::LinkVerdict& verdict : netshape::verify(network, options)) {
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
    const auto put_check = [&](const char* property, const netshape::PropertyCheck& check) {
      // What was asked is what was applied: apply() has read it back and thrown if it differed.
      if (check.verdict != "none asked")
        put(property, check.asked, check.asked, check.measured, check.verdict);
    };
    put_check("delay", verdict.delay);
    put_check("jitter", verdict.jitter);
    put_check("rate", verdict.rate);
    put_check("loss", verdict.loss);
    put_check("duplicate", verdict.duplicate);
    put_check("reorder", verdict.reorder);
    const auto& rate = network.current().link(verdict.link).spec.rate;
    if (rate && !network.shapes_segments()) {
      const auto burst = bursts.find(verdict.link);
      put("burst", std::nan(""),
          burst == bursts.end() ? 0 : rate->time_for(burst->second).in_seconds(), std::nullopt,
          "none asked");
    }
  }
}

}  // namespace orrery::emulator
