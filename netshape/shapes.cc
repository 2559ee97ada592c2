#include "netshape/shapes.hh"

#include <stdexcept>

#include "base/error.hh"

namespace orrery::netshape {
namespace {

class Builder {
 public:
  Builder(std::vector<StarNode> nodes, const LinkSpec& trunk)
      : nodes_(std::move(nodes)), trunk_(trunk) {
    for (const StarNode& node : nodes_) topology_.nodes.push_back(node.name);
  }

  std::size_t size() const { return nodes_.size(); }

  const std::string& add_switch(const std::string& name) {
    return topology_.switches.emplace_back(name);
  }
  // By value: names live in a vector that grows.
  void join(std::string a, std::string b) {
    trunks_.push_back({std::move(a), std::move(b), trunk_, trunk_});
  }
  void wire(std::size_t node, std::string to) {
    const StarNode& entry = nodes_[node];
    topology_.links.push_back({entry.name, std::move(to), entry.up, entry.down});
  }
  Topology take() {
    topology_.links.insert(topology_.links.end(), trunks_.begin(), trunks_.end());
    return std::move(topology_);
  }

 private:
  std::vector<StarNode> nodes_;
  LinkSpec trunk_;
  Topology topology_;
  std::vector<Link> trunks_;
};

std::string numbered(const std::string& name, std::size_t i) { return name + std::to_string(i); }

// A switch a node; then which of them are joined.
void add_row(Builder& builder) {
  for (std::size_t i = 0; i < builder.size(); ++i)
    builder.wire(i, builder.add_switch(numbered("s", i)));
}

void add_chain(Builder& builder, bool closed) {
  const std::size_t n = builder.size();
  if (closed && n < 3)
    throw ValueError("a ring of " + std::to_string(n) + " nodes has no round; write at least 3");
  add_row(builder);
  for (std::size_t i = 0; i + 1 < n; ++i) builder.join(numbered("s", i), numbered("s", i + 1));
  if (closed) builder.join(numbered("s", n - 1), "s0");
}

void add_mesh(Builder& builder) {
  add_row(builder);
  for (std::size_t i = 0; i < builder.size(); ++i)
    for (std::size_t j = i + 1; j < builder.size(); ++j)
      builder.join(numbered("s", i), numbered("s", j));
}

void add_dumbbell(Builder& builder) {
  builder.add_switch("left");
  builder.add_switch("right");
  const std::size_t half = (builder.size() + 1) / 2;
  for (std::size_t i = 0; i < builder.size(); ++i) builder.wire(i, i < half ? "left" : "right");
  builder.join("left", "right");
}

void add_tree(Builder& builder, std::size_t arity) {
  if (arity < 2)
    throw ValueError("a tree's arity is how many hang on each switch; write at least 2");
  std::vector<std::string> level;
  for (std::size_t i = 0; i < builder.size(); ++i) {
    if (i % arity == 0) level.push_back(builder.add_switch(numbered("level0-s", i / arity)));
    builder.wire(i, level.back());
  }
  for (std::size_t height = 1; level.size() > 1; ++height) {
    std::vector<std::string> above;
    for (std::size_t i = 0; i < level.size(); ++i) {
      if (i % arity == 0)
        above.push_back(builder.add_switch("level" + std::to_string(height) + "-s" +
                                           std::to_string(i / arity)));
      builder.join(level[i], above.back());
    }
    level = std::move(above);
  }
}

void add_fat_tree(Builder& builder, std::size_t k) {
  if (k < 2 || k % 2 != 0)
    throw ValueError(
        "a fat tree's arity is the even number of ports of a switch; write 4, 6, 8, …");
  const std::size_t half = k / 2;
  const std::size_t room = k * half * half;
  if (builder.size() > room)
    throw ValueError("a fat tree of arity " + std::to_string(k) + " has room for " +
                     std::to_string(room) + " nodes, and there are " +
                     std::to_string(builder.size()) + "; write a larger arity");
  for (std::size_t core = 0; core < half * half; ++core) builder.add_switch(numbered("core", core));
  for (std::size_t pod = 0; pod < k; ++pod) {
    const std::string name = numbered("pod", pod);
    for (std::size_t i = 0; i < half; ++i) builder.add_switch(numbered(name + "-up", i));
    for (std::size_t i = 0; i < half; ++i) builder.add_switch(numbered(name + "-edge", i));
    for (std::size_t i = 0; i < half; ++i) {
      for (std::size_t j = 0; j < half; ++j) {
        builder.join(numbered(name + "-edge", j), numbered(name + "-up", i));
        // The i-th aggregation switch of each pod has the i-th group of the core.
        builder.join(numbered(name + "-up", i), numbered("core", i * half + j));
      }
    }
  }
  for (std::size_t node = 0; node < builder.size(); ++node) {
    const std::size_t edge = node / half;
    builder.wire(node, numbered(numbered("pod", edge / half) + "-edge", edge % half));
  }
}

void add_bigraph(Builder& builder, std::size_t switches) {
  if (switches < 2 || switches % 2 != 0)
    throw ValueError("a BiGraph's arity is its even number of switches; write 2, 4, 6, …");
  for (std::size_t i = 0; i < switches; ++i) builder.add_switch(numbered("s", i));
  for (std::size_t i = 0; i < switches / 2; ++i)
    for (std::size_t j = switches / 2; j < switches; ++j)
      builder.join(numbered("s", i), numbered("s", j));
  const std::size_t each = (builder.size() + switches - 1) / switches;
  for (std::size_t node = 0; node < builder.size(); ++node)
    builder.wire(node, numbered("s", node / each));
}

}  // namespace

std::string_view arity_meaning(Shape shape) {
  switch (shape) {
    case Shape::tree:
      return "how many nodes or switches hang on each switch";
    case Shape::fat_tree:
      return "k, the ports of a switch";
    case Shape::bigraph:
      return "the number of switches, half of them on either side";
    default:
      return "";
  }
}

Topology make_shape(Shape shape, std::vector<StarNode> nodes, const LinkSpec& trunk,
                    std::int64_t arity) {
  if (shape == Shape::star) return star(std::move(nodes));
  Builder builder(std::move(nodes), trunk);
  const auto size = static_cast<std::size_t>(arity > 0 ? arity : 0);
  switch (shape) {
    case Shape::star:
      break;
    case Shape::chain:
      add_chain(builder, false);
      break;
    case Shape::ring:
      add_chain(builder, true);
      break;
    case Shape::mesh:
      add_mesh(builder);
      break;
    case Shape::dumbbell:
      add_dumbbell(builder);
      break;
    case Shape::tree:
      add_tree(builder, size);
      break;
    case Shape::fat_tree:
      add_fat_tree(builder, size);
      break;
    case Shape::bigraph:
      add_bigraph(builder, size);
      break;
  }
  return builder.take();
}

const std::string& switch_of(const Topology& topology, const std::string& node) {
  const std::string* found = nullptr;
  for (const Link& link : topology.links) {
    if (link.a != node && link.b != node) continue;
    if (found) throw std::logic_error("'" + node + "' has more than one link");
    found = link.a == node ? &link.b : &link.a;
  }
  if (!found) throw std::logic_error("'" + node + "' has no link");
  return *found;
}

}  // namespace orrery::netshape
