// The memory of processes under a kernel that maps and allocates around each fault.

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csetjmp>
#include <csignal>
#include <cstring>
#include <fstream>
#include <random>
#include <vector>

#include "probe.hh"

namespace orrery::probe {
namespace {

constexpr std::size_t kPage = 4096;

sigjmp_buf fault_point;  // NOLINT: where a signal handler has to go

void jump_back(int signal) { siglongjmp(fault_point, signal); }

/// Runs `access` and returns the signal that it ended with, or 0.
template <class Access>
int signal_of(const Access& access) {
  const int signal = sigsetjmp(fault_point, 1);
  if (signal == 0) access();
  return signal;
}

void catch_faults() {
  struct sigaction action {};
  action.sa_handler = jump_back;
  check(sigaction(SIGSEGV, &action, nullptr), "sigaction");
  check(sigaction(SIGBUS, &action, nullptr), "sigaction");
}

char* map(std::size_t pages, int flags = MAP_PRIVATE | MAP_ANONYMOUS, int fd = -1,
          int protection = PROT_READ | PROT_WRITE) {
  void* const p = mmap(nullptr, pages * kPage, protection, flags, fd, 0);
  check(reinterpret_cast<std::intptr_t>(p), "mmap");
  return static_cast<char*>(p);
}

/// Pages that this process has in memory.
std::int64_t resident() {
  std::ifstream statm("/proc/self/statm");
  std::int64_t size = 0;
  std::int64_t pages = 0;
  statm >> size >> pages;
  return pages;
}

/// A mapping beside a model of what must be in it: one value a page, in its first and last byte.
class Model {
 public:
  explicit Model(std::size_t pages) : memory_(map(pages)), want_(pages, 0) {}

