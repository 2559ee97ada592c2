#include "netshape/kernel_backend.hh"

#include <arpa/inet.h>
#include <linux/ethtool.h>
#include <linux/gen_stats.h>
#include <linux/if_ether.h>
#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <linux/tc_act/tc_mirred.h>
#include <linux/veth.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <set>

#include "base/error.hh"
#include "base/fd.hh"
#include "netshape/namespace.hh"
#include "netshape/netlink.hh"

namespace orrery::netshape {
namespace {

// Ours by these numbers: "OR", "OS", "OT". A queue with another handle is someone else's.
constexpr std::uint32_t path_handle = 0x4f520000;
constexpr std::uint32_t line_handle = 0x4f530000;
constexpr std::uint32_t open_handle = 0x4f540000;
constexpr std::uint32_t line_parent = path_handle | 1;
constexpr std::uint32_t ingress_handle = 0xffff0000;
constexpr std::int64_t wire_extra = 24;
constexpr int first_port_index = 10;

using Mac = std::array<std::uint8_t, 6>;

// Where one end of a link is: the port k of its vertex, and the ifb for what arrives there.
struct Port {
  std::string neighbour;
  int index = 0;
  std::string device;
  int ifb_index = 0;
  std::string ifb;
  Mac mac{};
};

struct Member {
  FileDescriptor name_space;
  NetlinkSocket socket;
  FileDescriptor control;  // for the ethtool ioctl
  std::vector<Port> ports = {};

