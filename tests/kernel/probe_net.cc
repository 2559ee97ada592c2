// The network: two namespaces joined by a veth pair, and each queueing discipline by its effect.

#include <fcntl.h>
#include <linux/genetlink.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/if_tun.h>
#include <linux/netlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstring>
#include <vector>

#include "probe.hh"

namespace orrery::probe {
namespace {

/// Delays are given in units of what the emulated clock can tell apart (256 ns), so that measured
/// differences are exact.
constexpr std::int64_t kDelayNs = 10'240'000;
constexpr const char* kDelay = "10240us";
constexpr const char* kTwiceDelay = "20480us";

/// Addresses 10.0.0.1 on `west` in our namespace and 10.0.0.2 on `east` in another, which a child
/// holds.
class Pair {
 public:
  /// Runs `body` in the other namespace; sockets that it opens stay there.
  template <class Body>
  auto there(const Body& body) {
    struct Back {
      Pair& pair;
      ~Back() { setns(pair.here_, CLONE_NEWNET); }
    } back{*this};
    enter(there_);
    return body();
  }

  Pair() {
    check(prctl(PR_SET_TIMERSLACK, 1), "prctl");
    here_ = check(open("/proc/self/ns/net", O_RDONLY), "open our namespace");
    check(unshare(CLONE_NEWNET), "unshare");
    there_ = check(open("/proc/self/ns/net", O_RDONLY), "open the other namespace");
    holder_ = check(fork(), "fork");
    if (holder_ == 0) {
      for (;;) pause();
    }
    enter(here_);
    run("ip -batch -",
        "link add name west address 02:00:00:00:00:01 type veth peer name east address "
        "02:00:00:00:00:02 netns " +
            std::to_string(holder_) + "\n" +
            "addr add 10.0.0.1/24 dev west\nlink set west up\nlink set lo up\n"
            "neigh replace 10.0.0.2 lladdr 02:00:00:00:00:02 dev west nud permanent\n");
    there([] {
      run("ip -batch -",
          "addr add 10.0.0.2/24 dev east\nlink set east up\nlink set lo up\n"
          "neigh replace 10.0.0.1 lladdr 02:00:00:00:00:01 dev east nud permanent\n");
    });
  }
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;
  ~Pair() { kill(holder_, SIGKILL); }

 private:
  static void enter(int ns) { check(setns(ns, CLONE_NEWNET), "setns"); }

  int here_ = -1;
  int there_ = -1;
  pid_t holder_ = -1;
};

sockaddr_in address(const char* host, int port) {
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  expect(std::sscanf(host, "%u.%u.%u.%u", &a, &b, &c, &d) == 4, "an IPv4 address");
  sockaddr_in result{};
  result.sin_family = AF_INET;
  result.sin_port = htons(static_cast<std::uint16_t>(port));
  result.sin_addr.s_addr = htonl(a << 24 | b << 16 | c << 8 | d);
  return result;
}

/// A UDP socket; bound if `port` is given.
int udp(int port = 0) {
  const int fd = check(socket(AF_INET, SOCK_DGRAM, 0), "socket");
  const int big = 8 << 20;
  check(setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &big, sizeof big), "SO_RCVBUFFORCE");
  check(setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &big, sizeof big), "SO_SNDBUFFORCE");
  if (port != 0) {
    const sockaddr_in any = address("0.0.0.0", port);
    check(bind(fd, reinterpret_cast<const sockaddr*>(&any), sizeof any), "bind");
  }
  return fd;
}

void send_to(int fd, const char* host, int port, std::size_t size, char first = 'x') {
  std::vector<char> data(size, 'x');
  data[0] = first;
  const sockaddr_in to = address(host, port);
  check(sendto(fd, data.data(), size, 0, reinterpret_cast<const sockaddr*>(&to), sizeof to),
        "sendto");
}

/// Waits for one datagram and returns its first byte; 0 after two emulated seconds without one.
char receive(int fd) {
  const timeval two_seconds{2, 0};
  check(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &two_seconds, sizeof two_seconds), "SO_RCVTIMEO");
  std::array<char, 65536> data{};
  const ssize_t size = recv(fd, data.data(), data.size(), 0);
  if (size == -1 && errno == EAGAIN) return 0;
  check(size, "recv");
  return data[0];
}

