// The two printed forms of a plan.
#include <algorithm>
#include <cstdio>

#include "netshape/plan.hh"

namespace orrery::netshape {
namespace {

using Row = std::vector<std::string>;

// Characters, not bytes: a column with "±" in it is as wide as it looks.
std::size_t width(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string table(const std::vector<Row>& rows) {
  std::vector<std::size_t> widths;
  for (const Row& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i == widths.size()) widths.push_back(0);
      widths[i] = std::max(widths[i], width(row[i]));
    }
  std::string text;
  for (const Row& row : rows) {
    std::string line = "  ";
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += row[i];
      if (i + 1 < row.size()) line.append(widths[i] - width(row[i]) + 2, ' ');
    }
    text += line + "\n";
  }
  return text;
}

std::string rate_text(const std::optional<BitRate>& rate) {
  return rate ? to_string(*rate) : "no limit";
}

std::string megabits(std::int64_t bits) {
  if (bits == 0) return "no limit";
  char text[48];
  std::snprintf(text, sizeof text, "%.2fMbit/s", static_cast<double>(bits) / 1e6);
  return text;
}

std::string escaped(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 0x20) {
      char code[8];
      std::snprintf(code, sizeof code, "\\u%04x", static_cast<unsigned>(c));
      out += code;
    } else {
      out += c;
    }
  }
  return out + "\"";
}

// A JSON writer of the little that we need: keys in the order in which they are written.
class Json {
 public:
  void open(const char* key, char bracket) {
    start(key);
    text_ += bracket;
    closers_ += bracket == '{' ? '}' : ']';
    first_ = true;
  }
  void close() {
    const char closer = closers_.back();
    closers_.pop_back();
    if (!first_) text_ += "\n" + std::string(2 * closers_.size(), ' ');
    text_ += closer;
    first_ = false;
  }
  void put(const char* key, const std::string& value) { raw(key, escaped(value)); }
  void put(const char* key, std::int64_t value) { raw(key, std::to_string(value)); }
  void put(const char* key, const Derived& value) {
    raw(key,
        "{\"value\": " + std::to_string(value.value) + ", \"why\": " + escaped(value.why) + "}");
  }
  void raw(const char* key, const std::string& value) {
    start(key);
    text_ += value;
  }
  std::string text() const { return text_ + "\n"; }

 private:
  void start(const char* key) {
    if (!closers_.empty()) text_ += (first_ ? "\n" : ",\n") + std::string(2 * closers_.size(), ' ');
    if (key != nullptr) text_ += escaped(key) + ": ";
    first_ = false;
  }
  std::string text_;
  std::string closers_;
  bool first_ = true;
};

void put_netem(Json& json, const char* key, const Netem& netem) {
  json.open(key, '{');
  json.put("latency_ns", netem.latency_ns);
  json.put("jitter_ns", netem.jitter_ns);
  json.put("table", to_string(netem.table));
  json.put("limit", std::int64_t{netem.limit});
  json.put("loss", std::int64_t{netem.loss});
  json.put("duplicate", std::int64_t{netem.duplicate});
  json.put("corrupt", std::int64_t{netem.corrupt});
  json.put("reorder", std::int64_t{netem.reorder});
  json.put("gap", std::int64_t{netem.gap});
  json.raw("rate", std::to_string(netem.rate));
  json.put("packet_overhead", std::int64_t{netem.packet_overhead});
  if (netem.seed) json.raw("seed", std::to_string(*netem.seed));
  json.close();
}

void put_link(Json& json, const LinkPlan& link) {
  json.open(nullptr, '{');
  json.put("name", link.name);
  json.put("spec", to_string(link.spec));
  json.put("place", std::string(link.place == Place::egress ? "egress" : "ingress"));
  json.put("queue_bytes", link.queue_bytes);
  json.put("queue_packets", link.queue_packets);
  json.put("path_packets", link.path_packets);
  json.put("overhead", link.overhead);
  json.put("frame_time_ns", link.frame_time_ns);
  json.put("tcp_goodput", link.tcp_goodput);
  put_netem(json, "path", link.path);
  if (link.line) put_netem(json, "line", *link.line);
  json.close();
}

void put_vertex(Json& json, const VertexPlan& vertex) {
  json.open(nullptr, '{');
  json.put("name", vertex.name);
  json.put("kind", std::string(vertex.is_switch ? "switch" : "node"));
  json.put("address", vertex.address);
  if (!vertex.is_switch) {
    json.put("gso_segments", vertex.gso_segments);
    json.put("gso_bytes", vertex.gso_bytes);
    json.put("socket_buffer", vertex.socket_buffer);
  }
  json.close();
}

void put_path(Json& json, const PathPlan& path) {
  json.open(nullptr, '{');
  json.put("from", path.from);
  json.put("to", path.to);
  json.put("one_way_ns", path.one_way.ns);
  json.put("round_trip_ns", path.round_trip.ns);
  if (path.rate) json.put("rate", path.rate->bits_per_second);
  if (path.tcp_goodput) json.put("tcp_goodput", path.tcp_goodput->bits_per_second);
  json.put("bdp", path.bdp);
  json.put("socket_buffer", path.socket_buffer);
  json.close();
}

}  // namespace

std::string to_text(const Plan& plan) {
  std::string text =
      "seed " + std::to_string(plan.seed) + ", MTU " + std::to_string(plan.mtu) + "\n";

  std::vector<Row> rows{{"node", "address", "segments", "why", "socket buffer", "why"}};
  for (const VertexPlan& vertex : plan.vertices) {
    if (vertex.is_switch)
      rows.push_back({vertex.name, vertex.address, "-", "a switch", "-", ""});
    else
      rows.push_back({vertex.name, vertex.address, std::to_string(vertex.gso_segments.value),
                      vertex.gso_segments.why, to_string(Bytes{vertex.socket_buffer.value}),
                      vertex.socket_buffer.why});
  }
  text += "\nnodes\n" + table(rows);

  rows = {{"link", "as asked", "TCP goodput", "queue", "packets", "why"}};
  for (const LinkPlan& link : plan.links) {
    if (link.spec.rate)
      rows.push_back({link.name, to_string(link.spec), megabits(link.tcp_goodput.value),
                      std::to_string(link.queue_bytes.value) + "B",
                      std::to_string(link.queue_packets.value), link.queue_bytes.why});
    else
      rows.push_back({link.name, to_string(link.spec), "no limit", "-", "-", "no rate"});
  }
  text += "\nlinks\n" + table(rows);

  rows = {{"path", "one way", "round trip", "rate", "BDP", "socket buffer", "why"}};
  for (const PathPlan& path : plan.paths)
    rows.push_back({path.from + " to " + path.to, to_string(path.one_way),
                    to_string(path.round_trip), rate_text(path.rate),
                    path.rate ? std::to_string(path.bdp.value) + "B" : "-",
                    to_string(Bytes{path.socket_buffer.value}), path.socket_buffer.why});
  text += "\npaths\n" + table(rows);
  return text;
}

std::string to_json(const Plan& plan) {
  Json json;
  json.open(nullptr, '{');
  json.raw("seed", std::to_string(plan.seed));
  json.put("mtu", plan.mtu);
  json.open("vertices", '[');
  for (const VertexPlan& vertex : plan.vertices) put_vertex(json, vertex);
  json.close();
  json.open("links", '[');
  for (const LinkPlan& link : plan.links) put_link(json, link);
  json.close();
  json.open("paths", '[');
  for (const PathPlan& path : plan.paths) put_path(json, path);
  json.close();
  json.close();
  return json.text();
}

}  // namespace orrery::netshape
