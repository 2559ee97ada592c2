#include "emulator/config/document.hh"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "base/fd.hh"
#include "base/philox.hh"
#include "emulator/config/load.hh"
#include "tests/emulator/config/fake_catalog.hh"

namespace orrery::config {
namespace {

namespace fs = std::filesystem;

struct Parsed {
  Diagnostics diagnostics;
  Node root;
  explicit Parsed(const std::string& text, const DocumentLimits& limits = {})
      : root(parse_document("t.yaml", text, diagnostics, limits)) {}
};

std::string where(const Place& place) {
  return std::to_string(place.line) + ":" + std::to_string(place.column);
}

TEST(Document, KnowsWhereEverythingIs) {
  const Parsed p("a: 1\nb:\n  - x\n  - {k: v, l: 'w'}\n");
  ASSERT_TRUE(p.diagnostics.ok()) << p.diagnostics.errors_text();
  EXPECT_EQ(where(p.root.place), "1:1");
  EXPECT_EQ(where(p.root.entry("b")->place), "2:1");
  const Node& list = *p.root.find("b");
  EXPECT_EQ(where(list.place), "3:3");
  EXPECT_EQ(where(list.items[0].place), "3:5");
  EXPECT_EQ(where(list.items[1].find("k")->place), "4:9");
  EXPECT_EQ(where(list.items[1].find("l")->place), "4:15");
  EXPECT_FALSE(list.items[1].find("k")->quoted);
  EXPECT_TRUE(list.items[1].find("l")->quoted);
}

TEST(Document, ColumnsCountCharacters) {
  const Parsed p("{größe: 漢字, b: c}\n");
  EXPECT_EQ(where(p.root.find("b")->place), "1:16");
}

TEST(Document, KeepsTheOrderOfKeys) {
  const Parsed p("z: 1\na: 2\nm: 3\n");
  ASSERT_EQ(p.root.entries.size(), 3u);
  EXPECT_EQ(p.root.entries[0].key, "z");
  EXPECT_EQ(p.root.entries[2].key, "m");
}

TEST(Document, ReportsDuplicateKeysAndKeepsTheFirst) {
  const Parsed p("a: 1\na: 2\nb: {c: 1, c: 2}\n");
  EXPECT_EQ(p.diagnostics.error_count(), 2u);
  EXPECT_EQ(p.root.find("a")->text, "1");
  EXPECT_EQ(p.root.find("b")->entries.size(), 1u);
}

TEST(Document, AnAliasIsACopyThatKnowsItsOrigin) {
  const Parsed p("a: &x {k: v}\nb: *x\n");
  ASSERT_TRUE(p.diagnostics.ok());
  EXPECT_EQ(p.root.find("b")->find("k")->text, "v");
  EXPECT_EQ(where(p.root.find("b")->find("k")->place), "1:11");
}

TEST(Document, AnAnchorCanBeDefinedAnew) {
  const Parsed p("a: &x 1\nb: *x\nc: &x 2\nd: *x\n");
  EXPECT_EQ(p.root.find("b")->text, "1");
  EXPECT_EQ(p.root.find("d")->text, "2");
}

TEST(Document, BlockTextsAndDocumentMarkers) {
  const Parsed p("---\na: |\n  one\n  two\nb: >\n  three\n  four\n...\n");
  ASSERT_TRUE(p.diagnostics.ok()) << p.diagnostics.errors_text();
  EXPECT_EQ(p.root.find("a")->text, "one\ntwo\n");
  EXPECT_EQ(p.root.find("b")->text, "three four\n");
}

TEST(Document, LineEndsAndByteOrderMarkDoNotMatter) {
  const Parsed unix_text("a: 1\nb: 2\n");
  for (const std::string text : {"a: 1\r\nb: 2\r\n", "a: 1\rb: 2\r",
                                 "\xEF\xBB\xBF"
                                 "a: 1\nb: 2\n"}) {
    const Parsed p(text);
    ASSERT_TRUE(p.diagnostics.ok()) << p.diagnostics.errors_text();
    EXPECT_EQ(p.root.find("b")->text, "2");
    EXPECT_EQ(where(p.root.find("b")->place), "2:4");
  }
}

TEST(Document, LimitsEndInOneLine) {
  EXPECT_EQ(Parsed(std::string(200, 'x'), {.bytes = 100}).diagnostics.error_count(), 1u);
  EXPECT_EQ(Parsed("[1, 2, 3, 4]", {.nodes = 3}).diagnostics.error_count(), 1u);
  EXPECT_EQ(Parsed("[[[[1]]]]", {.depth = 3}).diagnostics.error_count(), 1u);
  EXPECT_TRUE(Parsed("[[[1]]]", {.depth = 3}).diagnostics.ok());
}

class InFolder : public testing::Test {
 protected:
  InFolder() {
    std::string pattern = (fs::temp_directory_path() / "orrery-config-XXXXXX").string();
    folder = ::mkdtemp(pattern.data());
  }
  ~InFolder() override { fs::remove_all(folder); }