/// How long one small datagram takes from here to port `port` there.
std::int64_t one_way(Pair& pair, int port = 7000, int mark = 0) {
  const int in = pair.there([&] { return udp(port); });
  const int out = udp();
  if (mark != 0) check(setsockopt(out, SOL_SOCKET, SO_MARK, &mark, sizeof mark), "SO_MARK");
  const std::int64_t start = now();
  send_to(out, "10.0.0.2", port, 100);
  expect(receive(in) == 'x', "the datagram arrived");
  const std::int64_t took = now() - start;
  close(in);
  close(out);
  return took;
}

/// Sends `count` datagrams of 1,000 bytes at once; returns the time from the first's arrival to the
/// last's, that is count - 1 frames of 1,042 bytes.
std::int64_t spread(Pair& pair, int count, int pacing_rate = 0) {
  const int in = pair.there([&] { return udp(7000); });
  const int out = udp();
  if (pacing_rate != 0) {
    check(setsockopt(out, SOL_SOCKET, SO_MAX_PACING_RATE, &pacing_rate, sizeof pacing_rate),
          "SO_MAX_PACING_RATE");
  }
  for (int i = 0; i < count; ++i) send_to(out, "10.0.0.2", 7000, 1000);
  expect(receive(in) == 'x', "the first datagram arrived");
  const std::int64_t first = now();
  for (int i = 1; i < count; ++i) expect(receive(in) == 'x', "every datagram arrived");
  const std::int64_t took = now() - first;
  close(in);
  close(out);
  return took;
}

const Registration veth{"veth", [] {
                          Pair pair;
                          report("one_way_ns", one_way(pair));
                        }};

const Registration netem{
    "netem_delay", [] {
      Pair pair;
      const std::int64_t without = one_way(pair);
      run(std::string("tc qdisc add dev west root netem delay ") + kDelay);
      const std::int64_t once = one_way(pair);
      run(std::string("tc qdisc change dev west root netem delay ") + kTwiceDelay);
      const std::int64_t twice = one_way(pair);
      report("without_ns", without);
      report("once_ns", once);
      report("difference_ns", twice - once);
      expect(once >= kDelayNs, "not faster than the delay");
    }};

