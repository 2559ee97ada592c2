// fuzz SECONDS SEED FOLDER...: reads mutations of the folders' files for so long, with every reader
// of files that users write. A reader may return a value or throw ValueError or InvalidFile, in
// less than ten seconds; for all else this program ends badly, having printed the input. Built with
// sanitizers, whatever the rest is built with.

#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/error.hh"
#include "base/fd.hh"
#include "emulator/config/load.hh"
#include "emulator/config/network.hh"
#include "emulator/config/network_file.hh"
#include "netshape/plan.hh"
#include "tests/emulator/config/fake_catalog.hh"
#include "tests/fuzz/mutator.hh"

namespace {

using namespace orrery;

std::string current;

// Only what a handler for signals may do.
void print_and_end(int) {
  const char head[] = "\nthe input that it was reading:\n";
  [[maybe_unused]] ssize_t ignored = ::write(2, head, sizeof head - 1);
  ignored = ::write(2, current.data(), current.size());
  ::_exit(1);
}

template <typename Read>
bool attempt(const Read& read) {
  try {
    read();
    return true;
  } catch (const config::InvalidFile& error) {
    if (std::string(error.what()).empty()) throw std::logic_error("an error without a word");
  } catch (const ValueError& error) {
    if (std::string(error.what()).empty()) throw std::logic_error("an error without a word");
  }
  return false;
}

struct Counts {
  long inputs = 0;
  long accepted = 0;
};

void read_all(const std::string& text, Counts& counts) {
  const config::StrategyCatalog catalog = config::fake_catalog();
  ++counts.inputs;
  counts.accepted += attempt([&] {
    const config::Experiment e = config::load_text("fuzz", text, catalog).experiment;
    // What is accepted can be written, read again, and planned or refused with a reason.
    if (!(config::load_text("again", config::to_yaml(e, catalog), catalog).experiment == e))
      throw std::logic_error("what was written is not what was read");
    if (e.cluster.nodes.size() <= 40)
      attempt([&] { netshape::plan(config::topology_of(e.cluster.network), e.seed); });
  });
  counts.accepted += attempt([&] { config::load_network_text("fuzz", text, catalog); });
}

std::vector<std::string> read_corpus(int count, char** folders) {
  std::vector<std::string> corpus;
  for (int i = 0; i < count; ++i)
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folders[i]))
      if (entry.is_regular_file() && entry.path().extension() != ".expected")
        corpus.push_back(read_file(entry.path()));
  // In an order that no file system decides.
  std::sort(corpus.begin(), corpus.end());
  return corpus;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fputs("fuzz SECONDS SEED FOLDER...\n", stderr);
    return 2;
  }
  for (const int signal : {SIGALRM, SIGSEGV, SIGABRT}) ::signal(signal, print_and_end);
  const double seconds = std::atof(argv[1]);
  fuzz::Mutator mutator(read_corpus(argc - 3, argv + 3), std::strtoull(argv[2], nullptr, 10));
  const auto begun = std::chrono::steady_clock::now();
  Counts counts;
  while (std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count() <
         seconds) {
    current = mutator.next();
    ::alarm(10);
    try {
      read_all(current, counts);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s\n", error.what());
      print_and_end(0);
    }
  }
  std::printf("%ld inputs, %ld of them read without an error\n", counts.inputs, counts.accepted);
  return counts.inputs > 0 ? 0 : 1;
}