  const Port& to(const std::string& neighbour) const {
    for (const Port& port : ports)
      if (port.neighbour == neighbour) return port;
    throw std::logic_error("no port to '" + neighbour + "'");
  }
};

// The device that holds a direction's queues, and whose namespace that is.
struct Site {
  std::string vertex;
  int index = 0;
};

struct QueueState {
  Netem netem;
  std::int64_t packets = 0;
  std::int64_t bytes = 0;
  std::int64_t drops = 0;
  std::int64_t queued = 0;
};

using Batch = std::vector<Message>;

std::uint32_t network_address(const std::string& text) {
  in_addr address{};
  if (inet_pton(AF_INET, text.c_str(), &address) != 1)
    throw std::logic_error("'" + text + "' is no IPv4 address");
  return address.s_addr;
}

Mac mac_of(std::size_t vertex, std::size_t port) {
  // The bit 2 of the first byte says "locally administered".
  return {0x02,
          0x4f,
          static_cast<std::uint8_t>(vertex >> 8),
          static_cast<std::uint8_t>(vertex),
          static_cast<std::uint8_t>(port >> 8),
          static_cast<std::uint8_t>(port)};
}

// --- messages

ifinfomsg link_header(int index, bool up) {
  ifinfomsg header{};
  header.ifi_family = AF_UNSPEC;
  header.ifi_index = index;
  if (up) header.ifi_flags = header.ifi_change = IFF_UP;
  return header;
}

Message add_veth(const std::string& what, const Port& here, const Port& there, int there_namespace,
                 std::int64_t mtu) {
  Message message("add the veth pair of " + what, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL);
  const auto mtu32 = static_cast<std::uint32_t>(mtu);
  message.needs("CONFIG_VETH (module veth)").header(link_header(here.index, false));
  message.put_text(IFLA_IFNAME, here.device).put(IFLA_ADDRESS, here.mac).put(IFLA_MTU, mtu32);
  message.open(IFLA_LINKINFO).put_text(IFLA_INFO_KIND, "veth").open(IFLA_INFO_DATA);
  message.open(VETH_INFO_PEER).header(link_header(there.index, false));
  message.put_text(IFLA_IFNAME, there.device).put(IFLA_ADDRESS, there.mac).put(IFLA_MTU, mtu32);
  message.put(IFLA_NET_NS_FD, there_namespace);
  message.close().close().close();
  return message;
}

Message add_ifb(const Port& port, std::int64_t mtu) {
  Message message("add the device " + port.ifb, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL);
  message.needs("CONFIG_IFB (module ifb)").header(link_header(port.ifb_index, true));
  message.put_text(IFLA_IFNAME, port.ifb).put(IFLA_MTU, static_cast<std::uint32_t>(mtu));
  message.open(IFLA_LINKINFO).put_text(IFLA_INFO_KIND, "ifb").close();
  return message;
}

Message bring_up(const std::string& device, int index) {
  Message message("bring up " + device, RTM_NEWLINK);
  message.header(link_header(index, true));
  return message;
}

Message limit_super_packets(const Port& port, std::int64_t segments, std::int64_t bytes) {
  Message message("limit super-packets of " + port.device, RTM_NEWLINK);
  message.header(link_header(port.index, false));
  message.put(IFLA_GSO_MAX_SEGS, static_cast<std::uint32_t>(segments));
  message.put(IFLA_GSO_MAX_SIZE, static_cast<std::uint32_t>(bytes));
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

Message add_neighbour(const std::string& address, const Port& port, const Mac& mac) {
  Message message("add the neighbour " + address, RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_REPLACE);
  ndmsg header{};
  header.ndm_family = AF_INET;
  header.ndm_ifindex = port.index;
  // Permanent: address resolution would send packets, and has random timers.
  header.ndm_state = NUD_PERMANENT;
  message.header(header).put(NDA_DST, network_address(address)).put(NDA_LLADDR, mac);
  return message;
}

struct RouteEntry {
  std::optional<std::string> to;       // none: the default route
  std::optional<std::string> gateway;  // none: directly on the port
  std::string source;
};

Message add_route(const RouteEntry& route, const Port& port) {
  Message message("add the route to " + route.to.value_or("all") + " by " + port.device,
                  RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL);
  rtmsg header{};
  header.rtm_family = AF_INET;
  header.rtm_dst_len = route.to ? 32 : 0;
  header.rtm_table = RT_TABLE_MAIN;
  header.rtm_protocol = RTPROT_STATIC;
  header.rtm_scope = route.gateway ? RT_SCOPE_UNIVERSE : RT_SCOPE_LINK;
  header.rtm_type = RTN_UNICAST;
  if (route.gateway) header.rtm_flags = RTNH_F_ONLINK;
  message.header(header);
  if (route.to) message.put(RTA_DST, network_address(*route.to));
  if (route.gateway) message.put(RTA_GATEWAY, network_address(*route.gateway));
  message.put(RTA_OIF, port.index).put(RTA_PREFSRC, network_address(route.source));
  return message;
}

tcmsg queue_header(int index, std::uint32_t parent, std::uint32_t handle) {
  tcmsg header{};
  header.tcm_family = AF_UNSPEC;
  header.tcm_ifindex = index;
  header.tcm_parent = parent;
  header.tcm_handle = handle;
  return header;
}

enum class Action { add, change };

Message put_netem(const std::string& link, Action action, int index, std::uint32_t parent,
                  std::uint32_t handle, const Netem& netem) {
  const std::string verb = action == Action::add ? "add" : "change";
  Message message(verb + " netem of " + link, RTM_NEWQDISC,
                  action == Action::add ? NLM_F_CREATE | NLM_F_EXCL : 0);
  if (action == Action::add) message.needs("netem (CONFIG_NET_SCH_NETEM, module sch_netem)");
  message.header(queue_header(index, parent, handle)).put_text(TCA_KIND, "netem");
  const std::vector<std::byte> options = encode(netem);
  message.put_bytes(TCA_OPTIONS, options.data(), options.size());
  return message;
}

Message put_path(const LinkPlan& link, Action action, int index) {
  return put_netem(link.name, action, index, TC_H_ROOT, path_handle, link.path);
}

Message put_line(const LinkPlan& link, Action action, int index, const Netem& line) {
  return put_netem(link.name, action, index, line_parent, line_handle, line);
}

Message drop_line(const LinkPlan& link, int index) {
  Message message("take away the queue of " + link.name, RTM_DELQDISC);
  message.header(queue_header(index, line_parent, line_handle));
  return message;
}

// A device whose other end came up after it drops all packets, silently, until the kernel's link
// watcher has run, up to a second later. Giving it a queue while both ends are up activates it at
// once; "noqueue" is the one that it would have had.
Message activate(const Port& port) {
  Message message("activate " + port.device, RTM_NEWQDISC, NLM_F_CREATE | NLM_F_EXCL);
  message.header(queue_header(port.index, TC_H_ROOT, open_handle)).put_text(TCA_KIND, "noqueue");
  return message;
}

// What arrives at `port` goes through its ifb first, and then on as if it had only just arrived.
void redirect_arrivals(const Port& port, Batch& batch) {
  Message ingress("add an ingress hook to " + port.device, RTM_NEWQDISC, NLM_F_CREATE | NLM_F_EXCL);
  ingress.needs("CONFIG_NET_SCH_INGRESS (module sch_ingress)");
  ingress.header(queue_header(port.index, TC_H_INGRESS, ingress_handle));
  ingress.put_text(TCA_KIND, "ingress");
  batch.push_back(std::move(ingress));

  Message filter("send what arrives at " + port.device + " to " + port.ifb, RTM_NEWTFILTER,
                 NLM_F_CREATE | NLM_F_EXCL);
  filter.needs("CONFIG_NET_CLS_U32 (module cls_u32) or CONFIG_NET_ACT_MIRRED (module act_mirred)");
  tcmsg header = queue_header(port.index, ingress_handle, 0);
  header.tcm_info = TC_H_MAKE(1u << 16, htons(ETH_P_ALL));
  filter.header(header).put_text(TCA_KIND, "u32");
  // u32 with one key that matches everything: older kernels and small ones have no matchall.
  tc_u32_sel selector{};
  selector.flags = TC_U32_TERMINAL;
  selector.nkeys = 1;
  std::array<std::byte, sizeof(tc_u32_sel) + sizeof(tc_u32_key)> match{};
  std::memcpy(match.data(), &selector, sizeof selector);
  tc_mirred redirect{};
  redirect.action = TC_ACT_STOLEN;
  redirect.eaction = TCA_EGRESS_REDIR;
  redirect.ifindex = static_cast<std::uint32_t>(port.ifb_index);
  filter.open(TCA_OPTIONS).put(TCA_U32_SEL, match).open(TCA_U32_ACT).open(1);
  filter.put_text(TCA_ACT_KIND, "mirred").open(TCA_ACT_OPTIONS).put(TCA_MIRRED_PARMS, redirect);
  filter.close().close().close().close();
  batch.push_back(std::move(filter));
}

// --- offloads, by the old ioctl: it is in every kernel

struct Offload {
  const char* name;
  std::uint32_t get;
  std::uint32_t set;
};
constexpr Offload tso{"tso", ETHTOOL_GTSO, ETHTOOL_STSO};
constexpr Offload gso{"gso", ETHTOOL_GGSO, ETHTOOL_SGSO};
constexpr Offload gro{"gro", ETHTOOL_GGRO, ETHTOOL_SGRO};

bool ethtool(const Member& member, const std::string& device, std::uint32_t command,
             std::uint32_t value, std::uint32_t& result) {
  ethtool_value data{command, value};
  ifreq request{};
  device.copy(request.ifr_name, IFNAMSIZ - 1);
  request.ifr_data = reinterpret_cast<char*>(&data);
  if (ioctl(member.control.get(), SIOCETHTOOL, &request) != 0) return false;
  result = data.data;
  return true;
}

void set_offload(const Member& member, const std::string& vertex, const std::string& device,
                 const Offload& offload, bool on, std::vector<Applied>& record) {
  std::uint32_t value = 0;
  const std::string place = vertex + ":" + device;
  const bool set = ethtool(member, device, offload.set, on ? 1 : 0, value);
  const int reason = errno;
  if (!ethtool(member, device, offload.get, 0, value))
    throw_errno(std::string("read ") + offload.name + " of " + place);
  record.push_back({place, offload.name, on ? "on" : "off", value != 0 ? "on" : "off"});
  if ((value != 0) == on) return;
  if (!set) throw SystemError(std::string("set ") + offload.name + " of " + place, reason);
  throw Error(std::string(offload.name) + " of " + place + ": asked " + (on ? "on" : "off") +
              ", the kernel keeps it " + (value != 0 ? "on" : "off"));
}

// --- reading back

std::int64_t signed_count(std::uint64_t value) { return static_cast<std::int64_t>(value); }

template <typename T>
bool read_struct(std::span<const std::byte> bytes, T& value) {
  // Some kernels report a shorter structure, some a longer one.
  if (bytes.empty()) return false;
  std::memcpy(&value, bytes.data(), std::min(bytes.size(), sizeof(T)));
  return true;
}

QueueState read_queue(std::span<const std::byte> attributes) {
  QueueState state;
  state.netem = decode(find_attribute(attributes, TCA_OPTIONS));
  const auto statistics = find_attribute(attributes, TCA_STATS2);
  gnet_stats_basic basic{};
  if (read_struct(find_attribute(statistics, TCA_STATS_BASIC), basic)) {
    state.bytes = signed_count(basic.bytes);
    state.packets = basic.packets;
  }
  std::uint64_t packets64 = 0;
  if (read_struct(find_attribute(statistics, TCA_STATS_PKT64), packets64))
    state.packets = signed_count(packets64);
  gnet_stats_queue queue{};
  if (read_struct(find_attribute(statistics, TCA_STATS_QUEUE), queue)) {
    state.drops = queue.drops;
    state.queued = queue.qlen;
  }
  return state;
}

using QueueKey = std::pair<int, std::uint32_t>;  // device, handle

std::map<QueueKey, QueueState> read_queues(Member& member, const std::string& vertex) {
  std::map<QueueKey, QueueState> found;
  Message message("list the queues of " + vertex, RTM_GETQDISC);
  message.header(queue_header(0, 0, 0));
  member.socket.dump(std::move(message), [&found](const nlmsghdr& head) {
    if (head.nlmsg_type != RTM_NEWQDISC) return;
    const auto* bytes = reinterpret_cast<const std::byte*>(&head);
    tcmsg header;
    std::memcpy(&header, bytes + NLMSG_HDRLEN, sizeof header);
    if (header.tcm_handle != path_handle && header.tcm_handle != line_handle) return;
    const std::size_t start = NLMSG_HDRLEN + NLMSG_ALIGN(sizeof header);
    found[{header.tcm_ifindex, header.tcm_handle}] =
        read_queue({bytes + start, head.nlmsg_len - start});
  });
  return found;
}

void compare_queue(const LinkPlan& link, const char* part, const Netem& asked,
                   const std::map<QueueKey, QueueState>& queues, const QueueKey& key,
                   std::vector<Applied>& record) {
  const auto found = queues.find(key);
  if (found == queues.end())
    throw Error("link " + link.name + ", " + part + ": asked a netem queue, the kernel lists none");
  const Netem& applied = found->second.netem;
  const std::vector<Mismatch> wrong = compare(asked, applied);
  if (!wrong.empty())
    throw Error("link " + link.name + ", " + part + " " + wrong.front().field + ": asked " +
                wrong.front().asked + ", the kernel applied " + wrong.front().applied);
  const auto add = [&](const char* field, auto a, auto b) {
    record.push_back(
        {link.name, std::string(part) + " " + field, std::to_string(a), std::to_string(b)});
  };
  add("latency (ns)", asked.latency_ns, applied.latency_ns);
  add("jitter (ns)", asked.jitter_ns, applied.jitter_ns);
  add("limit (packets)", asked.limit, applied.limit);
  add("loss (of 2^32)", asked.loss, applied.loss);
  add("rate (bytes/s)", asked.rate, applied.rate);
}

}  // namespace

// Everything that apply() built. Its descriptors are all that keeps it in the kernel.
class KernelBackend::Network {
 public:
  explicit Network(const Plan& plan);
  ~Network();

