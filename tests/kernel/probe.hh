#pragma once

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>

/// The guest side of the kernel's tests. One program boots as init, runs the one check that the
/// kernel's command line names, and prints lines that the host side (kernel_test.cc) reads:
/// `VALUE key text` and at the end `RESULT ok` or `RESULT failed: why`.
namespace orrery::probe {

/// Thrown by a check whose expectation does not hold.
struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Adds a check under its name to the table that main() looks in.
struct Registration {
  Registration(std::string_view name, std::function<void()> body);
};

/// Prints a measured value for the host side to judge.
void report(std::string_view key, const std::string& value);
void report(std::string_view key, std::int64_t value);

/// Throws a Failure naming `what` unless `holds`.
void expect(bool holds, std::string_view what);

/// For system calls: returns `result`, or throws a Failure with `what` and errno's text if it is
/// -1.
template <class T>
T check(T result, std::string_view what);
[[noreturn]] void fail_with_errno(std::string_view what);

template <class T>
T check(T result, std::string_view what) {
  if (result == static_cast<T>(-1)) fail_with_errno(what);
  return result;
}

/// Runs a program of the host's file system with `input` as its standard input.
/// Returns its output; throws if it does not exit with 0.
std::string run(const std::string& command, const std::string& input = "");

/// Nanoseconds of CLOCK_MONOTONIC, that is of emulated time.
std::int64_t now();

/// Reads a whole file.
std::string slurp(const std::string& path);

/// A value of the kernel's command line, which the kernel passes on as environment.
std::string argument(const char* name);

}  // namespace orrery::probe
