#include "agents/profile.hh"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.hh"
#include "base/fd.hh"

namespace orrery {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

Profile example() {
  const ModelSpec mlp = make_mlp({20, 10, 5}, LayerKind::tanh);
  Profile profile{mlp.name, "libtorch 1.13.1, OpenBLAS 0.3.21 Zen", "a \"CPU\"", {}};
  profile.entries = {
      {forward_kernel(mlp, 0, 2, 64), Duration::microseconds(12), Duration::microseconds(15)},
      {reduce_kernel(77), Duration::microseconds(2), Duration::microseconds(6)}};
  return profile;
}

TEST(Profile, JsonRoundTripIsExact) {
  const Profile profile = example();
  const Profile again = profile_from_json(to_json(profile), "x.json");
  EXPECT_EQ(to_json(again), to_json(profile));
  EXPECT_EQ(again.hash(), profile.hash());
  EXPECT_EQ(again.cpu, profile.cpu);
  ASSERT_EQ(again.entries.size(), 2u);
  EXPECT_EQ(again.entries[0].kernel, profile.entries[0].kernel);
  EXPECT_EQ(again.entries[1].p95, profile.entries[1].p95);
  EXPECT_EQ(again.cost()->base(reduce_kernel(77)), Duration::microseconds(2));
}

TEST(Profile, HashIgnoresOrderOnly) {
  Profile profile = example();
  const std::string hash = profile.hash();
  EXPECT_EQ(hash.size(), 16u);
  std::swap(profile.entries[0], profile.entries[1]);
  EXPECT_EQ(profile.hash(), hash);
  profile.entries[0].median.ns += 1;
  EXPECT_NE(profile.hash(), hash);
}

TEST(Profile, SpreadIsThatOfTheWorstKernel) {
  EXPECT_DOUBLE_EQ(example().spread(), 3);
  EXPECT_DOUBLE_EQ(Profile{}.spread(), 1);
}

TEST(Profile, MalformedFiles) {
  const auto complaint = [](const std::string& text) -> std::string {
    try {
      profile_from_json(text, "p.json");
    } catch (const Error& error) {
      return error.what();
    }
    return "none";
  };
  EXPECT_THAT(complaint(""), StartsWith("p.json: is no profile ("));
  EXPECT_THAT(complaint("{}"), StartsWith("p.json: is no profile ("));
  EXPECT_THAT(complaint("[1]"), StartsWith("p.json: is no profile ("));
  EXPECT_EQ(complaint("{\"orrery_profile\": 9}"),
            "p.json: is a profile of another version; version 1 is needed");
  std::string text = to_json(example());
  const auto replaced = [&](const std::string& from, const std::string& to) {
    std::string copy = text;
    copy.replace(copy.find(from), from.size(), to);
    return copy;
  };
  EXPECT_EQ(complaint(replaced("\"op\":\"reduce\"", "\"op\":\"fly\"")),
            "p.json: \"fly\" is no operation of a kernel");
  EXPECT_THAT(complaint(replaced("\"median_ns\":2000", "\"median_ns\":-2")),
              HasSubstr("negative time"));
  EXPECT_THAT(complaint(replaced("\"count\":77", "\"count\":\"many\"")),
              HasSubstr("is no profile"));
  EXPECT_THAT(complaint(text.substr(0, text.size() / 2)), HasSubstr("is no profile"));
}

TEST(Profile, FileNamesTellWhatMatters) {
  const ModelSpec mlp = make_mlp({20, 10, 5}, LayerKind::tanh);
  std::vector<KernelSpec> kernels{reduce_kernel(5), copy_kernel(6)};
  const std::string name = profile_file_name(mlp, kernels, "lib", "cpu");
  EXPECT_THAT(name, StartsWith("mlp-20-10-5-tanh-"));
  EXPECT_THAT(name, ::testing::EndsWith(".json"));
  std::reverse(kernels.begin(), kernels.end());
  kernels.push_back(copy_kernel(6));
  EXPECT_EQ(profile_file_name(mlp, kernels, "lib", "cpu"), name);
  EXPECT_NE(profile_file_name(mlp, kernels, "lib 2", "cpu"), name);
  EXPECT_NE(profile_file_name(mlp, kernels, "lib", "cpu 2"), name);
  kernels.push_back(copy_kernel(7));
  EXPECT_NE(profile_file_name(mlp, kernels, "lib", "cpu"), name);
}

TEST(Profile, CpuNameOfAFakeProc) {
  const std::string path = ::testing::TempDir() + "cpuinfo";
  write_file(path, "processor\t: 0\nmodel name\t: Fast CPU @ 3 GHz\nflags\t\t: fpu\n");
  EXPECT_EQ(cpu_name(path), "Fast CPU @ 3 GHz");
  write_file(path, "processor\t: 0\n");
  EXPECT_EQ(cpu_name(path), "unknown CPU");
}

}  // namespace
}  // namespace orrery
