// What agents/interposed.cc replaces: that the libraries installed here still have those functions
// under those names (they are mangled, with versions in them), and that ours come first.

#include <absl/base/config.h>
#include <dlfcn.h>
#include <grpc/grpc.h>
#include <gtest/gtest.h>

#include <string>

namespace orrery {
namespace {

#define ORRERY_TEXT(token) #token
#define ORRERY_TEXT_OF(macro) ORRERY_TEXT(macro)

// absl::NAMESPACE::GetCurrentTimeNanos(), mangled; the inline namespace differs between releases.
std::string abseil_clock() {
  const std::string space = ORRERY_TEXT_OF(ABSL_OPTION_INLINE_NAMESPACE_NAME);
  return "_ZN4absl" + std::to_string(space.size()) + space + "19GetCurrentTimeNanosEv";
}

class Interposed : public testing::TestWithParam<std::string> {};

TEST_P(Interposed, IsInALibraryAndComesFromTheProgram) {
  void* ours = ::dlsym(RTLD_DEFAULT, GetParam().c_str());
  void* library = ::dlsym(RTLD_NEXT, GetParam().c_str());
  ASSERT_NE(library, nullptr) << "gRPC " << grpc_version_string() << " and Abseil have it no more";
  ASSERT_NE(ours, library) << "the library's own is used";
  // Ours lies where this test does, in the program.
  Dl_info found{};
  Dl_info here{};
  ASSERT_NE(::dladdr(ours, &found), 0);
  ASSERT_NE(::dladdr(reinterpret_cast<void*>(&abseil_clock), &here), 0);
  EXPECT_EQ(found.dli_fbase, here.dli_fbase);
}

INSTANTIATE_TEST_SUITE_P(
    Functions, Interposed,
    testing::Values(abseil_clock(), "setsockopt",
                    "_ZNK9grpc_core6chttp220TransportFlowControl13target_windowEv"));

}  // namespace
}  // namespace orrery