const Registration netem_loss{
    "netem_loss", [] {
      Pair pair;
      run("tc qdisc add dev west root netem loss 10% delay 5ms 1ms limit 100000");
      const int in = pair.there([] { return udp(7000); });
      const int out = udp();
      std::string arrived;
      for (int i = 0; i < 400; ++i) {
        const std::int64_t start = now();
        send_to(out, "10.0.0.2", 7000, 100);
        usleep(10'000);
        std::array<char, 100> data{};
        const bool got = recv(in, data.data(), data.size(), MSG_DONTWAIT) > 0;
        arrived += got ? '1' : '0';
        expect(now() - start < 20'000'000, "time goes on as planned");
      }
      report("arrived", arrived);
    }};

const Registration htb{
    "htb", [] {
      Pair pair;
      run("tc -batch -",
          "qdisc add dev west root handle 1: htb default 1\n"
          "class add dev west parent 1: classid 1:1 htb rate 8mbit burst 1100 cburst 1100\n");
      report("spread_ns", spread(pair, 101));
    }};

const Registration tbf{"tbf", [] {
                         Pair pair;
                         run("tc qdisc add dev west root tbf rate 8mbit burst 1100 limit 1000000");
                         report("spread_ns", spread(pair, 101));
                       }};

const Registration fq{"fq", [] {
                        Pair pair;
                        run("tc qdisc add dev west root fq flow_limit 1000");
                        report("spread_ns", spread(pair, 101, 1'000'000));
                      }};

const Registration prio{
    "prio", [] {
      Pair pair;
      run("tc -batch -",
          "qdisc add dev west root handle 1: tbf rate 8mbit burst 1100 limit 1000000\n"
          "qdisc add dev west parent 1:1 handle 10: prio\n");
      const int in = pair.there([] { return udp(7000); });
      const int bulk = udp();
      const int urgent = udp();
      const int low = 2;
      const int high = 6;
      check(setsockopt(bulk, SOL_SOCKET, SO_PRIORITY, &low, sizeof low), "SO_PRIORITY");
      check(setsockopt(urgent, SOL_SOCKET, SO_PRIORITY, &high, sizeof high), "SO_PRIORITY");
      for (int i = 0; i < 20; ++i) send_to(bulk, "10.0.0.2", 7000, 1000, 'b');
      for (int i = 0; i < 5; ++i) send_to(urgent, "10.0.0.2", 7000, 1000, 'u');
      std::string order;
      for (int i = 0; i < 25; ++i) order += receive(in);
      report("order", order);
    }};

/// A filter that sends some datagrams through a delayed band and no others.
void band_filter(const std::string& filter, int port, int mark) {
  Pair pair;
  run("tc -batch -",
      "qdisc add dev west root handle 1: prio\n"
      "qdisc add dev west parent 1:3 handle 30: netem delay " +
          std::string(kDelay) + "\n" + "filter add dev west parent 1: protocol ip " + filter +
          "\n");
  report("matching_ns", one_way(pair, port, mark));
  report("other_ns", one_way(pair, 7001));
}

const Registration u32{"u32",
                       [] { band_filter("u32 match ip dport 7777 0xffff flowid 1:3", 7777, 0); }};
const Registration flower{
    "flower", [] { band_filter("flower ip_proto udp dst_port 7777 classid 1:3", 7777, 0); }};
const Registration fw{"fw", [] { band_filter("handle 7 fw classid 1:3", 7777, 7); }};

const Registration ifb{"ifb", [] {
                         // Shaping of what comes in: all of it goes round by an ifb device.
                         Pair pair;
                         const std::int64_t without = one_way(pair);
                         pair.there([] {
                           run("ip link add ifb0 type ifb");
                           run("ip link set ifb0 up");
                           run("tc -batch -", std::string("qdisc add dev ifb0 root netem delay ") +
                                                  kDelay +
                                                  "\nqdisc add dev east handle ffff: ingress\n"
                                                  "filter add dev east parent ffff: matchall "
                                                  "action mirred egress redirect dev ifb0\n");
                         });
                         report("delay_ns", one_way(pair) - without);
                       }};

const Registration tcp{
    "tcp", [] {
      Pair pair;
      run("tc qdisc add dev west root netem delay 1ms rate 100mbit limit 100000");
      const int server =
          pair.there([] { return check(socket(AF_INET, SOCK_STREAM, 0), "socket"); });
      const sockaddr_in to = address("10.0.0.2", 7000);
      check(bind(server, reinterpret_cast<const sockaddr*>(&to), sizeof to), "bind");
      check(listen(server, 1), "listen");
      constexpr std::size_t kBytes = 5'000'000;
      for (const char* control : {"cubic", "bbr"}) {
        const int client = check(socket(AF_INET, SOCK_STREAM, 0), "socket");
        check(setsockopt(client, IPPROTO_TCP, TCP_CONGESTION, control,
                         static_cast<socklen_t>(std::strlen(control))),
              "TCP_CONGESTION");
        const std::int64_t start = now();
        check(connect(client, reinterpret_cast<const sockaddr*>(&to), sizeof to), "connect");
        const int accepted = check(accept(server, nullptr, nullptr), "accept");
        const pid_t sender = check(fork(), "fork");
        if (sender == 0) {
          const std::vector<char> data(kBytes, 't');
          std::size_t sent = 0;
          while (sent < kBytes) {
            sent += static_cast<std::size_t>(
                check(send(client, &data[sent], kBytes - sent, 0), "send"));
          }
          _exit(0);
        }
        std::vector<char> data(1 << 16);
        std::size_t got = 0;
        while (got < kBytes) {
          got +=
              static_cast<std::size_t>(check(recv(accepted, data.data(), data.size(), 0), "recv"));
        }
        report(std::string(control) + "_ns", now() - start);
        check(waitpid(sender, nullptr, 0), "waitpid");
        // A socket's state can be read, as ss does.
        expect(run("ss -tni").find(control) != std::string::npos, "ss shows the connection");
        close(client);
        close(accepted);
      }
    }};

const Registration routing{
    "routing", [] {
      Pair pair;
      run("ip -batch -",
          "route add 10.5.0.0/16 nexthop via 10.0.0.2 nexthop via 10.0.0.3\n"
          "route add 10.6.0.0/16 via 10.0.0.2 table 66\nrule add to 10.6.0.0/16 table 66\n");
      expect(run("ip route get 10.6.1.1").find("table 66") != std::string::npos,
             "the rule is used");
      expect(run("ip route show 10.5.0.0/16").find("nexthop via 10.0.0.3") != std::string::npos,
             "the route has two next hops");
    }};

const Registration bridge{
    "bridge", [] {
      // west and in0 are ports; what goes from out0 to east crosses the bridge.
      Pair pair;
      run("ip -batch -",
          "link add name bridge0 type bridge\nlink set dev bridge0 up\naddr flush dev west\n"
          "link add name in0 type veth peer name out0\nlink set dev west master bridge0\n"
          "link set dev in0 master bridge0\nlink set dev in0 up\nlink set dev out0 up\n"
          "link set dev out0 address 02:00:00:00:00:01\naddr add 10.0.0.1/24 dev out0\n"
          "neigh replace 10.0.0.2 lladdr 02:00:00:00:00:02 dev out0 nud permanent\n");
      report("one_way_ns", one_way(pair));
    }};

const Registration packet{
    "packet_socket", [] {
      Pair pair;
      const int raw = pair.there(
          [] { return check(socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL)), "packet socket"); });
      one_way(pair);
      std::array<char, 2048> frame{};
      ssize_t size = 0;
      do {
        size = check(recv(raw, frame.data(), frame.size(), 0), "recv");
      } while (size != 14 + 20 + 8 + 100);
      expect(frame[5] == 2 && frame[11] == 1, "the frame carries both hardware addresses");
    }};

