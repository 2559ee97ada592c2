#include "emulator/net/pcapng.hh"

namespace orrery::net::pcapng {
namespace {

constexpr std::uint32_t section_header = 0x0a0d0d0a;
constexpr std::uint32_t interface_description = 1;
constexpr std::uint32_t enhanced_packet = 6;
constexpr std::uint32_t byte_order = 0x1a2b3c4d;
constexpr std::uint16_t ethernet = 1;

constexpr std::uint16_t end_of_options = 0;
constexpr std::uint16_t user_application = 4;
constexpr std::uint16_t interface_name = 2;
constexpr std::uint16_t time_resolution = 9;
constexpr std::uint16_t packet_flags = 2;

// In this machine's byte order, which byte_order tells the reader.
template <typename T>
void put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void pad(std::string& out) { out.resize((out.size() + 3) / 4 * 4, '\0'); }

void put_option(std::string& out, std::uint16_t code, const std::string& value) {
  put(out, code);
  put(out, static_cast<std::uint16_t>(value.size()));
  out += value;
  pad(out);
}

std::string block(std::uint32_t type, const std::string& body) {
  std::string out;
  const auto length = static_cast<std::uint32_t>(body.size() + 12);
  put(out, type);
  put(out, length);
  out += body;
  put(out, length);
  return out;
}

}  // namespace

std::string header(const std::string& application) {
  std::string body;
  put(body, byte_order);
  put(body, std::uint16_t{1});
  put(body, std::uint16_t{0});
  put(body, std::int64_t{-1});  // the section's length is not known
  put_option(body, user_application, application);
  put_option(body, end_of_options, "");
  return block(section_header, body);
}

std::string interface(const std::string& name, std::uint32_t longest_packet) {
  std::string body;
  put(body, ethernet);
  put(body, std::uint16_t{0});
  put(body, longest_packet);
  put_option(body, interface_name, name);
  put_option(body, time_resolution, std::string(1, '\x09'));  // 10⁻⁹ s
  put_option(body, end_of_options, "");
  return block(interface_description, body);
}

std::string packet(std::uint32_t interface_number, std::int64_t ns,
                   std::span<const std::byte> bytes, std::uint32_t length, bool outbound) {
  std::string body;
  const auto time = static_cast<std::uint64_t>(ns);
  put(body, interface_number);
  put(body, static_cast<std::uint32_t>(time >> 32));
  put(body, static_cast<std::uint32_t>(time));
  put(body, static_cast<std::uint32_t>(bytes.size()));
  put(body, length);
  body.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  pad(body);
  std::string flags;
  put(flags, std::uint32_t{outbound ? 2u : 1u});
  put_option(body, packet_flags, flags);
  put_option(body, end_of_options, "");
  return block(enhanced_packet, body);
}

}  // namespace orrery::net::pcapng
