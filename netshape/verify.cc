#include "netshape/verify.hh"

#include <arpa/inet.h>
#include <linux/pkt_sched.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>

#include "base/error.hh"
#include "base/fd.hh"
#include "netshape/namespace.hh"

namespace orrery::netshape {
namespace {

constexpr std::int64_t ip_and_udp = 28;
constexpr std::int64_t ethernet_header = 14;
constexpr std::int64_t probe_payload = 32;  // above Ethernet's smallest frame, so nothing is padded
constexpr int least_train = 3;

// The one place of this folder where time is read: a measurement needs it, and both ends share it.
std::int64_t now_ns() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

sockaddr_in endpoint(const std::string& address) {
  sockaddr_in end{};
  end.sin_family = AF_INET;
  inet_pton(AF_INET, address.c_str(), &end.sin_addr);
  return end;
}

struct Arrival {
  std::uint32_t number;
  std::int64_t ns;
};

// A sender at one end of a link and a receiver at its other, both used by one thread.
class Pair {
 public:
  Pair(const Backend& backend, const LinkPlan& link, bool kernel_stamps)
      : from_(open_at(backend, link.from)),
        to_(open_at(backend, link.to)),
        kernel_stamps_(kernel_stamps) {
    const int on = 1;
    if (kernel_stamps)
      check_system(setsockopt(to_.get(), SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on),
                   "ask for the times of arrivals");
    sockaddr_in here = endpoint(backend.current().vertex(link.to).address);
    check_system(bind(to_.get(), reinterpret_cast<sockaddr*>(&here), sizeof here),
                 "bind a measuring socket");
    socklen_t size = sizeof here;
    check_system(getsockname(to_.get(), reinterpret_cast<sockaddr*>(&here), &size),
                 "name a measuring socket");
    check_system(connect(from_.get(), reinterpret_cast<sockaddr*>(&here), sizeof here),
                 "connect a measuring socket");
  }

  bool send(std::uint32_t number, std::int64_t payload) {
    std::array<std::byte, 9000> data{};
    std::memcpy(data.data(), &number, sizeof number);
    return ::send(from_.get(), data.data(), static_cast<std::size_t>(payload), 0) == payload;
  }

  // The next packet to arrive before `deadline_ns`.
  std::optional<Arrival> receive(std::int64_t deadline_ns) {
    for (;;) {
      const std::int64_t left = deadline_ns - now_ns();
      if (left <= 0) return {};
      pollfd wait{to_.get(), POLLIN, 0};
      const timespec span{left / 1'000'000'000, left % 1'000'000'000};
      const int ready = ppoll(&wait, 1, &span, nullptr);
      if (ready < 0 && errno == EINTR) continue;
      if (check_system(ready, "wait for a measuring packet") == 0) return {};
      Arrival arrival{0, now_ns()};
      if (read(arrival)) return arrival;
    }
  }

 private:
  // False: it was none of ours.
  bool read(Arrival& arrival) {
    iovec part{&arrival.number, sizeof arrival.number};
    alignas(cmsghdr) std::array<char, 128> control{};
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = control.data();
    header.msg_controllen = control.size();
    if (recvmsg(to_.get(), &header, MSG_TRUNC | MSG_DONTWAIT) < 4) return false;
    if (!kernel_stamps_) return true;
    for (cmsghdr* c = CMSG_FIRSTHDR(&header); c; c = CMSG_NXTHDR(&header, c)) {
      if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_TIMESTAMPNS) continue;
      // The stamp is of the clock that may be set; how long ago that was is what counts.
      timespec stamp{};
      timespec now{};
      std::memcpy(&stamp, CMSG_DATA(c), sizeof stamp);
      clock_gettime(CLOCK_REALTIME, &now);
      arrival.ns = now_ns() - ((now.tv_sec - stamp.tv_sec) * std::int64_t{1'000'000'000} +
                               now.tv_nsec - stamp.tv_nsec);
    }
    return true;
  }

