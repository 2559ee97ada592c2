#include "netshape/capabilities.hh"

#include <fcntl.h>
#include <linux/if_link.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <sstream>
#include <stdexcept>
#include <string_view>

#include "base/error.hh"
#include "base/fd.hh"
#include "netshape/fabric/tap.hh"
#include "netshape/namespace.hh"
#include "netshape/netem.hh"
#include "netshape/netlink.hh"
#include "netshape/user_namespace.hh"

namespace orrery::netshape {
namespace {

constexpr const char* namespaces = "network namespaces";
constexpr const char* veth = "veth";
constexpr const char* netem = "netem";
constexpr const char* tap = "tap";

constexpr int first_end = 10;
constexpr int device = 20;

/// One thing to try. Later ones use what earlier ones made.
struct Attempt {
  const char* name;
  const char* degrades;
  std::function<void()> make;
};

ifinfomsg link_header(int index) {
  ifinfomsg header{};
  header.ifi_family = AF_UNSPEC;
  header.ifi_index = index;
  return header;
}

void make_veth() {
  Message message("make a veth pair", RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL);
  message.needs("CONFIG_VETH (module veth)").header(link_header(first_end));
  message.open(IFLA_LINKINFO).put_text(IFLA_INFO_KIND, "veth").open(IFLA_INFO_DATA);
  message.open(VETH_INFO_PEER).header(link_header(first_end + 1)).close().close().close();
  NetlinkSocket().request(std::move(message));
}

void make_device(const std::string& kind, const std::string& needs) {
  Message message("make a device of kind " + kind, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL);
  message.needs(needs).header(link_header(device));
  message.open(IFLA_LINKINFO).put_text(IFLA_INFO_KIND, kind).close();
  NetlinkSocket().request(std::move(message));
}

Message queue(const std::string& kind, const std::string& needs, int index) {
  Message message("add a queue of kind " + kind, RTM_NEWQDISC, NLM_F_CREATE | NLM_F_REPLACE);
  tcmsg header{};
  header.tcm_family = AF_UNSPEC;
  header.tcm_ifindex = index;
  header.tcm_parent = TC_H_ROOT;
  header.tcm_handle = 0x4f550000;
  message.needs(needs).header(header).put_text(TCA_KIND, kind);
  return message;
}

// All that a link may ask of it at once, so that a kernel which knows but a part is found out.
void make_netem() {
  Netem all;
  all.latency_ns = 1'000'000;
  all.jitter_ns = 100'000;
  all.table = DelayTable::normal;
  all.loss = share(0.01);
  all.rate = 12'500'000;
  all.packet_overhead = 10;
  const std::vector<std::byte> options = encode(all);
  Message message = queue("netem", "CONFIG_NET_SCH_NETEM (module sch_netem)", first_end);
  message.put_bytes(TCA_OPTIONS, options.data(), options.size());
  NetlinkSocket().request(std::move(message));
}

void make_htb() {
  tc_htb_glob options{};
  options.version = 3;
  options.rate2quantum = 10;
  Message message = queue("htb", "CONFIG_NET_SCH_HTB (module sch_htb)", first_end + 1);
  message.open(TCA_OPTIONS).put(TCA_HTB_INIT, options).close();
  NetlinkSocket().request(std::move(message));
}

void make_cubic() {
  const FileDescriptor socket(
      check_system(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "open a TCP socket"));
  constexpr std::string_view cubic = "cubic";
  check_system(::setsockopt(socket.get(), IPPROTO_TCP, TCP_CONGESTION, cubic.data(), cubic.size()),
               "choose the congestion control cubic");
}

std::vector<Attempt> attempts() {
  return {
      {namespaces, "no network can be built; the exact engine needs none",
       [] {
         enter_user_namespace();
         // Held until the child ends.
         static std::vector<InNamespace> held;
         held.push_back(InNamespace::make());
       }},
      {veth, "no kernel backend: live runs use the fabric", make_veth},
      {netem, "no kernel backend: live runs use the fabric", make_netem},
      {"ifb", "no kernel backend where two nodes are joined without a switch",
       [] { make_device("ifb", "CONFIG_IFB (module ifb)"); }},
      {"htb", "peers cannot share an interface", make_htb},
      {tap, "no fabric: live runs need netem", [] { TapDevice("probe", true); }},
      {"tcp cubic", "connections use the host's congestion control, unlike the exact engine",
       make_cubic},
  };
}

/// One line for each attempt: empty if it went well, else what was lacking.
[[noreturn]] void try_all(int report) {
  bool lost = false;
  for (const Attempt& attempt : attempts()) {
    std::string lack;
    try {
      if (lost) throw MachineError("needs network namespaces");
      attempt.make();
    } catch (const std::exception& error) {
      lack = error.what();
      lost |= attempt.name == std::string(namespaces);
    }
    std::replace(lack.begin(), lack.end(), '\n', ' ');
    write_all(report, lack + "\n", "report to the parent");
  }
  ::_exit(0);
}

std::string first_lack(const Capabilities& capabilities,
                       std::initializer_list<const char*> needed) {
  for (const Capability& capability : capabilities.all)
    for (const char* name : needed)
      if (capability.name == name && !capability.present)
        return capability.name + ": " + capability.lack;
  return "";
}

}  // namespace

bool Capabilities::has(const std::string& name) const {
  return std::any_of(all.begin(), all.end(),
                     [&](const Capability& c) { return c.name == name && c.present; });
}

std::string Capabilities::why_no_kernel_backend() const {
  return first_lack(*this, {namespaces, veth, netem});
}
std::string Capabilities::why_no_fabric_backend() const {
  return first_lack(*this, {namespaces, tap});
}
bool Capabilities::kernel_backend() const { return why_no_kernel_backend().empty(); }
bool Capabilities::fabric_backend() const { return why_no_fabric_backend().empty(); }

Capabilities probe() {
  int ends[2];
  check_system(::pipe2(ends, O_CLOEXEC), "make a pipe");
  const FileDescriptor ours(ends[0]);
  FileDescriptor theirs(ends[1]);
  const pid_t child = ::fork();
  if (child < 0) throw_errno("fork");
  if (child == 0) try_all(theirs.get());
  theirs.reset();
  std::istringstream lines(read_to_end(ours.get()));
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  Capabilities found;
  for (const Attempt& attempt : attempts()) {
    Capability capability{attempt.name, true, "", attempt.degrades};
    if (!std::getline(lines, capability.lack))
      capability.lack = "the attempt ended the program that made it";
    capability.present = capability.lack.empty();
    found.all.push_back(capability);
  }
  return found;
}

std::string to_text(const Capabilities& capabilities) {
  std::ostringstream text;
  for (const Capability& capability : capabilities.all) {
    text << (capability.present ? "yes  " : "no   ") << capability.name;
    if (!capability.present)
      text << ": " << capability.lack << "\n     so: " << capability.degrades;
    text << "\n";
  }
  text << "kernel backend: " << (capabilities.kernel_backend() ? "yes" : "no")
       << ", fabric: " << (capabilities.fabric_backend() ? "yes" : "no") << "\n";
  return text.str();
}

}  // namespace orrery::netshape
