// The floating-point and vector registers of threads and processes, under a kernel that moves them
// only when it must. Each check fills all of them, has something happen in the same stretch of
// assembly, so that no compiler touches a register in between, and looks what they hold then.

#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "probe.hh"

namespace orrery::probe {
namespace {

/// What is compared: the 16 vector registers, 32 bytes each, and the rounding mode.
struct alignas(32) Registers {
  std::array<std::uint64_t, 64> vector{};
  std::uint32_t mxcsr = 0x1f80;

  bool operator==(const Registers&) const = default;
};

/// Values of which no two registers of two owners share one; a rounding mode of its own, too.
Registers marked(std::uint64_t owner) {
  Registers registers;
  for (std::size_t i = 0; i < registers.vector.size(); ++i)
    registers.vector[i] = owner * 0x9e3779b97f4a7c15 + i;
  registers.mxcsr = 0x1f80 | static_cast<std::uint32_t>(owner % 4) << 13;
  return registers;
}

#define EACH_REGISTER(move)                                                           \
  move(0) move(1) move(2) move(3) move(4) move(5) move(6) move(7) move(8) move(9)     \
  move(10) move(11) move(12) move(13) move(14) move(15)
#define LOAD(n) "vmovdqu 32*" #n "(%[in]), %%ymm" #n "\n"
#define STORE(n) "vmovdqu %%ymm" #n ", 32*" #n "(%[out])\n"
#define VECTORS                                                                               \
  "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10",    \
      "xmm11", "xmm12", "xmm13", "xmm14", "xmm15"

/// Fills the registers, makes system call `number`, writes a byte to `touched` if that is not null,
/// and returns what the registers hold then; the call's own result in `result`.
__attribute__((target("avx"), noinline)) Registers across(const Registers& in, long number, long a,
                                                          long b, volatile char* touched,
                                                          long* result = nullptr) {
  Registers out;
  const std::uint32_t usual = 0x1f80;
  long answer = number;
  asm volatile(EACH_REGISTER(LOAD) "ldmxcsr %[in_mode]\n"
               "syscall\n"
               "test %[touched], %[touched]\n"
               "jz 1f\n"
               "movb $1, (%[touched])\n"
               "1:\n" EACH_REGISTER(STORE) "stmxcsr %[out_mode]\n"
               "ldmxcsr %[usual]\n"
               "vzeroupper\n"
               : "+a"(answer), [out_mode] "=m"(out.mxcsr)
               : [in] "r"(in.vector.data()), [out] "r"(out.vector.data()),
                 [touched] "r"(touched), [in_mode] "m"(in.mxcsr), [usual] "m"(usual), "D"(a),
                 "S"(b), "d"(0L)
               : "rcx", "r11", "memory", VECTORS);
  if (result != nullptr) *result = answer;
  return out;
}

void expect_kept(std::uint64_t owner, long number, long a, long b, volatile char* touched,
                 const std::string& what) {
  expect(across(marked(owner), number, a, b, touched) == marked(owner), what);
}

char* fresh_pages(std::size_t bytes) {
  void* const p =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  check(reinterpret_cast<std::intptr_t>(p), "mmap");
  return static_cast<char*>(p);
}

// A guest without AVX has nothing that these checks could fill.
void needs_vectors() { expect(__builtin_cpu_supports("avx"), "the processor has AVX"); }

const Registration system_calls{"registers_calls", [] {
                                  needs_vectors();
                                  for (std::uint64_t i = 1; i <= 100; ++i)
                                    expect_kept(i, SYS_getppid, 0, 0, nullptr, "over a call");
                                }};

const Registration faults{"registers_faults", [] {
                            needs_vectors();
                            // Beyond the window that one fault brings.
                            constexpr std::size_t kStride = 1 << 20;
                            char* const memory = fresh_pages(32 * kStride);
                            for (std::uint64_t i = 1; i < 32; ++i)
                              expect_kept(i, SYS_getppid, 0, 0, memory + i * kStride,
                                          "over a page fault");
                          }};

// Threads of one process run in one host process and yield to each other in the middle; some end
// while their registers are still there, and others begin.
const Registration in_threads{
    "registers_threads", [] {
      needs_vectors();
      for (int generation = 0; generation < 10; ++generation) {
        std::vector<std::thread> threads;
        std::array<bool, 4> kept{};
        for (std::size_t me = 0; me < kept.size(); ++me)
          threads.emplace_back([&kept, me, generation] {
            bool all = true;
            for (std::uint64_t i = 0; i < 50; ++i) {
              const Registers mine = marked(1 + me + 4 * i);
              all &= across(mine, SYS_sched_yield, 0, 0, nullptr) == mine;
            }
            kept[me] = all;
            // Ends it there and then, its registers still filled.
            if (generation % 2 == 0) across(marked(77 + me), SYS_exit, 0, 0, nullptr);
          });
        for (std::thread& thread : threads) thread.join();
        for (const bool mine : kept) expect(mine, "each thread keeps its own");
      }
    }};

const Registration in_processes{
    "registers_fork", [] {
      needs_vectors();
      for (std::uint64_t i = 1; i <= 10; ++i) {
        long child = 0;
        const Registers after = across(marked(i), SYS_fork, 0, 0, nullptr, &child);
        const bool kept = after == marked(i);
        if (child == 0) {
          // The child's, over its own calls and faults, too.
          char* const memory = fresh_pages(4096);
          const Registers own = marked(i + 1000);
          const bool own_kept = across(own, SYS_sched_yield, 0, 0, memory) == own;
          _exit(kept && own_kept ? 0 : 1);
        }
        check(child, "fork");
        expect(kept, "the parent's over a fork");
        expect_kept(i + 500, SYS_sched_yield, 0, 0, nullptr, "the parent's beside a child");
        int status = 0;
        check(waitpid(static_cast<pid_t>(child), &status, 0), "waitpid");
        expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child begins with its parent's");
      }
    }};

/// What a program finds when it begins: nothing of whoever called execve().
const Registration fresh_program{
    "registers_exec", [] {
      needs_vectors();
      char word[] = "rounding";  // see main()
      char* arguments[] = {program_invocation_name, word, nullptr};
      const pid_t child = check(fork(), "fork");
      if (child == 0) {
        across(marked(1), SYS_execve, reinterpret_cast<long>(program_invocation_name),
               reinterpret_cast<long>(arguments), nullptr);
        _exit(1);
      }
      int status = 0;
      check(waitpid(child, &status, 0), "waitpid");
      expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "a program rounds to nearest at first");
    }};

volatile sig_atomic_t handled = 0;

// A handler of its own registers, which makes a system call and takes a page fault meanwhile.
void disturb(int) {
  static char* const memory = fresh_pages(64 << 20);
  const int n = handled;
  across(marked(4242), SYS_getppid, 0, 0, memory + static_cast<std::size_t>(n) * (1 << 20));
  handled = n + 1;
}

/// The lower halves: what a signal's frame holds of the registers in user mode.
bool same_lower(const Registers& a, const Registers& b) {
  for (std::size_t i = 0; i < a.vector.size(); i += 4)
    if (a.vector[i] != b.vector[i] || a.vector[i + 1] != b.vector[i + 1]) return false;
  return a.mxcsr == b.mxcsr;
}

const Registration in_signals{
    "registers_signals", [] {
      needs_vectors();
      struct sigaction action {};
      action.sa_handler = disturb;
      check(sigaction(SIGUSR1, &action, nullptr), "sigaction");
      for (std::uint64_t i = 1; i <= 20; ++i) {
        const Registers after = across(marked(i), SYS_kill, getpid(), SIGUSR1, nullptr);
        expect(handled == static_cast<int>(i), "the handler ran");
        expect(same_lower(after, marked(i)), "over a signal");
      }
    }};

}  // namespace
}  // namespace orrery::probe