  void verify(const char* when) const {
    for (std::size_t page = 0; page < want_.size(); ++page) verify_page(page, when);
  }
  void verify_page(std::size_t page, const char* when) const {
    const char* const p = memory_ + page * kPage;
    if (p[0] != want_[page] || p[kPage - 1] != want_[page] || p[kPage / 2] != 0) {
      throw Failure(std::string(when) + ": page " + std::to_string(page) + " holds " +
                    std::to_string(p[0]) + ", not " + std::to_string(want_[page]));
    }
  }
  void write(std::size_t page, char value) {
    memory_[page * kPage] = memory_[(page + 1) * kPage - 1] = value;
    want_[page] = value;
  }
  void forget(std::size_t first, std::size_t count) {
    check(madvise(memory_ + first * kPage, count * kPage, MADV_DONTNEED), "madvise");
    std::fill_n(want_.begin() + static_cast<std::ptrdiff_t>(first), count, '\0');
  }
  void replace(std::size_t first, std::size_t count) {
    char* const p = memory_ + first * kPage;
    check(munmap(p, count * kPage), "munmap");
    void* const again = mmap(p, count * kPage, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    expect(again == p, "mapped again where it was");
    std::fill_n(want_.begin() + static_cast<std::ptrdiff_t>(first), count, '\0');
  }
  void move() {
    const std::size_t size = want_.size() * kPage;
    char* const target = map(want_.size());
    // One piece if the kernel still has it as one, else page by page.
    if (mremap(memory_, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, target) == MAP_FAILED) {
      for (std::size_t at = 0; at < size; at += kPage) {
        check(reinterpret_cast<std::intptr_t>(
                  mremap(memory_ + at, kPage, kPage, MREMAP_MAYMOVE | MREMAP_FIXED, target + at)),
              "mremap");
      }
    }
    memory_ = target;
  }
  /// The pages cannot be written for as long as they are protected, and keep what they hold.
  void protect(std::size_t first, std::size_t count) {
    char* const p = memory_ + first * kPage;
    check(mprotect(p, count * kPage, PROT_READ), "mprotect");
    for (std::size_t i = 0; i < count; ++i) {
      expect(signal_of([&] { static_cast<volatile char*>(p)[i * kPage] = 1; }) == SIGSEGV,
             "a write to a read-only page is a fault");
    }
    check(mprotect(p, count * kPage, PROT_NONE), "mprotect");
    expect(signal_of([&] { (void)static_cast<volatile char*>(p)[0]; }) == SIGSEGV,
           "a read without permission is a fault");
    check(mprotect(p, count * kPage, PROT_READ | PROT_WRITE), "mprotect");
  }
  [[nodiscard]] std::size_t pages() const { return want_.size(); }

 private:
  char* memory_;
  std::vector<char> want_;
};

/// One random step; the seed makes every run the same.
void step(Model& model, std::mt19937& random) {
  const auto draw = [&](std::size_t below) { return random() % below; };
  const std::size_t first = draw(model.pages() - 24);
  const std::size_t count = 1 + draw(23);
  switch (draw(12)) {
    case 0:
      model.forget(first, count);
      break;
    case 1:
      model.replace(first, count);
      break;
    case 2:
      model.move();
      break;
    case 3:
      model.protect(first, count);
      break;
    case 4:
      model.verify_page(first, "read at random");
      break;
    case 5:
      for (std::size_t i = 0; i < count; ++i) model.write(first + i, static_cast<char>(random()));
      break;
    default:
      model.write(first, static_cast<char>(random()));
  }
}

const Registration stress{
    "memory_stress", [] {
      catch_faults();
      std::mt19937 random(1);
      Model model(200);
      for (int generation = 0; generation < 5; ++generation) {
        for (int i = 0; i < 150; ++i) step(model, random);
        model.verify("before the fork");
        // Both sides of a fork change the pages that they share; neither may see the other's.
        const pid_t child = check(fork(), "fork");
        for (int i = 0; i < 100; ++i) step(model, random);
        if (child == 0) {
          int failed = 0;
          try {
            std::mt19937 other(static_cast<unsigned>(generation) + 100);
            for (int i = 0; i < 100; ++i) step(model, other);
            model.verify("in the child");
            const pid_t grandchild = fork();
            for (int i = 0; i < 50; ++i) step(model, other);
            model.verify(grandchild == 0 ? "in the grandchild" : "in the child after its fork");
            if (grandchild == 0) _exit(0);
            int status = -1;
            waitpid(grandchild, &status, 0);
            failed = status == 0 ? 0 : 1;
          } catch (const std::exception& error) {
            report("child", error.what());
            failed = 1;
          }
          _exit(failed);
        }
        model.verify("beside the child");
        int status = -1;
        check(waitpid(child, &status, 0), "waitpid");
        expect(status == 0, "the child saw its own memory");
        model.verify("after the child");
      }
    }};

const Registration files{
    "memory_files", [] {
      catch_faults();
      constexpr std::size_t kPages = 64;
      const int fd = check(open("/mnt/file", O_CREAT | O_RDWR, 0600), "open");
      const auto put = [&](std::size_t page, char value) {
        const std::vector<char> content(kPage, value);
        check(pwrite(fd, content.data(), kPage, static_cast<off_t>(page * kPage)), "pwrite");
      };
      for (std::size_t page = 0; page < kPages; ++page) put(page, static_cast<char>(page + 1));
      volatile char* const shared = map(kPages, MAP_SHARED, fd);
      volatile char* const own = map(kPages, MAP_PRIVATE, fd);

      expect(own[5 * kPage] == 6 && shared[5 * kPage] == 6, "both mappings show the file");
      own[5 * kPage] = 99;
      expect(shared[5 * kPage] == 6, "a private write stays private");
      shared[7 * kPage] = 77;
      char byte = 0;
      check(pread(fd, &byte, 1, 7 * kPage), "pread");
      expect(byte == 77, "a shared write reaches the file");
      put(40, 111);
      expect(shared[40 * kPage] == 111, "a write to the file is seen through the shared mapping");
      expect(own[40 * kPage] == 111, "and through a private page that nobody wrote");

      // The end of the file moves: what lay behind it faults, and is empty when it comes back.
      check(ftruncate(fd, 20 * kPage), "ftruncate");
      expect(signal_of([&] { (void)shared[20 * kPage]; }) == SIGBUS,
             "nothing behind the end (shared)");
      expect(signal_of([&] { own[30 * kPage] = 1; }) == SIGBUS, "nothing behind the end (private)");
      expect(shared[19 * kPage] == 20, "the last page is still there");
      // A write before the end, whose window reaches over it, is no fault.
      expect(signal_of([&] { own[19 * kPage] = 55; }) == 0, "a write close to the end works");
      check(ftruncate(fd, kPages * kPage), "ftruncate");
      expect(shared[20 * kPage] == 0 && own[30 * kPage] == 0, "what comes back is empty");
      expect(own[19 * kPage] == 55 && own[5 * kPage] == 99, "private pages before the end stay");
      check(madvise(const_cast<char*>(own), kPages * kPage, MADV_DONTNEED), "madvise");
      expect(own[5 * kPage] == 6, "a private page given up shows the file again");

      // In a child, shared memory is shared and private memory is a copy.
      own[0] = 1;
      const pid_t child = check(fork(), "fork");
      if (child == 0) {
        const bool saw = own[0] == 1 && shared[7 * kPage] == 77;
        own[0] = 2;
        shared[8 * kPage] = 88;
        _exit(saw && own[0] == 2 ? 0 : 1);
      }
      int status = -1;
      check(waitpid(child, &status, 0), "waitpid");
      expect(status == 0, "the child saw both mappings");
      expect(own[0] == 1 && shared[8 * kPage] == 88, "the parent saw the shared write only");
      // Truncated while a child has it mapped that never touched it: it must not see old pages.
      std::array<int, 2> go{};
      check(pipe(go.data()), "pipe");
      const pid_t waiting = check(fork(), "fork");
      if (waiting == 0) {
        char ready = 0;
        check(read(go[0], &ready, 1), "read");
        _exit(signal_of([&] { (void)shared[10 * kPage]; }) == SIGBUS ? 0 : 1);
      }
      check(ftruncate(fd, 0), "ftruncate");
      check(write(go[1], "g", 1), "write");
      check(waitpid(waiting, &status, 0), "waitpid");
      expect(status == 0, "a truncated page is gone in a child too");
    }};

const Registration kernel_copies{
    "memory_system_calls", [] {
      // The kernel itself writes to and reads from fresh, read-only and forbidden user memory.
      catch_faults();
      std::array<int, 2> ends{};
      check(pipe(ends.data()), "pipe");
      char* const p = map(64);
      const std::vector<char> text(10 * kPage, 'k');
      check(write(ends[1], text.data(), text.size()), "write");
      expect(read(ends[0], p + 100, text.size()) == static_cast<ssize_t>(text.size()), "read");
      expect(std::memcmp(p + 100, text.data(), text.size()) == 0 && p[99] == 0 &&
                 p[100 + text.size()] == 0,
             "the text is where it belongs");
      check(mprotect(p + 32 * kPage, kPage, PROT_READ), "mprotect");
      check(write(ends[1], text.data(), 10), "write");
      expect(read(ends[0], p + 32 * kPage, 10) == -1 && errno == EFAULT,
             "EFAULT for a read-only page");
      check(munmap(p + 40 * kPage, kPage), "munmap");
      expect(write(ends[1], p + 40 * kPage, 10) == -1 && errno == EFAULT, "EFAULT for no page");
    }};

const Registration growth{"memory_growth", [] {
                            // One page touched in each MiB: at most the window of 64 KiB may come
                            // with it.
                            constexpr std::size_t kMiB = 256;
                            volatile char* const sparse = map(kMiB * 256);
                            std::int64_t before = resident();
                            for (std::size_t i = 0; i < kMiB; ++i)
                              sparse[i * 256 * kPage + 128 * kPage] = 1;
                            report("sparse_pages_per_touch",
                                   (resident() - before) / static_cast<std::int64_t>(kMiB));
                            // A read allocates nothing.
                            volatile char* const only_read = map(kMiB * 256);
                            before = resident();
                            for (std::size_t i = 0; i < kMiB; ++i)
                              expect(only_read[i * 256 * kPage] == 0, "reads zero");
                            report("read_pages", resident() - before);
                            // Eight MiB written from front to back.
                            volatile char* const dense = map(64 * 256);
                            before = resident();
                            for (std::size_t i = 0; i < 8 * 256; ++i) dense[i * kPage] = 1;
                            report("dense_extra_pages", resident() - before - 8 * 256);
                            // Never beyond the mapping.
                            char* const small = map(3);
                            check(munmap(small + 2 * kPage, kPage), "munmap");
                            before = resident();
                            small[0] = 1;
                            report("small_pages", resident() - before);
                          }};

const Registration scarce{
    "memory_scarce", [] {
      // Booted with little memory: one page of each 64 KiB written adds up to a sixth of it.
      // Guesses that filled every window would need more than twice what there is.
      const std::size_t touched = static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) / 6;
      volatile char* const p = map(touched * 16, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE);
      for (std::size_t i = 0; i < touched; ++i) p[i * 16 * kPage] = 1;
      for (std::size_t i = 0; i < touched; ++i) expect(p[i * 16 * kPage] == 1, "the page is kept");
    }};

const Registration fault_count{"memory_cost", [] {
                                 // What the host side times: 64 MiB written once, and a fork whose
                                 // child writes 16 MiB.
                                 constexpr std::size_t kPages = 16384;
                                 volatile char* const p = map(kPages);
                                 for (std::size_t i = 0; i < kPages; ++i) p[i * kPage] = 1;
                                 const pid_t child = check(fork(), "fork");
                                 if (child == 0) {
                                   for (std::size_t i = 0; i < kPages / 4; ++i) p[i * kPage] = 2;
                                   _exit(0);
                                 }
                                 check(waitpid(child, nullptr, 0), "waitpid");
                                 for (std::size_t i = 0; i < kPages; ++i)
                                   expect(p[i * kPage] == 1, "the parent's memory is kept");
                               }};

}  // namespace
}  // namespace orrery::probe
