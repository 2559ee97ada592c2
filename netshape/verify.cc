#include "netshape/verify.hh"

#include <arpa/inet.h>
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
  Pair(const Backend& backend, const LinkPlan& link)
      : from_(open_at(backend, link.from)), to_(open_at(backend, link.to)) {
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
      if (recv(to_.get(), &arrival.number, sizeof arrival.number, MSG_TRUNC | MSG_DONTWAIT) >= 4)
        return arrival;
    }
  }

 private:
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

void measure_delay(Pair& pair, const LinkPlan& link, const VerifyOptions& options,
                   LinkVerdict& verdict) {
  std::vector<std::int64_t> delays;
  const std::int64_t on_line =
      link.spec.rate ? link.spec.rate->time_for(counted_bytes(link, probe_payload)).ns : 0;
  for (int i = 0; i < options.probes; ++i) {
    const auto number = static_cast<std::uint32_t>(i);
    const std::int64_t sent = now_ns();
    if (!pair.send(number, probe_payload)) continue;
    const std::int64_t deadline = sent + patience_ns(link) + on_line;
    while (const std::optional<Arrival> arrival = pair.receive(deadline)) {
      if (arrival->number != number) continue;  // a copy, or a late one
      delays.push_back(arrival->ns - sent - on_line);
      break;
    }
  }
  if (delays.empty()) {
    verdict.delay_verdict = link.spec.loss.value > 0 ? "not measured: every probe was lost"
                                                     : "not measured: no probe arrived";
    return;
  }
  std::nth_element(delays.begin(), delays.begin() + static_cast<std::ptrdiff_t>(delays.size() / 2),
                   delays.end());
  const Duration median{delays[delays.size() / 2]};
  verdict.measured_delay = median;
  const double spread =
      4 * static_cast<double>(link.spec.jitter.ns) / std::sqrt(static_cast<double>(delays.size()));
  const double tolerance = static_cast<double>(options.delay_tolerance.ns) + spread +
                           options.delay_relative * static_cast<double>(link.spec.delay.ns);
  const Duration error = median - link.spec.delay;
  verdict.delay_verdict = std::abs(static_cast<double>(error.ns)) <= tolerance
                              ? "ok"
                              : "off by " + std::string(error.ns >= 0 ? "+" : "-") +
                                    to_string(Duration{std::abs(error.ns)});
}

void measure_rate(Pair& pair, const Plan& plan, const LinkPlan& link, const VerifyOptions& options,
                  LinkVerdict& verdict) {
  if (!link.spec.rate) {
    verdict.rate_verdict = "none asked";
    return;
  }
  const std::int64_t payload = plan.mtu - ip_and_udp;
  const std::int64_t frame_ns = link.frame_time_ns.value;
  const auto train =
      static_cast<int>(std::min<std::int64_t>(options.train, link.queue_packets.value));
  if (train < least_train) {
    verdict.rate_verdict = "not measured: the queue holds too few packets for a train";
    return;
  }
  const double shown = static_cast<double>(frame_ns * train) * options.rate_tolerance;
  if (8 * static_cast<double>(link.spec.jitter.ns) > shown) {
    verdict.rate_verdict = "not measured: the jitter would hide it";
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
    verdict.rate_verdict = "not measured: " + std::to_string(arrivals.size()) + " of " +
                           std::to_string(sent) + " packets of the train arrived";
    return;
  }
  const std::int64_t span = arrivals.back().ns - arrivals.front().ns;
  if (sending > frame_ns * sent) {
    verdict.rate_verdict = "not measured: this machine sends more slowly than the link";
    return;
  }
  // What was lost never reached the line, so the arrivals follow one another without a gap.
  const double bits = 8.0 * static_cast<double>(counted_bytes(link, payload)) *
                      static_cast<double>(arrivals.size() - 1);
  const double rate = bits / (static_cast<double>(std::max<std::int64_t>(span, 1)) * 1e-9);
  verdict.measured_rate = BitRate{static_cast<std::int64_t>(std::llround(rate))};
  const double error = rate / static_cast<double>(link.spec.rate->bits_per_second) - 1;
  verdict.rate_verdict = std::abs(error) <= options.rate_tolerance ? "ok" : off_by(error);
}

std::string padded(std::string text, std::size_t width) {
  if (text.size() < width) text.append(width - text.size(), ' ');
  return text;
}

}  // namespace

std::vector<LinkVerdict> verify(const Backend& backend, const VerifyOptions& options) {
  const Plan& plan = backend.current();
  std::vector<LinkVerdict> verdicts;
  for (const LinkPlan& link : plan.links) {
    LinkVerdict verdict;
    verdict.link = link.name;
    verdict.asked_delay = link.spec.delay;
    verdict.asked_rate = link.spec.rate;
    verdict.loss_asked = link.spec.loss.value;
    Pair pair(backend, link);
    measure_delay(pair, link, options, verdict);
    measure_rate(pair, plan, link, options, verdict);
    verdicts.push_back(std::move(verdict));
  }
  return verdicts;
}

std::string to_text(const std::vector<LinkVerdict>& verdicts) {
  std::size_t width = 4;
  for (const LinkVerdict& verdict : verdicts) width = std::max(width, verdict.link.size());
  std::string text;
  for (const LinkVerdict& verdict : verdicts) {
    text += padded(verdict.link, width) + "  delay asked " + to_string(verdict.asked_delay) +
            ", measured " +
            (verdict.measured_delay ? to_string(*verdict.measured_delay) : std::string("-")) +
            ": " + verdict.delay_verdict + "; rate asked " +
            (verdict.asked_rate ? to_string(*verdict.asked_rate) : std::string("none")) +
            ", measured " +
            (verdict.measured_rate ? to_string(*verdict.measured_rate) : std::string("-")) + ": " +
            verdict.rate_verdict + "\n";
  }
  return text;
}

}  // namespace orrery::netshape
