#include "emulator/metrics/exporter.hh"

#include <netdb.h>
#include <prometheus/exposer.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>

#include "base/error.hh"
#include "base/fd.hh"
#include "emulator/metrics/families.hh"

namespace orrery::metrics {
namespace {

struct Address {
  std::string host;  ///< empty: every interface
  std::string port;
};

Address parse(const std::string& text) {
  const auto bad = [&](const std::string& what) {
    return ValueError("metrics address \"" + text + "\": " + what +
                      "; write HOST:PORT, as in 127.0.0.1:9464, or :9464 for every interface");
  };
  const auto colon = text.rfind(':');
  Address address{colon == std::string::npos ? "" : text.substr(0, colon),
                  colon == std::string::npos ? text : text.substr(colon + 1)};
  if (address.host.size() >= 2 && address.host.front() == '[' && address.host.back() == ']')
    address.host = address.host.substr(1, address.host.size() - 2);
  if (address.port.empty()) throw bad("the port is missing");
  unsigned port = 0;
  const char* end = address.port.data() + address.port.size();
  const auto [stop, error] = std::from_chars(address.port.data(), end, port);
  if (error != std::errc() || stop != end || port > 65535)
    throw bad("\"" + address.port + "\" is no port from 0 to 65535");
  return address;
}

struct Numeric {
  std::string listen;  ///< as the HTTP server wants it: "127.0.0.1:9464", "[::1]:9464"
};

// Resolves the host, and listens for a moment: the HTTP server says only that it failed, not why.
Numeric try_listening(const std::string& text, const Address& address) {
  addrinfo hints{};
  hints.ai_family = address.host.empty() ? AF_INET : AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(address.host.empty() ? nullptr : address.host.c_str(),
                                  address.port.c_str(), &hints, &found);
  if (error != 0)
    throw MachineError("metrics address \"" + text + "\": " + ::gai_strerror(error) +
                       "; give an address of this machine");
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, ::freeaddrinfo);

  const FileDescriptor socket(::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  if (!socket || ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      ::bind(socket.get(), found->ai_addr, found->ai_addrlen) != 0 ||
      ::listen(socket.get(), 1) != 0)
    throw MachineError("cannot serve metrics at \"" + text + "\": " + std::strerror(errno) +
                       "; choose another address or port");

  std::string host(NI_MAXHOST, '\0');
  ::getnameinfo(found->ai_addr, found->ai_addrlen, host.data(), static_cast<socklen_t>(host.size()),
                nullptr, 0, NI_NUMERICHOST);
  host.resize(std::strlen(host.c_str()));
  if (found->ai_family == AF_INET6) host = "[" + host + "]";
  return {host + ":" + address.port};
}

}  // namespace

struct Exporter::Server {
  Server(const std::string& listen, std::shared_ptr<prometheus::Registry> to_serve)
      : registry(std::move(to_serve)), exposer(listen, 2) {
    exposer.RegisterCollectable(registry);
  }
  std::shared_ptr<prometheus::Registry> registry;
  prometheus::Exposer exposer;
};

Exporter::Exporter(const Book& book, const std::string& address) {
  const Numeric numeric = try_listening(address, parse(address));
  try {
    server_ = std::make_unique<Server>(numeric.listen, book.families_->registry());
  } catch (const std::exception& e) {
    throw MachineError("cannot serve metrics at \"" + address + "\": " + e.what() +
                       "; choose another address or port");
  }
}

Exporter::~Exporter() = default;

int Exporter::port() const {
  const std::vector<int> ports = server_->exposer.GetListeningPorts();
  return ports.empty() ? 0 : ports.front();
}

}  // namespace orrery::metrics