const Registration tun{
    "tun", [] {
      const int fd = check(open("/dev/net/tun", O_RDWR), "open /dev/net/tun");
      ifreq request{};
      request.ifr_flags = IFF_TUN | IFF_NO_PI;
      std::strcpy(request.ifr_name, "tun0");
      check(ioctl(fd, TUNSETIFF, &request), "TUNSETIFF");
      run("ip addr add 10.1.0.1/24 dev tun0");
      run("ip link set tun0 up");
      send_to(udp(), "10.1.0.2", 7000, 100);
      std::array<char, 2048> data{};
      ssize_t size = 0;
      do {
        size = check(read(fd, data.data(), data.size()), "read the device");
      } while (size != 20 + 8 + 100);
      expect(static_cast<unsigned char>(data[0]) == 0x45 && data[16] == 10 && data[19] == 2,
             "the datagram came out of the device");
    }};

const Registration ethtool{"ethtool_netlink", [] {
                             // The generic netlink family that switches offloads: ask the kernel
                             // for it by name.
                             const int fd =
                                 check(socket(AF_NETLINK, SOCK_RAW, NETLINK_GENERIC), "socket");
                             struct {
                               nlmsghdr header;
                               genlmsghdr generic;
                               nlattr attribute;
                               std::array<char, 8> name;
                             } ask{};
                             ask.header.nlmsg_len = sizeof ask;
                             ask.header.nlmsg_type = GENL_ID_CTRL;
                             ask.header.nlmsg_flags = NLM_F_REQUEST;
                             ask.generic.cmd = CTRL_CMD_GETFAMILY;
                             ask.generic.version = 1;
                             ask.attribute.nla_len = NLA_HDRLEN + 8;
                             ask.attribute.nla_type = CTRL_ATTR_FAMILY_NAME;
                             std::strcpy(ask.name.data(), "ethtool");
                             check(send(fd, &ask, sizeof ask, 0), "send");
                             alignas(nlmsghdr) std::array<char, 8192> answer{};
                             check(recv(fd, answer.data(), answer.size(), 0), "recv");
                             nlmsghdr header{};
                             std::memcpy(&header, answer.data(), sizeof header);
                             expect(header.nlmsg_type == GENL_ID_CTRL, "the kernel has the family");
                           }};

}  // namespace
}  // namespace orrery::probe
