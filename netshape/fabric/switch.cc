#include "netshape/fabric/switch.hh"

#include <arpa/inet.h>

#include <algorithm>
#include <map>
#include <stdexcept>

namespace orrery::netshape {
namespace {

constexpr std::int64_t wire_extra = 24;  // preamble 8, frame check sequence 4, gap 12

}  // namespace

PacketSizes Piece::sizes() const {
  PacketSizes sizes = frame->shape.sizes;
  if (first + count < sizes.segments) sizes.last_bytes = sizes.full_bytes;
  sizes.segments = count;
  return sizes;
}

Switch::Switch(const Plan& plan) {
  std::map<std::string, std::size_t> index;
  for (std::size_t i = 0; i < plan.vertices.size(); ++i) {
    const VertexPlan& vertex = plan.vertices[i];
    index[vertex.name] = i;
    vertices_[inet_addr(vertex.address.c_str())] = i;
    is_switch_.push_back(vertex.is_switch);
  }
  std::map<std::string, std::size_t> by_name;
  for (std::size_t i = 0; i < plan.links.size(); ++i) {
    const LinkPlan& link = plan.links[i];
    by_name[link.name] = i;
    links_.push_back(
        {link.name, index.at(link.from), index.at(link.to), LinkEmulation(model_of(link)), {}});
    ports_.push_back({index.at(link.from), i});
  }
  own_port_.assign(plan.vertices.size(), nowhere);
  next_.resize(plan.vertices.size());
  for (std::size_t v = 0; v < plan.vertices.size(); ++v) {
    const VertexPlan& vertex = plan.vertices[v];
    if (!vertex.is_switch) continue;
    own_port_[v] = ports_.size();
    ports_.push_back({v, nowhere});
    next_[v].assign(plan.vertices.size(), nowhere);
    for (const Route& route : vertex.routes)
      next_[v][index.at(route.to)] = by_name.at(link_name(vertex.name, route.via));
    for (std::size_t i = 0; i < links_.size(); ++i)
      if (links_[i].from == v) next_[v][links_[i].to] = i;
  }
}

void Switch::receive(PortNumber port, FrameRef frame, Instant now) {
  const auto shape = shape_of(frame->net, frame->bytes());
  if (!shape) {
    ++refused_;
    return;
  }
  frame->shape = *shape;
  Piece piece{std::move(frame), 0, shape->sizes.segments, false, false, 0};
  const Port& in = ports_.at(port);
  if (in.link != nowhere)
    enter(in.link, piece, now);
  else
    forward(in.vertex, piece, now);
}

void Switch::forward(std::size_t vertex, const Piece& piece, Instant now) {
  const auto target = vertices_.find(piece.frame->shape.destination);
  const std::size_t link = target == vertices_.end() ? nowhere : next_[vertex][target->second];
  if (link == nowhere)
    ++refused_;
  else
    enter(link, piece, now);
}

void Switch::enter(std::size_t link, const Piece& piece, Instant now) {
  Direction& direction = links_[link];
  for (const Release& release : direction.emulation.enqueue(piece.sizes(), now)) {
    Piece part = piece;
    part.first = piece.first + release.first;
    part.count = release.count;
    part.marked |= release.marked;
    if (release.corrupted) {
      part.corrupted = true;
      part.corrupt_draw = release.corrupt_draw;
    }
    direction.carried.on_the_way += part.count;
    heap_.push_back({release.at, order_++, link, std::move(part)});
    std::push_heap(heap_.begin(), heap_.end(), Later{});
  }
}

std::optional<Instant> Switch::next_release() const {
  if (heap_.empty()) return {};
  return heap_.front().at;
}

void Switch::arrive(const Due& due, PortWriter& writer) {
  const std::size_t vertex = links_[due.link].to;
  if (!is_switch_[vertex]) {
    // Plan::links holds both directions of a link side by side.
    writer.write(due.link ^ 1, due.piece);
    return;
  }
  const auto target = vertices_.find(due.piece.frame->shape.destination);
  if (target != vertices_.end() && target->second == vertex)
    writer.write(own_port_[vertex], due.piece);
  else
    forward(vertex, due.piece, due.at);
}

bool Switch::release_until(Instant now, PortWriter& writer, int most) {
  for (int released = 0; !heap_.empty() && heap_.front().at <= now; ++released) {
    if (released == most) return true;
    std::pop_heap(heap_.begin(), heap_.end(), Later{});
    const Due due = std::move(heap_.back());
    heap_.pop_back();
    Carried& carried = links_[due.link].carried;
    carried.packets += due.piece.count;
    carried.on_the_way -= due.piece.count;
    carried.l2_bytes += due.piece.sizes().bytes(0, due.piece.count);
    carried.lateness.add(now - due.at);
    arrive(due, writer);
  }
  return false;
}

void Switch::change(const Plan& after, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const std::size_t at = index_of(name);
    links_[at].emulation.change(model_of(after.links[at]));
  }
}

std::vector<LinkCounters> Switch::counters(Instant now) {
  std::vector<LinkCounters> all;
  for (Direction& direction : links_) {
    const Carried& carried = direction.carried;
    LinkCounters counters;
    counters.link = direction.name;
    counters.packets = carried.packets;
    counters.l2_bytes = carried.l2_bytes;
    counters.wire_bytes = carried.l2_bytes + wire_extra * carried.packets;
    counters.queue_drops = direction.emulation.queue_drops();
    counters.loss_drops = direction.emulation.loss_drops();
    counters.queued = direction.emulation.line().waiting_packets(now);
    counters.in_flight = std::max<std::int64_t>(0, carried.on_the_way - counters.queued);
    all.push_back(counters);
  }
  return all;
}

std::vector<ReleaseLateness> Switch::lateness() const {
  std::vector<ReleaseLateness> all;
  for (const Direction& direction : links_) {
    const Lateness& late = direction.carried.lateness;
    all.push_back({direction.name, late.count(), late.percentile(0.5), late.percentile(0.99),
                   late.largest()});
  }
  return all;
}

std::size_t Switch::index_of(const std::string& link) const {
  for (std::size_t i = 0; i < links_.size(); ++i)
    if (links_[i].name == link) return i;
  throw std::logic_error("the fabric has no link '" + link + "'");
}

const LinkEmulation& Switch::link(const std::string& name) const {
  return links_[index_of(name)].emulation;
}

}  // namespace orrery::netshape
