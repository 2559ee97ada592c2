#include "netshape/link.hh"

#include <cmath>
#include <limits>
#include <stdexcept>

namespace orrery::netshape {
namespace {

std::string factor_text(double factor) {
  std::string text = std::to_string(factor);
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return text;
}

void check_share(const char* name, Probability p, std::vector<std::string>& found) {
  if (!(p.value >= 0 && p.value <= 1))
    found.push_back(std::string(name) + " " + std::to_string(p.value) +
                    " is not a probability; write 0 to 1, or 0% to 100%");
}

void check_delay(const LinkSpec& spec, std::vector<std::string>& found) {
  constexpr Duration longest = Duration::seconds(3600);
  // The kernel keeps jitter in a signed 32-bit number of nanoseconds.
  constexpr Duration widest{std::numeric_limits<std::int32_t>::max()};
  if (spec.delay.ns < 0 || spec.delay > longest) {
    found.push_back("delay " + orrery::to_string(spec.delay) + " is out of range; write 0 to 1h");
    return;
  }
  if (spec.jitter.ns < 0 || spec.jitter > widest) {
    found.push_back("jitter " + orrery::to_string(spec.jitter) +
                    " is out of range; write 0 to 2.147s");
    return;
  }
  // A draw below zero is sent at once: the mean would come out higher than asked, and the spread
  // smaller. Three sigmas leave 0.13 % of the draws there.
  const std::int64_t reach = reach_below(spec.distribution);
  if (spec.jitter.ns * reach > spec.delay.ns)
    found.push_back("jitter " + orrery::to_string(spec.jitter) + " (" +
                    to_string(spec.distribution) + ") reaches below a delay of " +
                    orrery::to_string(spec.delay) +
                    ", and a packet cannot arrive early; write a jitter of at most " +
                    orrery::to_string(Duration{spec.delay.ns / reach}) +
                    (reach == 3   ? ", a third of the delay"
                     : reach == 2 ? ", half of the delay"
                                  : ", the delay itself"));
}

void check_queue(const LinkSpec& spec, std::vector<std::string>& found) {
  if (std::holds_alternative<std::monostate>(spec.queue)) return;
  if (!spec.rate) {
    found.push_back("queue " + to_string(spec.queue) +
                    " has no rate to drain it; write a rate too, or leave the queue out");
    return;
  }
  bool positive = true;
  if (const auto* bytes = std::get_if<Bytes>(&spec.queue)) positive = bytes->count > 0;
  if (const auto* time = std::get_if<Duration>(&spec.queue)) positive = time->ns > 0;
  if (const auto* bdp = std::get_if<BdpMultiple>(&spec.queue))
    positive = std::isfinite(bdp->factor) && bdp->factor > 0;
  if (!positive)
    found.push_back("queue " + to_string(spec.queue) +
                    " holds nothing; write a size, a time or a multiple, as in 256KiB, 50ms or "
                    "1bdp");
}

}  // namespace

std::vector<std::string> problems(const LinkSpec& spec) {
  std::vector<std::string> found;
  check_delay(spec, found);
  check_share("loss", spec.loss, found);
  if (spec.burst_loss) {
    for (const std::string& problem : problems(*spec.burst_loss)) found.push_back(problem);
    if (spec.loss.value > 0)
      found.push_back("loss " + orrery::to_string(spec.loss) +
                      " and losses in bursts are two models of one thing; leave one out");
  }
  check_share("duplicate", spec.duplicate, found);
  check_share("corrupt", spec.corrupt, found);
  check_share("reorder", spec.reorder, found);
  if (spec.reorder.value > 0 && spec.delay.ns == 0)
    found.push_back("reorder " + orrery::to_string(spec.reorder) +
                    " needs a delay that some packets can skip; write a delay");
  if (spec.rate && spec.rate->bits_per_second < 1000)
    found.push_back("rate " + orrery::to_string(*spec.rate) +
                    " is below 1kbit/s; to cut a link write loss: 100%");
  if (spec.rate && spec.rate->bits_per_second > 10'000'000'000'000)
    found.push_back("rate " + orrery::to_string(*spec.rate) +
                    " is above 10Tbit/s; for a link without a limit leave the rate out");
  check_queue(spec, found);
  return found;
}

std::int64_t reach_below(Distribution distribution) {
  switch (distribution) {
    case Distribution::normal:
      return 3;
    case Distribution::paretonormal:
      return 2;
    case Distribution::uniform:
    case Distribution::pareto:
      break;
  }
  return 1;
}

double loss_share(const LinkSpec& spec) {
  return spec.burst_loss ? mean_loss(*spec.burst_loss) : spec.loss.value;
}

std::string to_string(Layer layer) { return layer == Layer::wire ? "wire" : "l2"; }

std::string to_string(Distribution distribution) {
  switch (distribution) {
    case Distribution::uniform:
      return "uniform";
    case Distribution::normal:
      return "normal";
    case Distribution::pareto:
      return "pareto";
    case Distribution::paretonormal:
      return "paretonormal";
  }
  throw std::logic_error("a distribution of no known kind");
}

std::string to_string(const Queue& queue) {
  if (const auto* bytes = std::get_if<Bytes>(&queue)) return orrery::to_string(*bytes);
  if (const auto* time = std::get_if<Duration>(&queue)) return orrery::to_string(*time);
  if (const auto* bdp = std::get_if<BdpMultiple>(&queue)) return factor_text(bdp->factor) + "bdp";
  return "auto";
}

std::string to_string(const LinkSpec& spec) {
  std::string text = orrery::to_string(spec.delay);
  if (spec.jitter.ns > 0)
    text += " ± " + orrery::to_string(spec.jitter) + " " + to_string(spec.distribution) +
            (spec.keep_order ? "" : " unordered");
  text += spec.rate ? ", " + orrery::to_string(*spec.rate) + " (" + to_string(spec.layer) + ")"
                    : std::string(", no rate");
  if (!std::holds_alternative<std::monostate>(spec.queue))
    text += ", queue " + to_string(spec.queue);
  const auto add = [&text](const char* name, Probability p) {
    if (p.value > 0) text += std::string(", ") + name + " " + orrery::to_string(p);
  };
  add("loss", spec.loss);
  if (spec.burst_loss) text += ", " + to_string(*spec.burst_loss);
  add("duplicate", spec.duplicate);
  add("corrupt", spec.corrupt);
  add("reorder", spec.reorder);
  return text;
}

}  // namespace orrery::netshape
