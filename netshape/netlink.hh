// A routing netlink socket and its messages, thinly over libnl: it carries, we say what.
#pragma once

#include <linux/netlink.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

struct nl_sock;
struct nl_msg;

namespace orrery::netshape {

/// One request. Grows as it needs; attributes are added in order.
class Message {
 public:
  /// `attempted` is said when the kernel refuses, e.g. "add netem to a->switch".
  Message(std::string attempted, int type, int flags = 0);

  template <typename Header>
  Message& header(const Header& value) {
    append(&value, sizeof(Header));
    return *this;
  }
  template <typename T>
  Message& put(int attribute, const T& value) {
    put_bytes(attribute, &value, sizeof(T));
    return *this;
  }
  Message& put_text(int attribute, const std::string& text);
  Message& put_bytes(int attribute, const void* data, std::size_t size);
  /// Raw bytes inside the attribute that is open: a header within a nest.
  Message& append(const void* data, std::size_t size);
  Message& open(int attribute);
  Message& close();

  /// What the kernel must have for this, e.g. "CONFIG_VETH (module veth)": named when it lacks it.
  Message& needs(std::string feature);

  const std::string& attempted() const { return attempted_; }
  const std::string& needed() const { return needed_; }

 private:
  friend class NetlinkSocket;
  nlmsghdr* head() { return reinterpret_cast<nlmsghdr*>(bytes_.data()); }

  std::string attempted_;
  std::string needed_;
  std::vector<std::byte> bytes_;
  std::vector<std::size_t> nests_;
};

/// Refused by the kernel: the error number, and the kernel's own words where it gave any.
struct Refusal {
  std::size_t index = 0;  ///< of the message in the batch
  int error_number = 0;
  std::string kernel_says;
};

class NetlinkSocket {
 public:
  /// Opened in the calling thread's network namespace, and stays with it.
  NetlinkSocket();

  /// Sends all in as few system calls as fit its buffer; the kernel works through them without a
  /// pause between. Returns what it refused; the others took effect.
  std::vector<Refusal> send(std::span<Message> messages);
  /// Throws SystemError for the first refusal.
  void request(std::span<Message> messages);
  void request(Message message) { request(std::span<Message>(&message, 1)); }
  /// Each answer to a dump request, header included.
  void dump(Message message, const std::function<void(const nlmsghdr&)>& each);

 private:
  void send_chunk(std::span<Message> messages, std::size_t offset, std::vector<Refusal>& refusals);

  struct Close {
    void operator()(nl_sock* socket) const;
  };
  std::unique_ptr<nl_sock, Close> socket_;
  std::uint32_t sequence_ = 1;
};

/// Throws SystemError that says what was attempted and what the kernel said; MachineError when the
/// kernel lacks what the message needs.
[[noreturn]] void throw_refusal(const Message& message, const Refusal& refusal);

/// The attribute's value among the attributes that start at `first`, or an empty span.
std::span<const std::byte> find_attribute(std::span<const std::byte> attributes, int type);

}  // namespace orrery::netshape