  std::string error_of(const fs::path& path) const {
    try {
      load(path.string(), fake_catalog());
    } catch (const InvalidFile& invalid) {
      EXPECT_EQ(invalid.code(), ExitCode::usage);
      return invalid.what();
    }
    return "accepted";
  }

  fs::path folder;
};

TEST_F(InFolder, AMissingFileADirectoryAndAnUnreadableOneAreOneLineEach) {
  const std::string missing = (folder / "none.yaml").string();
  EXPECT_EQ(error_of(missing),
            missing +
                ": no such file; give the path of an experiment, or write one with `orrery "
                "init`\n");
  EXPECT_EQ(error_of(folder),
            folder.string() + ": is a directory; give the path of an experiment file\n");
  const fs::path locked = folder / "locked.yaml";
  write_file(locked, "orrery: 1\n");
  ASSERT_EQ(::chmod(locked.c_str(), 0), 0);
  if (::geteuid() == 0) return;  // root reads it all the same
  EXPECT_NE(error_of(locked).find("cannot be read"), std::string::npos);
}

TEST_F(InFolder, AHugeFileIsNotRead) {
  const fs::path huge = folder / "huge.yaml";
  write_file(huge, "");
  fs::resize_file(huge, 1ull << 40);  // sparse
  EXPECT_EQ(error_of(huge), huge.string() + ": the file is larger than 16 MiB; no experiment is\n");
}

TEST_F(InFolder, LoadReadsWhatLoadTextReads) {
  const fs::path source = fs::path(ORRERY_SOURCE_DIR) / "configs/minimal.yaml";
  EXPECT_EQ(load(source.string(), fake_catalog()).experiment,
            load_text("x", read_file(source), fake_catalog()).experiment);
}

/// Whatever the bytes are, the reader ends, with an experiment or with InvalidFile.
void must_end(const std::string& text) {
  try {
    load_text("fuzz", text, fake_catalog());
  } catch (const InvalidFile& invalid) {
    EXPECT_GT(std::string(invalid.what()).size(), 0u);
  }
}

TEST(Fuzz, DamagedExperimentsEndWell) {
  const fs::path folder = fs::path(ORRERY_SOURCE_DIR) / "configs";
  const std::string pieces = "{}[]:,-&*!|>'\"#%@`?\n\t  \r\x01\xff<=~0";
  for (const char* name : {"minimal", "quickstart", "faults"}) {
    const std::string good = read_file(folder / (std::string(name) + ".yaml"));
    for (std::uint64_t round = 0; round < 150; ++round) {
      Philox random(7, name, round);
      std::string text = good;
      for (std::uint32_t k = 0; k <= random.below(4); ++k) {
        const std::size_t at = random.below(static_cast<std::uint32_t>(text.size()));
        const char piece = pieces[random.below(static_cast<std::uint32_t>(pieces.size()))];
        switch (random.below(4)) {
          case 0:
            text[at] = piece;
            break;
          case 1:
            text.insert(at, 1, piece);
            break;
          case 2:
            text.erase(at, 1 + random.below(20));
            break;
          default:
            text.resize(at + 1);
        }
      }
      must_end(text);
    }
  }
}

TEST(Document, ThousandsOfNodesAreReadAndWritten) {
  const std::string text = R"(orrery: 1
name: large
cluster: {nodes: [{name: "n[0-4095]", device: ideal}], network: {link: {delay: 1ms}}}
workload: {model: lenet5}
runs: [{name: r, strategy: sgd_allreduce, stop: {steps: 1}}]
)";
  const Experiment large = load_text("large", text, fake_catalog()).experiment;
  EXPECT_EQ(large.cluster.nodes.size(), 4096u);
  EXPECT_EQ(load_text("large", to_yaml(large, fake_catalog()), fake_catalog()).experiment, large);
}

TEST(Fuzz, EveryPrefixEndsWell) {
  const std::string good = read_file(fs::path(ORRERY_SOURCE_DIR) / "configs/minimal.yaml");
  for (std::size_t length = 0; length < good.size(); length += 3) must_end(good.substr(0, length));
}

}  // namespace
}  // namespace orrery::config
