#include "netshape/netlink.hh"

#include <netlink/errno.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>
#include <netlink/socket.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/error.hh"

namespace orrery::netshape {
namespace {

constexpr int buffer_bytes = 1 << 20;
// Below the kernel's default net.core.wmem_max.
constexpr std::size_t chunk_bytes = 96 << 10;

struct Free {
  void operator()(unsigned char* p) const { std::free(p); }
};

// libnl's answers are buffers of whole messages.
struct Answer {
  std::unique_ptr<unsigned char, Free> bytes;
  std::size_t size;
};

Answer receive(nl_sock* socket) {
  sockaddr_nl from{};
  unsigned char* buffer = nullptr;
  const int size = nl_recv(socket, &from, &buffer, nullptr);
  if (size < 0) throw Error(std::string("receive from netlink: ") + nl_geterror(size));
  return {std::unique_ptr<unsigned char, Free>(buffer), static_cast<std::size_t>(size)};
}

std::string words_of(const nlmsghdr& head, std::size_t echoed) {
  if ((head.nlmsg_flags & NLM_F_ACK_TLVS) == 0) return {};
  const std::size_t skip = NLMSG_HDRLEN + sizeof(int) + NLMSG_ALIGN(echoed);
  if (skip >= head.nlmsg_len) return {};
  const auto* bytes = reinterpret_cast<const std::byte*>(&head);
  const auto words = find_attribute({bytes + skip, head.nlmsg_len - skip}, NLMSGERR_ATTR_MSG);
  const std::string text(reinterpret_cast<const char*>(words.data()), words.size());
  return text.substr(0, text.find('\0'));
}

}  // namespace

Message::Message(std::string attempted, int type, int flags) : attempted_(std::move(attempted)) {
  bytes_.resize(NLMSG_HDRLEN);
  head()->nlmsg_type = static_cast<std::uint16_t>(type);
  head()->nlmsg_flags = static_cast<std::uint16_t>(NLM_F_REQUEST | flags);
}

Message& Message::needs(std::string feature) {
  needed_ = std::move(feature);
  return *this;
}

Message& Message::append(const void* data, std::size_t size) {
  const std::size_t at = bytes_.size();
  bytes_.resize(at + NLMSG_ALIGN(size));
  if (size != 0) std::memcpy(bytes_.data() + at, data, size);
  return *this;
}

Message& Message::put_bytes(int type, const void* data, std::size_t size) {
  const nlattr head{static_cast<std::uint16_t>(NLA_HDRLEN + size),
                    static_cast<std::uint16_t>(type)};
  append(&head, sizeof head);
  return append(data, size);
}

Message& Message::put_text(int type, const std::string& text) {
  return put_bytes(type, text.c_str(), text.size() + 1);
}

Message& Message::open(int type) {
  nests_.push_back(bytes_.size());
  const nlattr head{0, static_cast<std::uint16_t>(type)};
  return append(&head, sizeof head);
}

Message& Message::close() {
  const std::size_t at = nests_.back();
  nests_.pop_back();
  const auto size = static_cast<std::uint16_t>(bytes_.size() - at);
  std::memcpy(bytes_.data() + at, &size, sizeof size);
  return *this;
}

void NetlinkSocket::Close::operator()(nl_sock* socket) const { nl_socket_free(socket); }

NetlinkSocket::NetlinkSocket() : socket_(nl_socket_alloc()) {
  if (!socket_) throw Error("allocate a netlink socket: out of memory");
  if (const int result = nl_connect(socket_.get(), NETLINK_ROUTE); result < 0)
    throw MachineError(std::string("open a routing netlink socket: ") + nl_geterror(result) +
                       "; the kernel needs CONFIG_NET");
  nl_socket_set_buffer_size(socket_.get(), buffer_bytes, buffer_bytes);
  nl_socket_set_msg_buf_size(socket_.get(), 1 << 16);
  const int fd = nl_socket_get_fd(socket_.get());
  const int on = 1;
  // Both since Linux 4.12; without them an error has no words, which is all.
  setsockopt(fd, SOL_NETLINK, NETLINK_EXT_ACK, &on, sizeof on);
  setsockopt(fd, SOL_NETLINK, NETLINK_CAP_ACK, &on, sizeof on);
}

std::vector<Refusal> NetlinkSocket::send(std::span<Message> messages) {
  std::vector<Refusal> refusals;
  for (std::size_t first = 0; first < messages.size();) {
    std::size_t end = first;
    std::size_t bytes = 0;
    do bytes += messages[end++].bytes_.size();
    while (end < messages.size() && bytes + messages[end].bytes_.size() <= chunk_bytes);
    send_chunk(messages.subspan(first, end - first), first, refusals);
    first = end;
  }
  return refusals;
}

void NetlinkSocket::send_chunk(std::span<Message> messages, std::size_t offset,
                               std::vector<Refusal>& refusals) {
  const std::uint32_t first = sequence_;
  std::vector<std::byte> all;
  for (Message& message : messages) {
    nlmsghdr* head = message.head();
    head->nlmsg_len = static_cast<std::uint32_t>(message.bytes_.size());
    head->nlmsg_seq = sequence_++;
    // A refusal is always answered; of the rest one answer, the last, is enough to wait for.
    if (&message == &messages.back()) head->nlmsg_flags |= NLM_F_ACK;
    all.insert(all.end(), message.bytes_.begin(), message.bytes_.end());
  }
  sockaddr_nl kernel{};
  kernel.nl_family = AF_NETLINK;
  const ssize_t sent = sendto(nl_socket_get_fd(socket_.get()), all.data(), all.size(), 0,
                              reinterpret_cast<sockaddr*>(&kernel), sizeof kernel);
  if (sent < 0) throw_errno("send " + std::to_string(all.size()) + " B of netlink requests");

  const std::uint32_t last = sequence_ - 1;
  for (bool done = false; !done;) {
    const Answer answer = receive(socket_.get());
    auto* head = reinterpret_cast<nlmsghdr*>(answer.bytes.get());
    for (int left = static_cast<int>(answer.size); nlmsg_ok(head, left);
         head = nlmsg_next(head, &left)) {
      if (head->nlmsg_seq < first || head->nlmsg_type != NLMSG_ERROR) continue;
      const auto* error = static_cast<const nlmsgerr*>(nlmsg_data(head));
      if (error->error != 0) {
        const std::size_t echoed =
            (head->nlmsg_flags & NLM_F_CAPPED) != 0 ? sizeof(nlmsghdr) : error->msg.nlmsg_len;
        refusals.push_back(
            {offset + (head->nlmsg_seq - first), -error->error, words_of(*head, echoed)});
      }
      if (head->nlmsg_seq == last) done = true;
    }
  }
}

void NetlinkSocket::request(std::span<Message> messages) {
  const std::vector<Refusal> refusals = send(messages);
  if (!refusals.empty()) throw_refusal(messages[refusals.front().index], refusals.front());
}

void NetlinkSocket::dump(Message message, const std::function<void(const nlmsghdr&)>& each) {
  nlmsghdr* head = message.head();
  head->nlmsg_flags |= NLM_F_DUMP;
  head->nlmsg_len = static_cast<std::uint32_t>(message.bytes_.size());
  head->nlmsg_seq = sequence_++;
  const std::uint32_t sequence = head->nlmsg_seq;
  if (const int result = nl_sendto(socket_.get(), message.bytes_.data(), message.bytes_.size());
      result < 0)
    throw Error(message.attempted() + ": " + nl_geterror(result));
  for (;;) {
    const Answer answer = receive(socket_.get());
    auto* at = reinterpret_cast<nlmsghdr*>(answer.bytes.get());
    for (int left = static_cast<int>(answer.size); nlmsg_ok(at, left); at = nlmsg_next(at, &left)) {
      if (at->nlmsg_seq != sequence) continue;
      if (at->nlmsg_type == NLMSG_DONE) return;
      if (at->nlmsg_type == NLMSG_ERROR) {
        const auto* error = static_cast<const nlmsgerr*>(nlmsg_data(at));
        throw SystemError(message.attempted(), -error->error);
      }
      each(*at);
    }
  }
}

void throw_refusal(const Message& message, const Refusal& refusal) {
  const bool lacking = refusal.error_number == ENOENT || refusal.error_number == EOPNOTSUPP;
  if (lacking && !message.needed().empty())
    throw MachineError(message.attempted() + ": the running kernel lacks " + message.needed() +
                       "; use a kernel that has it, or another engine or backend");
  const std::string words =
      refusal.kernel_says.empty() ? "" : " (the kernel says: " + refusal.kernel_says + ")";
  throw SystemError(message.attempted() + words, refusal.error_number);
}

std::span<const std::byte> find_attribute(std::span<const std::byte> attributes, int type) {
  while (attributes.size() >= sizeof(nlattr)) {
    nlattr head;
    std::memcpy(&head, attributes.data(), sizeof head);
    if (head.nla_len < sizeof(nlattr) || head.nla_len > attributes.size()) return {};
    if ((head.nla_type & NLA_TYPE_MASK) == type)
      return attributes.subspan(sizeof(nlattr), head.nla_len - sizeof(nlattr));
    attributes =
        attributes.subspan(std::min(attributes.size(), std::size_t{NLA_ALIGN(head.nla_len)}));
  }
  return {};
}

}  // namespace orrery::netshape