  void build();
  void change(const Plan& after, const std::set<std::string>& touched);
  std::vector<LinkCounters> counters();

  const Plan& plan() const { return plan_; }
  const std::vector<Applied>& record() const { return record_; }
  int descriptor(const std::string& vertex) const { return members_.at(vertex).name_space.get(); }

 private:
  void make_member(const VertexPlan& vertex);
  void assign_ports();
  void add_pairs();
  void bring_up_ports(const VertexPlan& vertex);
  void configure(const VertexPlan& vertex);
  void add_routes(const VertexPlan& vertex, Batch& batch);
  void set_offloads(const VertexPlan& vertex);
  void read_back(const std::set<std::string>& names);
  void send(std::map<std::string, Batch>& batches);
  void add_change(const LinkPlan& from, const LinkPlan& to, std::map<std::string, Batch>& batches);

  Plan plan_;
  std::map<std::string, Member> members_;
  std::map<std::string, Site> sites_;
  std::set<std::string> lines_;  // the links that have a second queue in the kernel now
  std::vector<Applied> record_;
};

KernelBackend::Network::Network(const Plan& plan) : plan_(plan) {}

KernelBackend::Network::~Network() {
  // A switch's namespace ends with our descriptor and takes its veth pairs along. A pair between
  // two nodes would live on in a namespace where a process still runs.
  const std::set<std::string> switches(plan_.topology.switches.begin(),
                                       plan_.topology.switches.end());
  for (const Link& link : plan_.topology.links) {
    if (switches.count(link.a) != 0 || switches.count(link.b) != 0) continue;
    const auto member = members_.find(link.a);
    if (member == members_.end() || member->second.ports.empty()) continue;
    Message message("remove the link " + link.a + " - " + link.b, RTM_DELLINK);
    message.header(link_header(member->second.to(link.b).index, false));
    try {
      member->second.socket.send(std::span<Message>(&message, 1));
    } catch (const Error&) {
      // Nothing more can be done about it here.
    }
  }
}

void KernelBackend::Network::make_member(const VertexPlan& vertex) {
  const InNamespace inside = InNamespace::make();
  FileDescriptor control(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!control) throw_errno("open a control socket in the namespace of " + vertex.name);
  // Before any device exists, so that none ever speaks IPv6: its timers are random.
  write_setting("ipv6/conf/all/disable_ipv6", "1");
  write_setting("ipv6/conf/default/disable_ipv6", "1");
  write_setting("ipv4/conf/all/send_redirects", "0");
  write_setting("ipv4/conf/default/send_redirects", "0");
  write_setting("ipv4/ip_forward", vertex.is_switch ? "1" : "0");
  // A connection shall not begin with what the kernel learnt from the one before.
  write_setting("ipv4/tcp_no_metrics_save", "1");
  // Twice the payload: the kernel counts its own bookkeeping in the same figure.
  const std::string most = std::to_string(2 * vertex.socket_buffer.value);
  if (!vertex.is_switch) {
    write_setting("ipv4/tcp_rmem", "4096 131072 " + most);
    write_setting("ipv4/tcp_wmem", "4096 16384 " + most);
  }
  members_.emplace(vertex.name,
                   Member{InNamespace::current(), NetlinkSocket(), std::move(control)});
}

void KernelBackend::Network::assign_ports() {
  std::map<std::string, std::size_t> number;
  for (std::size_t i = 0; i < plan_.vertices.size(); ++i) number[plan_.vertices[i].name] = i;
  const std::set<std::string> switches(plan_.topology.switches.begin(),
                                       plan_.topology.switches.end());
  const auto add = [&](const std::string& vertex, const std::string& neighbour) {
    Member& member = members_.at(vertex);
    const std::size_t k = member.ports.size();
    Port port;
    port.neighbour = neighbour;
    port.index = first_port_index + 2 * static_cast<int>(k);
    port.device = (switches.count(vertex) != 0 ? "port" : "eth") + std::to_string(k);
    port.ifb_index = port.index + 1;
    port.ifb = "arrive" + std::to_string(k);
    port.mac = mac_of(number.at(vertex), k);
    member.ports.push_back(port);
  };
  for (const Link& link : plan_.topology.links) {
    add(link.a, link.b);
    add(link.b, link.a);
  }
  for (const LinkPlan& link : plan_.links) {
    const bool here = link.place == Place::egress;
    const std::string& vertex = here ? link.from : link.to;
    const Port& port = members_.at(vertex).to(here ? link.to : link.from);
    sites_[link.name] = {vertex, here ? port.index : port.ifb_index};
  }
}

void KernelBackend::Network::add_pairs() {
  std::map<std::string, Batch> batches;
  for (const Link& link : plan_.topology.links)
    batches[link.a].push_back(add_veth(link.a + " and " + link.b, members_.at(link.a).to(link.b),
                                       members_.at(link.b).to(link.a), descriptor(link.b),
                                       plan_.mtu));
  send(batches);
}

void KernelBackend::Network::send(std::map<std::string, Batch>& batches) {
  for (auto& [vertex, batch] : batches) members_.at(vertex).socket.request(batch);
}

void KernelBackend::Network::add_routes(const VertexPlan& vertex, Batch& batch) {
  const Member& member = members_.at(vertex.name);
  for (const Port& port : member.ports) {
    const VertexPlan& neighbour = plan_.vertex(port.neighbour);
    batch.push_back(
        add_neighbour(neighbour.address, port, members_.at(port.neighbour).to(vertex.name).mac));
    // A switch's own address too, so that a measurement can reach it.
    batch.push_back(add_route({neighbour.address, {}, vertex.address}, port));
  }
  if (!vertex.is_switch && member.ports.size() == 1) {
    const Port& port = member.ports.front();
    batch.push_back(add_route({{}, plan_.vertex(port.neighbour).address, vertex.address}, port));
    return;
  }
  for (const Route& route : vertex.routes) {
    if (route.to == route.via) continue;
    batch.push_back(
        add_route({plan_.vertex(route.to).address, plan_.vertex(route.via).address, vertex.address},
                  member.to(route.via)));
  }
}

void KernelBackend::Network::bring_up_ports(const VertexPlan& vertex) {
  Member& member = members_.at(vertex.name);
  Batch batch;
  batch.push_back(bring_up("lo", 1));
  for (const Port& port : member.ports) {
    if (!vertex.is_switch && vertex.gso_segments.value > 1)
      batch.push_back(limit_super_packets(port, vertex.gso_segments.value, vertex.gso_bytes.value));
    batch.push_back(bring_up(port.device, port.index));
  }
  member.socket.request(batch);
}

void KernelBackend::Network::configure(const VertexPlan& vertex) {
  Member& member = members_.at(vertex.name);
  Batch batch;
  if (!vertex.is_switch)
    for (const Port& port : member.ports) batch.push_back(activate(port));
  const bool loopback = vertex.is_switch || member.ports.empty();
  batch.push_back(add_address(vertex.address, loopback ? 1 : member.ports.front().index));
  add_routes(vertex, batch);
  for (const LinkPlan& link : plan_.links) {
    const Site& site = sites_.at(link.name);
    if (site.vertex != vertex.name) continue;
    if (link.place == Place::ingress) {
      const Port& port = member.to(link.from);
      batch.push_back(add_ifb(port, plan_.mtu));
      redirect_arrivals(port, batch);
    }
    batch.push_back(put_path(link, Action::add, site.index));
    if (!link.line) continue;
    batch.push_back(put_line(link, Action::add, site.index, *link.line));
    lines_.insert(link.name);
  }
  member.socket.request(batch);
}

void KernelBackend::Network::set_offloads(const VertexPlan& vertex) {
  const Member& member = members_.at(vertex.name);
  for (const Port& port : member.ports) {
    if (!vertex.is_switch) {
      const bool on = vertex.gso_segments.value > 1;
      set_offload(member, vertex.name, port.device, tso, on, record_);
      set_offload(member, vertex.name, port.device, gso, on, record_);
    }
    // Never glue together what the shaper is to see one by one.
    set_offload(member, vertex.name, port.device, gro, false, record_);
  }
}

void KernelBackend::Network::build() {
  for (const VertexPlan& vertex : plan_.vertices) make_member(vertex);
  assign_ports();
  for (const auto& [name, member] : members_) {
    if (member.ports.size() < 2 || plan_.vertex(name).is_switch) continue;
    const InNamespace inside(member.name_space.get());
    write_setting("ipv4/ip_forward", "1");
  }
  add_pairs();
  // All ports first: a queue activates its port only if the other end is up too.
  for (const VertexPlan& vertex : plan_.vertices) bring_up_ports(vertex);
  for (const VertexPlan& vertex : plan_.vertices) configure(vertex);
  for (const VertexPlan& vertex : plan_.vertices) set_offloads(vertex);
  std::set<std::string> all;
  for (const LinkPlan& link : plan_.links) all.insert(link.name);
  read_back(all);
}

void KernelBackend::Network::read_back(const std::set<std::string>& names) {
  std::map<std::string, std::map<QueueKey, QueueState>> queues;
  for (const LinkPlan& link : plan_.links) {
    if (names.count(link.name) == 0) continue;
    const Site& site = sites_.at(link.name);
    if (queues.count(site.vertex) == 0)
      queues[site.vertex] = read_queues(members_.at(site.vertex), site.vertex);
    const auto& here = queues.at(site.vertex);
    compare_queue(link, "path", link.path, here, {site.index, path_handle}, record_);
    if (link.line)
      compare_queue(link, "line", *link.line, here, {site.index, line_handle}, record_);
  }
}

// The steps from one state of a link to another, both of which the kernel may hold.
void KernelBackend::Network::add_change(const LinkPlan& from, const LinkPlan& to,
                                        std::map<std::string, Batch>& batches) {
  const Site& site = sites_.at(to.name);
  Batch& batch = batches[site.vertex];
  const bool has_line = lines_.count(to.name) != 0;
  // Kernels since July 2025 take no second netem beside one that duplicates, at any instant.
  const bool line_must_go = has_line && to.path.duplicate > 0;
  if (line_must_go) batch.push_back(drop_line(to, site.index));
  if (from.path.duplicate > 0 || !to.line || has_line)
    batch.push_back(put_path(to, Action::change, site.index));
  if (to.line) {
    batch.push_back(put_line(to, has_line ? Action::change : Action::add, site.index, *to.line));
  } else if (has_line && !line_must_go) {
    // Let through what it holds and what comes; to take it away would lose packets.
    Netem open;
    open.limit = to.path.limit;
    batch.push_back(put_line(to, Action::change, site.index, open));
  }
  if (from.path.duplicate == 0 && to.line && !has_line)
    batch.push_back(put_path(to, Action::change, site.index));
}

void KernelBackend::Network::change(const Plan& after, const std::set<std::string>& touched) {
  std::map<std::string, Batch> batches;
  std::set<std::string> lines_after = lines_;
  for (const std::string& name : touched) {
    const LinkPlan& to = after.link(name);
    add_change(plan_.link(name), to, batches);
    if (to.line) lines_after.insert(name);
    if (to.path.duplicate > 0) lines_after.erase(name);
  }
  const Plan before = plan_;
  const std::set<std::string> lines_before = lines_;
  try {
    send(batches);
    plan_ = after;
    lines_ = lines_after;
    record_.clear();
    read_back(touched);
  } catch (const Error&) {
    plan_ = before;
    // We may have stopped anywhere: ask the kernel which queues there are now.
    lines_ = lines_before;
    for (const std::string& name : touched) {
      const Site& site = sites_.at(name);
      const auto queues = read_queues(members_.at(site.vertex), site.vertex);
      if (queues.count({site.index, line_handle}) != 0)
        lines_.insert(name);
      else
        lines_.erase(name);
    }
    std::map<std::string, Batch> back;
    for (const std::string& name : touched) add_change(after.link(name), before.link(name), back);
    // What the kernel refuses even now stays as it is; the first error is the one to report.
    for (auto& [vertex, batch] : back) members_.at(vertex).socket.send(batch);
    for (const std::string& name : touched)
      if (before.link(name).line) lines_.insert(name);
    throw;
  }
}

std::vector<LinkCounters> KernelBackend::Network::counters() {
  std::map<std::string, std::map<QueueKey, QueueState>> queues;
  std::vector<LinkCounters> all;
  for (const LinkPlan& link : plan_.links) {
    const Site& site = sites_.at(link.name);
    if (queues.count(site.vertex) == 0)
      queues[site.vertex] = read_queues(members_.at(site.vertex), site.vertex);
    const auto& here = queues.at(site.vertex);
    const QueueState& path = here.at({site.index, path_handle});
    LinkCounters counters;
    counters.link = link.name;
    counters.packets = path.packets;
    counters.l2_bytes = path.bytes;
    counters.wire_bytes = path.bytes + wire_extra * path.packets;
    const auto line = here.find({site.index, line_handle});
    if (line != here.end()) {
      // A drop by the second queue is reported to the first, which counts it too.
      counters.queue_drops = line->second.drops;
      counters.loss_drops = path.drops - line->second.drops;
      counters.queued = line->second.queued;
      counters.in_flight = std::max<std::int64_t>(0, path.queued - line->second.queued);
    } else {
      (loss_share(link.spec) > 0 ? counters.loss_drops : counters.queue_drops) = path.drops;
      counters.in_flight = path.queued;
    }
    all.push_back(counters);
  }
  return all;
}

KernelBackend::KernelBackend(NowFunction now) : now_(std::move(now)) {}
KernelBackend::~KernelBackend() = default;

void KernelBackend::apply(const Plan& plan) {
  if (network_)
    throw std::logic_error("apply() on a backend that holds a network; remove() it first");
  // Held here until it stands: what a failure leaves goes with it.
  auto network = std::make_unique<Network>(plan);
  network->build();
  network_ = std::move(network);
}

ChangeTimes KernelBackend::change(std::span<const LinkChange> changes, Instant planned) {
  const Plan after = changed(current(), changes);
  std::set<std::string> touched;
  for (const LinkChange& change : changes) touched.insert(change.link);
  network_->change(after, touched);
  return {planned, now_()};
}

std::vector<LinkCounters> KernelBackend::counters() {
  current();
  return network_->counters();
}

std::vector<Applied> KernelBackend::applied() const {
  current();
  return network_->record();
}

const Plan& KernelBackend::current() const {
  if (!network_) throw std::logic_error("the backend holds no network; apply() a plan first");
  return network_->plan();
}

void KernelBackend::remove() { network_.reset(); }

int KernelBackend::node_namespace(const std::string& node) const {
  current();
  return network_->descriptor(node);
}

}  // namespace orrery::netshape
