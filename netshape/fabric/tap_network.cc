#include "netshape/fabric/tap_network.hh"

#include <arpa/inet.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/socket.h>

#include <stdexcept>

#include "base/error.hh"
#include "netshape/namespace.hh"
#include "netshape/netlink.hh"

namespace orrery::netshape {
namespace {

// Frames that may wait for us to read them: beyond, the kernel drops. Some tens of milliseconds of
// full frames at 1 Gbit/s.
constexpr std::uint32_t device_queue = 10'000;

// The congestion control that the exact engine's kernel has: a host may have chosen another.
constexpr const char* congestion_control = "cubic";

std::uint32_t network_address(const std::string& text) {
  in_addr address{};
  if (inet_pton(AF_INET, text.c_str(), &address) != 1)
    throw std::logic_error("'" + text + "' is no IPv4 address");
  return address.s_addr;
}

Mac mac_of(std::size_t port) {
  // The bit 2 of the first byte says "locally administered".
  return {0x02,
          0x4f,
          0x46,
          static_cast<std::uint8_t>(port >> 16),
          static_cast<std::uint8_t>(port >> 8),
          static_cast<std::uint8_t>(port)};
}

// Without address resolution: the fabric writes the addresses of each frame that it delivers.
Message bring_up(const std::string& device, int index, std::int64_t mtu) {
  Message message("bring up " + device, RTM_NEWLINK);
  ifinfomsg header{};
  header.ifi_family = AF_UNSPEC;
  header.ifi_index = index;
  header.ifi_flags = IFF_UP | IFF_NOARP;
  header.ifi_change = IFF_UP | IFF_NOARP;
  message.header(header);
  message.put(IFLA_MTU, static_cast<std::uint32_t>(mtu)).put(IFLA_TXQLEN, device_queue);
  return message;
}

Message loopback_up() {
  Message message("bring up lo", RTM_NEWLINK);
  ifinfomsg header{};
  header.ifi_family = AF_UNSPEC;
  header.ifi_index = 1;
  header.ifi_flags = header.ifi_change = IFF_UP;
  message.header(header);
  return message;
}

Message add_address(const std::string& address, int index) {
  Message message("add the address " + address, RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL);
  ifaddrmsg header{};
  header.ifa_family = AF_INET;
  header.ifa_prefixlen = 32;
  header.ifa_index = static_cast<std::uint32_t>(index);
  const std::uint32_t value = network_address(address);
  message.header(header).put(IFA_LOCAL, value).put(IFA_ADDRESS, value);
  return message;
}

// `to` empty: all that no other route is for.
Message add_route(const std::string& to, int index, const std::string& source) {
  Message message("add the route to " + (to.empty() ? "all" : to), RTM_NEWROUTE,
                  NLM_F_CREATE | NLM_F_REPLACE);
  rtmsg header{};
  header.rtm_family = AF_INET;
  header.rtm_dst_len = to.empty() ? 0 : 32;
  header.rtm_table = RT_TABLE_MAIN;
  header.rtm_protocol = RTPROT_STATIC;
  header.rtm_scope = RT_SCOPE_LINK;
  header.rtm_type = RTN_UNICAST;
  message.header(header);
  if (!to.empty()) message.put(RTA_DST, network_address(to));
  message.put(RTA_OIF, index).put(RTA_PREFSRC, network_address(source));
  return message;
}

// Best effort, told in the record: a kernel may not have it, or not allow it in a user namespace.
std::string set_congestion_control() {
  try {
    if (write_setting("ipv4/tcp_congestion_control", congestion_control)) return congestion_control;
  } catch (const SystemError&) {
  }
  return "the host's own";
}

void configure_kernel(const VertexPlan& vertex, bool forwards) {
  write_setting("ipv6/conf/all/disable_ipv6", "1");
  write_setting("ipv6/conf/default/disable_ipv6", "1");
  for (const char* scope : {"all", "default"}) {
    write_setting(std::string("ipv4/conf/") + scope + "/send_redirects", "0");
    // New namespaces inherit the host's; routes here need not be symmetric.
    write_setting(std::string("ipv4/conf/") + scope + "/rp_filter", "0");
  }
  write_setting("ipv4/ip_forward", forwards ? "1" : "0");
  // A connection shall not begin with what the kernel learnt from the one before.
  write_setting("ipv4/tcp_no_metrics_save", "1");
  // Twice the payload: the kernel counts its own bookkeeping in the same figure.
  const std::string most = std::to_string(2 * vertex.socket_buffer.value);
  write_setting("ipv4/tcp_rmem", "4096 131072 " + most);
  write_setting("ipv4/tcp_wmem", "4096 16384 " + most);
}

}  // namespace

void TapNetwork::make_vertex(const Plan& plan, const VertexPlan& vertex,
                             std::vector<std::size_t> ports, bool offload) {
  const InNamespace inside = InNamespace::make();
  configure_kernel(vertex, !vertex.is_switch && ports.size() > 1);
  record_.push_back(
      {vertex.name, "tcp congestion control", congestion_control, set_congestion_control()});
  std::vector<Message> batch;
  batch.push_back(loopback_up());
  std::vector<int> indices;
  for (std::size_t k = 0; k < ports.size(); ++k) {
    const std::string name = (vertex.is_switch ? "self" : "eth") + std::to_string(k);
    Device device{ports[k], TapDevice(name, offload), {}};
    const bool between = ports[k] < plan.links.size();
    device.tap.set_mac(mac_of(ports[k]));
    device.neighbour = mac_of(between ? ports[k] ^ 1 : ports[k]);
    indices.push_back(device.tap.index());
    batch.push_back(bring_up(name, device.tap.index(), plan.mtu));
    devices_.push_back(std::move(device));
  }
  if (ports.empty()) {
    batch.push_back(add_address(vertex.address, 1));
  } else {
    batch.push_back(add_address(vertex.address, indices.front()));
    if (ports.size() == 1) batch.push_back(add_route("", indices.front(), vertex.address));
    for (std::size_t k = 0; ports.size() > 1 && k < ports.size(); ++k) {
      const std::string& neighbour = plan.links[ports[k]].to;
      batch.push_back(add_route(plan.vertex(neighbour).address, indices[k], vertex.address));
      for (const Route& route : vertex.routes)
        if (route.via == neighbour && route.to != neighbour)
          batch.push_back(add_route(plan.vertex(route.to).address, indices[k], vertex.address));
    }
  }
  NetlinkSocket().request(batch);
  namespaces_.emplace(vertex.name, InNamespace::current());
}

TapNetwork::TapNetwork(const Plan& plan, bool offload) {
  std::size_t switches = 0;
  for (const VertexPlan& vertex : plan.vertices) {
    std::vector<std::size_t> ports;
    if (vertex.is_switch) {
      ports.push_back(plan.links.size() + switches++);
    } else {
      for (std::size_t i = 0; i < plan.links.size(); ++i)
        if (plan.links[i].from == vertex.name) ports.push_back(i);
    }
    make_vertex(plan, vertex, std::move(ports), offload);
  }
}

int TapNetwork::descriptor(const std::string& vertex) const {
  const auto found = namespaces_.find(vertex);
  if (found == namespaces_.end()) throw std::logic_error("the network has no '" + vertex + "'");
  return found->second.get();
}

}  // namespace orrery::netshape
