#include "emulator/config/schema.hh"

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/fd.hh"
#include "emulator/config/experiment_schema.hh"
#include "emulator/config/load.hh"
#include "tests/emulator/config/fake_catalog.hh"

namespace orrery::config {
namespace {

bool accepts(const TypePtr& type, const std::string& text) {
  Diagnostics diagnostics;
  const Node node = parse_document("t", text, diagnostics);
  type->check(node, diagnostics);
  return diagnostics.ok();
}

TEST(Schema, Scalars) {
  EXPECT_TRUE(accepts(boolean(), "true"));
  for (const char* text : {"yes", "True", "1", "'true'", "[]"})
    EXPECT_FALSE(accepts(boolean(), text)) << text;

  EXPECT_TRUE(accepts(integer(1, 5), "5"));
  for (const char* text : {"0", "6", "2.0", "0x3", "'3'", "1_0", "99999999999999999999", "{a: b}"})
    EXPECT_FALSE(accepts(integer(1, 5), text)) << text;

  EXPECT_TRUE(accepts(unsigned_integer(), "18446744073709551615"));
  EXPECT_FALSE(accepts(unsigned_integer(), "18446744073709551616"));
  EXPECT_FALSE(accepts(unsigned_integer(), "-1"));

  for (const char* text : {"1", "0.5", "1e-3", ".5"})
    EXPECT_TRUE(accepts(number(0.0, 1.0), text)) << text;
  for (const char* text : {"nan", "inf", ".inf", "1.5", "-0.1", "'0.5'", "0,5"})
    EXPECT_FALSE(accepts(number(0.0, 1.0), text)) << text;
  EXPECT_FALSE(accepts(number(0.0, {}, true), "0"));

  EXPECT_TRUE(accepts(name(), "nd_cao-2"));
  for (const char* text : {"2nd", "a.b", "a b", "''", "ä", "-a"})
    EXPECT_FALSE(accepts(name(), text)) << text;
}

TEST(Schema, NearestKnowsCommonSlips) {
  const std::vector<std::string> keys{"delay", "jitter", "rate", "loss"};
  EXPECT_EQ(nearest("dealy", keys), "delay");
  EXPECT_EQ(nearest("jiter", keys), "jitter");
  EXPECT_EQ(nearest("Rate", keys), "rate");
  EXPECT_EQ(nearest("bandwidth", keys), std::nullopt);
  EXPECT_EQ(nearest("", keys), std::nullopt);
}

TEST(Schema, JsonSchemaHoldsEveryObject) {
  const auto schema = experiment_json_schema(fake_catalog());
  EXPECT_EQ(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
  EXPECT_EQ(schema["$ref"], "#/$defs/experiment");
  const auto& root = schema["$defs"]["experiment"];
  EXPECT_EQ(root["additionalProperties"], false);
  EXPECT_EQ(root["required"],
            (std::vector<std::string>{"orrery", "name", "cluster", "workload", "runs"}));
  // Every reference leads somewhere.
  const std::string text = schema.dump();
  std::size_t references = 0;
  for (std::size_t at = text.find("#/$defs/"); at != std::string::npos;
       at = text.find("#/$defs/", at + 1), ++references) {
    const std::size_t start = at + 8;
    const std::string target = text.substr(start, text.find('"', start) - start);
    EXPECT_TRUE(schema["$defs"].contains(target)) << target;
  }
  EXPECT_GT(references, 15u);
  EXPECT_TRUE(schema["$defs"]["options_of_nd_cao"]["properties"]["mode"].contains("enum"));
}

/// docs/experiment-file.md holds the generated tables between two markers. With ORRERY_UPDATE set
/// in the environment they are written anew.
TEST(Schema, ReferenceInTheDocumentationIsThatOfTheSchema) {
  const std::string path = std::string(ORRERY_SOURCE_DIR) + "/docs/experiment-file.md";
  const std::string begin = "<!-- reference: generated from the schema -->\n\n";
  const std::string end = "<!-- end of reference -->";
  std::string document = read_file(path);
  const std::size_t from = document.find(begin);
  const std::size_t to = document.find(end);
  ASSERT_NE(from, std::string::npos);
  ASSERT_NE(to, std::string::npos);
  const std::size_t start = from + begin.size();
  const std::string reference = experiment_reference();
  if (std::getenv("ORRERY_UPDATE")) {
    document.replace(start, to - start, reference);
    write_file(path, document);
  } else {
    EXPECT_EQ(document.substr(start, to - start), reference);
  }
}

}  // namespace
}  // namespace orrery::config
