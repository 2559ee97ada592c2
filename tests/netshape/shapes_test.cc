#include "netshape/shapes.hh"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/error.hh"
#include "netshape/plan.hh"

namespace orrery::netshape {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<StarNode> nodes(int n) {
  std::vector<StarNode> list;
  for (int i = 0; i < n; ++i) list.push_back({"n" + std::to_string(i), {}, {}});
  return list;
}

LinkSpec trunk() {
  LinkSpec spec;
  spec.delay = Duration::milliseconds(5);
  spec.rate = BitRate::mbit(50);
  return spec;
}

Topology make(Shape shape, int n, std::int64_t arity = 0) {
  Topology made = make_shape(shape, nodes(n), trunk(), arity);
  EXPECT_THAT(problems(made), IsEmpty());
  return made;
}

std::size_t hops(const Plan& plan, int from, int to) {
  return plan.path("n" + std::to_string(from), "n" + std::to_string(to)).links.size();
}

TEST(Shapes, HaveTheirSwitchesAndTrunks) {
  struct Case {
    Shape shape;
    int n;
    std::int64_t arity;
    std::size_t switches, trunks;
  };
  for (const Case& c : {Case{Shape::star, 5, 0, 1, 0}, Case{Shape::chain, 5, 0, 5, 4},
                        Case{Shape::ring, 5, 0, 5, 5}, Case{Shape::mesh, 5, 0, 5, 10},
                        Case{Shape::dumbbell, 5, 0, 2, 1}, Case{Shape::tree, 5, 2, 6, 5},
                        Case{Shape::tree, 4, 4, 1, 0}, Case{Shape::fat_tree, 16, 4, 20, 32},
                        Case{Shape::bigraph, 16, 8, 8, 16}}) {
    const Topology made = make(c.shape, c.n, c.arity);
    EXPECT_EQ(made.switches.size(), c.switches) << static_cast<int>(c.shape);
    EXPECT_EQ(made.links.size(), static_cast<std::size_t>(c.n) + c.trunks)
        << static_cast<int>(c.shape);
  }
}

TEST(Shapes, PathsAreAsLongAsTheyShould) {
  const Plan chain = plan(make(Shape::chain, 5), 1);
  EXPECT_EQ(hops(chain, 0, 4), 6u);  // to its switch, four trunks, from the last one
  const Plan ring = plan(make(Shape::ring, 5), 1);
  EXPECT_EQ(hops(ring, 0, 4), 3u);
  EXPECT_EQ(hops(ring, 0, 2), 4u);
  const Plan mesh = plan(make(Shape::mesh, 5), 1);
  EXPECT_EQ(hops(mesh, 1, 3), 3u);
  const Plan dumbbell = plan(make(Shape::dumbbell, 5), 1);
  EXPECT_EQ(hops(dumbbell, 0, 2), 2u);  // the first three of five are left
  EXPECT_EQ(hops(dumbbell, 2, 3), 3u);
  const Plan fat = plan(make(Shape::fat_tree, 16, 4), 1);
  EXPECT_EQ(hops(fat, 0, 1), 2u);   // one edge switch
  EXPECT_EQ(hops(fat, 0, 2), 4u);   // one pod
  EXPECT_EQ(hops(fat, 0, 15), 6u);  // over the core
  EXPECT_EQ(fat.path("n0", "n15").one_way, Duration::milliseconds(20));
  const Plan two = plan(make(Shape::bigraph, 16, 8), 1);
  EXPECT_EQ(hops(two, 0, 8), 3u);  // from one half to the other
  EXPECT_EQ(hops(two, 0, 2), 4u);  // between two of one half, by way of the other
}

TEST(Shapes, EqualPathsAreSpreadByTheSeed) {
  const Topology made = make(Shape::fat_tree, 16, 4);
  const auto cores = [&](std::uint64_t seed) {
    std::set<std::string> used;
    const Plan planned = plan(made, seed);
    for (const PathPlan& path : planned.paths)
      for (const std::string& link : path.links)
        if (link.find("->core") != std::string::npos) used.insert(link.substr(link.find("core")));
    return used;
  };
  EXPECT_EQ(cores(1).size(), 4u);
  const auto path = [&](std::uint64_t seed) { return plan(made, seed).path("n0", "n15").links; };
  EXPECT_EQ(path(1), path(1));
  std::set<std::vector<std::string>> seen;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) seen.insert(path(seed));
  EXPECT_EQ(seen.size(), 4u);  // two ways up, two from there: all of them come
}

TEST(Shapes, SayWhatDoesNotFit) {
  const auto complaint = [](Shape shape, int n, std::int64_t arity) -> std::string {
    try {
      make_shape(shape, nodes(n), trunk(), arity);
    } catch (const ValueError& error) {
      return error.what();
    }
    return "none";
  };
  EXPECT_THAT(complaint(Shape::ring, 2, 0), HasSubstr("at least 3"));
  EXPECT_THAT(complaint(Shape::tree, 4, 1), HasSubstr("at least 2"));
  EXPECT_THAT(complaint(Shape::fat_tree, 4, 3), HasSubstr("write 4, 6, 8"));
  EXPECT_EQ(complaint(Shape::fat_tree, 17, 4),
            "a fat tree of arity 4 has room for 16 nodes, and there are 17; write a larger arity");
  EXPECT_THAT(complaint(Shape::bigraph, 4, 5), HasSubstr("even number of switches"));
}

TEST(Shapes, ANodeKnowsItsSwitch) {
  const Topology made = make(Shape::dumbbell, 4);
  EXPECT_EQ(switch_of(made, "n0"), "left");
  EXPECT_EQ(switch_of(made, "n3"), "right");
  EXPECT_THROW(switch_of(made, "n4"), std::logic_error);
}

}  // namespace
}  // namespace orrery::netshape