  static FileDescriptor open_at(const Backend& backend, const std::string& vertex) {
    const InNamespace inside(backend.node_namespace(vertex));
    FileDescriptor opened(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (!opened) throw_errno("open a measuring socket at " + vertex);
    const int room = 4 << 20;
    setsockopt(opened.get(), SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
    setsockopt(opened.get(), SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
    return opened;
  }

  FileDescriptor from_;
  FileDescriptor to_;
  bool kernel_stamps_;
};

std::int64_t patience_ns(const LinkPlan& link) {
  return (link.spec.delay + link.spec.jitter * 5).ns + 100'000'000;
}

std::int64_t counted_bytes(const LinkPlan& link, std::int64_t payload) {
  return payload + ip_and_udp + ethernet_header + link.overhead.value;
}

std::string off_by(double relative) {
  std::string text = std::to_string(relative * 100);
  text.erase(text.find('.') + 3);
  return "off by " + std::string(relative >= 0 ? "+" : "") + text + "%";
}

std::string off_by(Duration error) {
  return "off by " + std::string(error.ns >= 0 ? "+" : "-") +
         to_string(Duration{std::abs(error.ns)});
}

// --- what chance allows: two-sided, one in a thousand

constexpr double rare_tail = 0.0005;
constexpr double rare_sigmas = 3.29;
constexpr double rare_distance = 1.95;  // of Kolmogorov and Smirnov, times the root of n

// Whether `hits` of `n` independent draws may be: the exact binomial tails.
bool may_be(int hits, int n, double p) {
  if (p <= 0) return hits == 0;
  if (p >= 1) return hits == n;
  double below = 0;  // of fewer
  double here = 0;
  for (int k = 0; k <= hits; ++k) {
    below += here;
    here = std::exp(std::lgamma(n + 1.0) - std::lgamma(k + 1.0) - std::lgamma(n - k + 1.0) +
                    k * std::log(p) + (n - k) * std::log1p(-p));
  }
  return below + here >= rare_tail && 1 - below >= rare_tail;
}

// The variance of the number of losses among n packets, where they hang together.
double variance(const BurstLoss& loss, int n) {
  const double mean = mean_loss(loss);
  double each = mean * (1 - mean);
  if (const auto* two = std::get_if<GilbertElliott>(&loss)) {
    const double moves = two->to_bad.value + two->to_good.value;
    if (moves > 0) {
      const double bad = two->to_bad.value / moves;
      const double apart = two->loss_bad.value - two->loss_good.value;
      each += 2 * bad * (1 - bad) * apart * apart * (1 - moves) / moves;
    }
  } else {
    // Not more than if every burst were lost whole.
    const auto& four = std::get<FourState>(loss);
    const double within = four.p23.value > 0 ? four.p32.value / four.p23.value : 0;
    if (four.p31.value > 0) each *= 1 + 2 * (1 + within) / four.p31.value;
  }
  return each * n;
}

void judge_share(PropertyCheck& check, int hits, int n, const std::optional<BurstLoss>& bursts) {
  check.measured = static_cast<double>(hits) / n;
  const double expected = check.asked * n;
  const bool fits =
      bursts ? std::abs(hits - expected) <= rare_sigmas * std::sqrt(variance(*bursts, n)) + 1
             : may_be(hits, n, check.asked);
  check.verdict = fits              ? "ok"
                  : check.asked > 0 ? off_by(*check.measured / check.asked - 1)
                                    : "off by +" + to_string(Probability{*check.measured});
}

// --- delay

struct Moments {
  double mean = 0;
  double sigma = 0;
};

Moments moments_of(const std::vector<double>& values) {
  Moments moments;
  for (const double value : values) moments.mean += value / static_cast<double>(values.size());
  for (const double value : values)
    moments.sigma += (value - moments.mean) * (value - moments.mean);
  moments.sigma = std::sqrt(moments.sigma / static_cast<double>(values.size()));
  return moments;
}

// The largest distance between what was seen, in jitters from the mean, and the table.
double distance_to(const std::vector<std::int16_t>& table, std::vector<double> seen) {
  std::sort(seen.begin(), seen.end());
  const double n = static_cast<double>(seen.size());
  double farthest = 0;
  for (std::size_t i = 0; i < seen.size(); ++i) {
    const auto above =
        std::upper_bound(table.begin(), table.end(), seen[i] * NETEM_DIST_SCALE,
                         [](double value, std::int16_t entry) { return value < entry; });
    const double p = static_cast<double>(above - table.begin()) / static_cast<double>(table.size());
    const double rank = static_cast<double>(i);
    farthest = std::max({farthest, std::abs(p - rank / n), std::abs(p - (rank + 1) / n)});
  }
  return farthest;
}

void judge_jitter(const LinkPlan& link, const std::vector<double>& delays,
                  const VerifyOptions& options, LinkVerdict& verdict) {
  const std::vector<std::int16_t>& table = quantiles(link.path.table);
  const double unit = static_cast<double>(link.spec.jitter.ns);
  const double n = static_cast<double>(delays.size());
  std::vector<double> drawn(table.begin(), table.end());
  const Moments asked = moments_of(drawn);
  double fourth = 0;
  for (const double value : drawn)
    fourth += std::pow((value - asked.mean) / asked.sigma, 4) / static_cast<double>(drawn.size());
  const Moments seen = moments_of(delays);
  verdict.jitter.asked = unit * asked.sigma / NETEM_DIST_SCALE * 1e-9;
  verdict.jitter.measured = seen.sigma * 1e-9;
  const double error = *verdict.jitter.measured / verdict.jitter.asked - 1;
  const double standard_error = std::sqrt((fourth - 1) / (4 * n));
  std::vector<double> in_jitters;
  for (const double delay : delays)
    in_jitters.push_back((delay - static_cast<double>(link.spec.delay.ns)) / unit);
  const double distance = distance_to(table, in_jitters);
  if (std::abs(error) > options.jitter_tolerance + 4 * standard_error)
    verdict.jitter.verdict = off_by(error);
  else if (distance > rare_distance / std::sqrt(n))
    verdict.jitter.verdict = "off by its distribution: not " + to_string(link.spec.distribution);
  else
    verdict.jitter.verdict = "ok";
}

void measure_delay(Pair& pair, const LinkPlan& link, const VerifyOptions& options,
                   LinkVerdict& verdict) {
  const LinkSpec& spec = link.spec;
  const std::int64_t on_line =
      spec.rate ? spec.rate->time_for(counted_bytes(link, probe_payload)).ns : 0;
  const bool by_chance = spec.jitter.ns > 0 || spec.reorder.value > 0;
  const int probes = by_chance ? options.chance_probes : options.probes;
  // Below this nothing has waited for the delay.
  const std::int64_t skipped =
      (spec.delay.ns - reach_below(spec.distribution) * spec.jitter.ns) / 2;
  std::vector<double> delays;
  int early = 0;
  for (int i = 0; i < probes; ++i) {
    const auto number = static_cast<std::uint32_t>(i);
    const std::int64_t sent = now_ns();
    if (!pair.send(number, probe_payload)) continue;
    const std::int64_t deadline = sent + patience_ns(link) + on_line;
    while (const std::optional<Arrival> arrival = pair.receive(deadline)) {
      if (arrival->number != number) continue;  // a copy, or a late one
      const std::int64_t delay = arrival->ns - sent - on_line;
      if (spec.reorder.value > 0 && delay < skipped)
        ++early;
      else
        delays.push_back(static_cast<double>(delay));
      break;
    }
  }
  verdict.delay.asked = spec.delay.in_seconds();
  if (delays.empty()) {
    verdict.delay.verdict = loss_share(spec) > 0 ? "not measured: every probe was lost"
                                                 : "not measured: no probe arrived";
    return;
  }
  const Moments seen = moments_of(delays);
  double typical = seen.mean;
  if (!by_chance) {
    const auto middle = delays.begin() + static_cast<std::ptrdiff_t>(delays.size() / 2);
    std::nth_element(delays.begin(), middle, delays.end());
    typical = *middle;
  }
  verdict.delay.measured = typical * 1e-9;
  const double spread =
      4 * static_cast<double>(spec.jitter.ns) / std::sqrt(static_cast<double>(delays.size()));
  const double tolerance = static_cast<double>(options.delay_tolerance.ns) + spread +
                           options.delay_relative * static_cast<double>(spec.delay.ns);
  const Duration error{std::llround(typical) - spec.delay.ns};
  verdict.delay.verdict =
      std::abs(static_cast<double>(error.ns)) <= tolerance ? "ok" : off_by(error);
  if (spec.jitter.ns > 0) judge_jitter(link, delays, options, verdict);
  if (spec.reorder.value > 0) {
    verdict.reorder.asked = spec.reorder.value;
    judge_share(verdict.reorder, early, static_cast<int>(delays.size()) + early, {});
  }
}

// --- loss and copies

// Small packets in batches that fit into the queue.
void measure_chances(Pair& pair, const LinkPlan& link, const VerifyOptions& options,
                     LinkVerdict& verdict) {
  const LinkSpec& spec = link.spec;
  // A flipped bit is found out unless it is one of the sender's hardware address.
  constexpr double frame = ethernet_header + ip_and_udp + probe_payload;
  const double arrives = (1 - loss_share(spec)) * (1 - spec.corrupt.value * (1 - 6 / frame));
  verdict.loss.asked = 1 - arrives;
  verdict.duplicate.asked = spec.duplicate.value;
  if (verdict.loss.asked <= 0 && spec.duplicate.value <= 0) return;
  const double rarest = std::min(verdict.loss.asked > 0 ? verdict.loss.asked : 1.0,
                                 spec.duplicate.value > 0 ? spec.duplicate.value : 1.0);
  constexpr double enough = 400;
  const int n = static_cast<int>(
      std::min<double>(options.loss_packets, std::max(2000.0, std::ceil(enough / rarest))));
  const std::int64_t room = spec.rate ? link.queue_packets.value : 1000;
  const int batch = static_cast<int>(std::clamp<std::int64_t>(room / 2, 1, 500));
  const std::int64_t on_line =
      spec.rate ? spec.rate->time_for(counted_bytes(link, probe_payload)).ns : 0;
  std::vector<std::uint8_t> times(static_cast<std::size_t>(n));
  for (int first = 0; first < n; first += batch) {
    const int last = std::min(n, first + batch);
    for (int i = first; i < last; ++i) pair.send(static_cast<std::uint32_t>(i), probe_payload);
    const std::int64_t deadline = now_ns() + patience_ns(link) + on_line * 2 * batch;
    while (const std::optional<Arrival> arrival = pair.receive(deadline))
      if (arrival->number < times.size() && times[arrival->number] < 255) ++times[arrival->number];
  }
  const auto arrived =
      static_cast<int>(std::count_if(times.begin(), times.end(), [](int t) { return t > 0; }));
  const auto copied =
      static_cast<int>(std::count_if(times.begin(), times.end(), [](int t) { return t > 1; }));
  // A packet is lost whole only if its copy is, too; who duplicates hardly loses.
  if (verdict.loss.asked > 0) {
    const bool copies = spec.duplicate.value > 0;
    if (copies)
      verdict.loss.verdict = "not measured: copies stand in for what was lost";
    else
      judge_share(verdict.loss, n - arrived, n, spec.burst_loss);
  }
  if (spec.duplicate.value > 0) {
    if (arrived == 0)
      verdict.duplicate.verdict = "not measured: nothing arrived";
    else if (verdict.loss.asked > 0)
      verdict.duplicate.verdict = "not measured: copies are lost, too";
    else
      judge_share(verdict.duplicate, copied, n, {});
  }
}

void measure_rate(Pair& pair, const Plan& plan, const LinkPlan& link, const VerifyOptions& options,
                  LinkVerdict& verdict) {
  if (!link.spec.rate) return;
  PropertyCheck& check = verdict.rate;
  check.asked = static_cast<double>(link.spec.rate->bits_per_second);
  const std::int64_t payload = plan.mtu - ip_and_udp;
  const std::int64_t frame_ns = link.frame_time_ns.value;
  const auto train =
      static_cast<int>(std::min<std::int64_t>(options.train, link.queue_packets.value));
  if (train < least_train) {
    check.verdict = "not measured: the queue holds too few packets for a train";
    return;
  }
  const double shown = static_cast<double>(frame_ns * train) * options.rate_tolerance;
  if (8 * static_cast<double>(link.spec.jitter.ns) > shown) {
    check.verdict = "not measured: the jitter would hide it";
    return;
  }
  if (link.spec.reorder.value > 0 || link.spec.duplicate.value > 0) {
    check.verdict = "not measured: packets out of their turn would hide it";
    return;
  }
  const std::int64_t began = now_ns();
  int sent = 0;
  for (; sent < train; ++sent)
    if (!pair.send(static_cast<std::uint32_t>(sent), payload)) break;
  const std::int64_t sending = now_ns() - began;
  const std::int64_t deadline = now_ns() + patience_ns(link) + frame_ns * (train + 1);
  std::vector<Arrival> arrivals;
  while (static_cast<int>(arrivals.size()) < sent) {
    const std::optional<Arrival> arrival = pair.receive(deadline);
    if (!arrival) break;
    arrivals.push_back(*arrival);
  }
  if (static_cast<int>(arrivals.size()) < least_train) {
    check.verdict = "not measured: " + std::to_string(arrivals.size()) + " of " +
                    std::to_string(sent) + " packets of the train arrived";
    return;
  }
  const std::int64_t span = arrivals.back().ns - arrivals.front().ns;
  if (sending > frame_ns * sent) {
    check.verdict = "not measured: this machine sends more slowly than the link";
    return;
  }
  // What was lost never reached the line, so the arrivals follow one another without a gap.
  const double bits = 8.0 * static_cast<double>(counted_bytes(link, payload)) *
                      static_cast<double>(arrivals.size() - 1);
  check.measured = std::round(bits / (static_cast<double>(std::max<std::int64_t>(span, 1)) * 1e-9));
  const double error = *check.measured / check.asked - 1;
  check.verdict = std::abs(error) <= options.rate_tolerance ? "ok" : off_by(error);
}

// Four significant decimals and no zeros behind: a table is to be read, not parsed.
std::string figure(double value, const char* unit) {
  std::string text = std::to_string(std::round(value * 1e4) / 1e4);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text + unit;
}

std::string padded(std::string text, std::size_t width) {
  if (text.size() < width) text.append(width - text.size(), ' ');
  return text;
}

}  // namespace

bool LinkVerdict::ok() const {
  return delay.ok() && jitter.ok() && rate.ok() && loss.ok() && duplicate.ok() && reorder.ok();
}

VerifyOptions wall_time_options() {
  VerifyOptions options;
  options.delay_tolerance = Duration::microseconds(150);
  options.rate_tolerance = 0.015;
  options.loss_packets = 2000;
  options.kernel_stamps = true;
  return options;
}

std::vector<LinkVerdict> verify(const Backend& backend, const VerifyOptions& options) {
  const Plan& plan = backend.current();
  std::vector<LinkVerdict> verdicts;
  for (const LinkPlan& link : plan.links) {
    LinkVerdict verdict;
    verdict.link = link.name;
    Pair pair(backend, link, options.kernel_stamps);
    measure_delay(pair, link, options, verdict);
    measure_rate(pair, plan, link, options, verdict);
    measure_chances(pair, link, options, verdict);
    verdicts.push_back(std::move(verdict));
  }
  return verdicts;
}

std::string to_text(const std::vector<LinkVerdict>& verdicts) {
  std::size_t width = 4;
  for (const LinkVerdict& verdict : verdicts) width = std::max(width, verdict.link.size());
  std::string text;
  for (const LinkVerdict& verdict : verdicts) {
    const auto row = [&](const char* property, const PropertyCheck& check, const auto& shown) {
      if (check.verdict == "none asked") return;
      text += padded(verdict.link, width) + "  " + padded(property, 9) + "  asked " +
              padded(shown(check.asked), 12) + "  measured " +
              padded(check.measured ? shown(*check.measured) : std::string("-"), 12) + "  " +
              check.verdict + "\n";
    };
    const auto time = [](double seconds) {
      return seconds < 1e-3 ? figure(seconds * 1e6, "us")
             : seconds < 1  ? figure(seconds * 1e3, "ms")
                            : figure(seconds, "s");
    };
    const auto rate = [](double bits) {
      return bits < 1e6   ? figure(bits * 1e-3, "kbit/s")
             : bits < 1e9 ? figure(bits * 1e-6, "Mbit/s")
                          : figure(bits * 1e-9, "Gbit/s");
    };
    const auto part = [](double p) { return figure(p * 100, "%"); };
    row("delay", verdict.delay, time);
    row("jitter", verdict.jitter, time);
    row("rate", verdict.rate, rate);
    row("loss", verdict.loss, part);
    row("duplicate", verdict.duplicate, part);
    row("reorder", verdict.reorder, part);
  }
  return text;
}

}  // namespace orrery::netshape
