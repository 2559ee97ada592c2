#include "emulator/config/diagnostics.hh"

#include <gtest/gtest.h>

namespace orrery::config {
namespace {

TEST(Diagnostics, PrintsPlaceLineAndCaret) {
  Diagnostics diagnostics;
  const Source& source = diagnostics.add_source({"x.yaml", "a: 1\nb: zwölf, dreizehn\n"});
  diagnostics.error({&source, 2, 11}, "what; what would be right");
  EXPECT_EQ(diagnostics.errors_text(),
            "x.yaml:2:11: what; what would be right\n"
            "  b: zwölf, dreizehn\n"
            "            ^\n");
}

TEST(Diagnostics, SortsByPlaceAndKeepsOneOfEqualOnes) {
  Diagnostics diagnostics;
  const Source& source = diagnostics.add_source({"x", "ab\ncd\n"});
  const Source& option = diagnostics.add_source({"--set", "k=v", false});
  diagnostics.error({&option, 1, 3}, "four");
  diagnostics.error({&source, 2, 1}, "three");
  diagnostics.error({&source, 1, 2}, "two");
  diagnostics.error({&source, 1, 1}, "one");
  diagnostics.error({&source, 1, 2}, "two");
  diagnostics.error("none has a place");
  EXPECT_EQ(diagnostics.error_count(), 5u);
  EXPECT_EQ(diagnostics.errors_text(),
            "none has a place\n"
            "x:1:1: one\n  ab\n  ^\n"
            "x:1:2: two\n  ab\n   ^\n"
            "x:2:1: three\n  cd\n  ^\n"
            "--set:3: four\n  k=v\n    ^\n");
}

TEST(Diagnostics, ThrowsOnlyForErrors) {
  Diagnostics diagnostics;
  const Source& source = diagnostics.add_source({"x", "ab"});
  diagnostics.warning({&source, 1, 1}, "careful");
  EXPECT_NO_THROW(diagnostics.throw_if_any());
  ASSERT_EQ(diagnostics.warnings().size(), 1u);
  EXPECT_EQ(diagnostics.warnings()[0], "x:1:1: warning: careful\n  ab\n  ^\n");
  diagnostics.error({&source, 1, 1}, "wrong");
  EXPECT_THROW(diagnostics.throw_if_any(), InvalidFile);
}

TEST(Diagnostics, APlaceBeyondTheTextIsPrintedAtItsEnd) {
  Diagnostics diagnostics;
  const Source& source = diagnostics.add_source({"x", "ab"});
  diagnostics.error({&source, 9, 9}, "gone");
  EXPECT_EQ(diagnostics.errors_text(), "x:9:9: gone\n  \n  ^\n");
}

}  // namespace
}  // namespace orrery::config
