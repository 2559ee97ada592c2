// Host time and memory of the exact engine, as docs/benchmarks.md describes them:
//
//   engine_bench [--repeat N] [kernels] [messages] [start] [memory]
//
// Each case runs the built programs as a user would and prints one line a figure: the median and,
// between brackets, the interval that holds the true median with 95 % confidence (by order
// statistics; of fewer than six runs all of them lie within it). What is compared runs in turn,
// A B A B …, so that a machine whose speed drifts does so for both. Each time is given twice: as it
// passes on the host, and as the processor's time of all processes that took part, which is what is
// left to compare on a machine that others use, too.

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

namespace fs = std::filesystem;
using HostClock = std::chrono::steady_clock;

std::string load() {
  std::ifstream file("/proc/loadavg");
  std::string one;
  file >> one;
  return one;
}

// --- statistics

struct Figure {
  double median, low, high;
};

Figure figure_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size();
  // The largest k for which the median lies outside [x_k, x_{n+1-k}] in at most 5 % of all samples.
  std::size_t k = 1;
  double tail = std::pow(0.5, static_cast<double>(n));  // P(B ≤ 0), B ~ Bin(n, 1/2)
  double term = tail;
  for (std::size_t j = 1; j < n / 2; ++j) {
    term *= static_cast<double>(n - j + 1) / static_cast<double>(j);
    tail += term;
    if (2 * tail > 0.05) break;
    k = j + 1;
  }
  const double median = n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
  return {median, values[k - 1], values[n - k]};
}

void print(const std::string& what, const std::vector<double>& values, const char* unit) {
  const Figure figure = figure_of(values);
  std::printf("%-58s %8.3f %s  [%.3f, %.3f], %zu runs\n", what.c_str(), figure.median, unit,
              figure.low, figure.high, values.size());
  std::fflush(stdout);
}

/// Seconds of one run: on the host's clock, and of the processor.
struct Seconds {
  double host, processor;
  Seconds operator-(const Seconds& other) const {
    return {host - other.host, processor - other.processor};
  }
  Seconds operator/(const Seconds& other) const {
    return {host / other.host, processor / other.processor};
  }
  Seconds operator*(double factor) const { return {host * factor, processor * factor}; }
};

void print(const std::string& what, const std::vector<Seconds>& runs, const char* unit) {
  std::vector<double> host, processor;
  for (const Seconds& seconds : runs) {
    host.push_back(seconds.host);
    processor.push_back(seconds.processor);
  }
  print(what + ", host", host, unit);
  print(what + ", processor", processor, unit);
}

// --- programs

class Folder {
 public:
  Folder() {
    std::string pattern = fs::temp_directory_path() / "orrery-bench-XXXXXX";
    if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary folder");
    path_ = pattern;
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

/// Runs `argv` to its end, with what orrery gives to what computes. `watch` is called now and then
/// meanwhile.
Seconds seconds_of(std::vector<std::string> argv, const std::function<void(pid_t)>& watch = {}) {
  std::fflush(nullptr);
  const auto begin = HostClock::now();
  const pid_t child = ::fork();
  if (child == 0) {
    ::setenv("OMP_NUM_THREADS", "1", 1);
    ::setenv("OPENBLAS_NUM_THREADS", "1", 1);
    if (std::freopen("/dev/null", "w", stdout) == nullptr) ::_exit(126);
    std::vector<char*> pointers;
    for (std::string& word : argv) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    ::execv(pointers[0], pointers.data());
    ::_exit(127);
  }
  int status = 0;
  rusage usage{};
  if (watch) {
    while (::wait4(child, &status, WNOHANG, &usage) == 0) {
      watch(child);
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  } else {
    ::wait4(child, &status, 0, &usage);
  }
  if (status != 0) throw std::runtime_error(argv[0] + " failed");
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return {std::chrono::duration<double>(HostClock::now() - begin).count(),
          seconds(usage.ru_utime) + seconds(usage.ru_stime)};
}

struct Experiment {
  int nodes = 4;
  std::string model = "lenet5";  // or widths of an MLP, joined by commas
  int batch = 128;
  int steps = 1;
};

std::vector<std::string> orrery_run(const Folder& folder, const Experiment& experiment) {
  const std::string file = folder / "bench.yaml";
  const bool mlp = experiment.model != "lenet5";
  std::ofstream(file) << "orrery: 1\nname: bench\n"
                      << "cluster:\n  cost: model\n  nodes:\n    - {name: \"node[0-"
                      << experiment.nodes - 1 << "]\", device: server-core}\n"
                      << "  network:\n    link: {delay: 1ms, rate: 1Gbit/s}\n"
                      << "workload:\n  model: " << (mlp ? "mlp" : "lenet5") << "\n"
                      << (mlp ? "  layers: [" + experiment.model + "]\n" : "")
                      << "  test_images: 1000\n"
                      << "runs:\n  - name: run\n    strategy: sgd_allreduce\n    options: {batch: "
                      << experiment.batch << "}\n    stop: {steps: " << experiment.steps << "}\n";
  fs::remove_all(folder / "out");
  return {ORRERY_PROGRAM, "run", file, "--out", folder / "out", "--quiet"};
}

std::vector<std::string> bare(const Experiment& experiment) {
  return {BARE_TRAINING, experiment.model, std::to_string(experiment.batch),
          std::to_string(experiment.steps * experiment.nodes)};
}

// --- cases

/// Exact against bare libtorch: four nodes, as many steps of the same network on the host.
void kernels(int repeat) {
  struct Case {
    const char* name;
    Experiment experiment;
  };
  for (const Case& c : {Case{"lenet5, batch 128", {4, "lenet5", 128, 40}},
                        Case{"mlp 784,512,512,10, batch 512", {4, "784,512,512,10", 512, 40}}}) {
    const Folder folder;
    Experiment brief = c.experiment;
    brief.steps = 1;
    std::vector<Seconds> exact, host, whole, apart;
    for (int i = 0; i < repeat; ++i) {
      exact.push_back(seconds_of(orrery_run(folder, c.experiment)));
      host.push_back(seconds_of(bare(c.experiment)));
      const Seconds exact_brief = seconds_of(orrery_run(folder, brief));
      const Seconds host_brief = seconds_of(bare(brief));
      whole.push_back(exact.back() / host.back());
      apart.push_back((exact.back() - exact_brief) / (host.back() - host_brief));
    }
    const std::string name = c.name;
    print(name + ": exact, 40 steps of 4 nodes", exact, "s");
    print(name + ": bare libtorch, 160 steps", host, "s");
    print(name + ": ratio, start-up included", whole, "×");
    print(name + ": ratio, start-up apart", apart, "×");
  }
}

/// The real transport between two nodes at 100 Mbit/s: by how much more takes longer.
void messages(int repeat) {
  const auto run = [](int count, int bytes) {
    // As agents have it (emulator/exact/host.cc): host time depends on these.
    return seconds_of({"/usr/bin/env", "GRPC_EXPERIMENTS=tcp_frame_size_tuning,tcp_rcv_lowat",
                       "GLIBC_TUNABLES=glibc.malloc.mmap_threshold=4294967296:"
                       "glibc.malloc.trim_threshold=8589934592:glibc.malloc.top_pad=16777216:"
                       "glibc.malloc.arena_max=1",
                       ORRERY_GUEST, "--mem", "512MiB", "--", STREAM_GUEST, std::to_string(count),
                       std::to_string(bytes)});
  };
  std::vector<Seconds> per_megabyte, per_message;
  for (int i = 0; i < repeat; ++i) {
    const Seconds little = run(4, 1'000'000);
    const Seconds much = run(44, 1'000'000);
    const Seconds few = run(100, 64);
    const Seconds many = run(2100, 64);
    per_megabyte.push_back((much - little) * (1.0 / 40));
    per_message.push_back((many - few) * (1e3 / 2000));
  }
  print("a megabyte, in messages of 1 MB at 100 Mbit/s", per_megabyte, "s");
  print("a message of 64 bytes", per_message, "ms");
}

/// A run of one step, from the command to its report: no less than the time to the first step.
void start(int repeat) {
  const Folder folder;
  std::vector<Seconds> four, sixteen, each;
  for (int i = 0; i < repeat; ++i) {
    four.push_back(seconds_of(orrery_run(folder, {4, "784,128,10", 32, 1})));
    sixteen.push_back(seconds_of(orrery_run(folder, {16, "784,128,10", 32, 1})));
    each.push_back((sixteen.back() - four.back()) * (1.0 / 12));
  }
  print("a whole run of one step, 4 agents", four, "s");
  print("a whole run of one step, 16 agents", sixteen, "s");
  print("each further agent", each, "s");
}

// --- memory

std::int64_t kib_after(const std::string& path, const std::string& key) {
  std::ifstream file(path);
  for (std::string word; file >> word;)
    if (word == key) {
      std::int64_t kib = 0;
      file >> kib;
      return kib;
    }
  return 0;
}

std::vector<int> processes() {
  std::vector<int> pids;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator("/proc", ignored))
    if (const int pid = std::atoi(entry.path().filename().c_str()); pid > 0) pids.push_back(pid);
  return pids;
}

/// What the guest that `run` started has in memory, MiB: the blocks of the file that is its memory,
/// and the page tables that the host keeps for its processes. Shared pages count once.
double guest_mebibytes(pid_t run) {
  std::int64_t bytes = 0;
  for (const int pid : processes()) {
    const std::string proc = "/proc/" + std::to_string(pid);
    std::ifstream stat(proc + "/stat");
    std::string text;
    std::getline(stat, text);
    const std::size_t after_name = text.rfind(')');
    int parent = 0, group = 0;
    char state = 0;
    if (after_name == std::string::npos ||
        std::sscanf(text.c_str() + after_name + 1, " %c %d %d", &state, &parent, &group) != 3)
      continue;
    // The guest leads a group of its own, of which all its processes are.
    const bool leads = parent == run && group == pid;
    if (leads) {
      std::error_code ignored;
      for (const auto& entry : fs::directory_iterator(proc + "/fd", ignored)) {
        const std::string target = fs::read_symlink(entry.path(), ignored);
        struct stat info {};
        if (target.ends_with(" (deleted)") && ::stat(entry.path().c_str(), &info) == 0) {
          bytes += info.st_blocks * 512;
          break;
        }
      }
    }
    if (leads || kib_after("/proc/" + std::to_string(group) + "/status", "PPid:") == run)
      bytes += kib_after(proc + "/status", "VmPTE:") * 1024;
  }
  return static_cast<double>(bytes) / (1 << 20);
}

void memory(int repeat) {
  const Folder folder;
  std::vector<double> four, sixteen;
  for (int i = 0; i < repeat; ++i)
    for (const auto& [nodes, peaks] : {std::pair{4, &four}, std::pair{16, &sixteen}}) {
      double peak = 0;
      seconds_of(orrery_run(folder, {nodes, "784,128,10", 32, 3}),
                 [&](pid_t run) { peak = std::max(peak, guest_mebibytes(run)); });
      peaks->push_back(peak);
    }
  print("peak of the guest's memory, 4 agents", four, "MiB");
  print("peak of the guest's memory, 16 agents", sixteen, "MiB");
  std::vector<double> each;
  for (std::size_t i = 0; i < four.size(); ++i) each.push_back((sixteen[i] - four[i]) / 12);
  print("each further agent", each, "MiB");
}

}  // namespace

int main(int argc, char** argv) {
  const std::array<std::pair<std::string, void (*)(int)>, 4> cases{
      {{"kernels", kernels}, {"messages", messages}, {"start", start}, {"memory", memory}}};
  int repeat = 7;
  std::vector<std::string> wanted;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const bool known = std::any_of(cases.begin(), cases.end(),
                                   [&](const auto& entry) { return entry.first == word; });
    if (word == "--repeat" && i + 1 < argc && std::atoi(argv[i + 1]) > 0) {
      repeat = std::atoi(argv[++i]);
    } else if (known) {
      wanted.push_back(word);
    } else {
      std::fputs("engine_bench [--repeat N] [kernels] [messages] [start] [memory]\n", stderr);
      return 2;
    }
  }
  try {
    for (const auto& [name, measure] : cases) {
      if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), name) == wanted.end())
        continue;
      std::printf("-- %s (%u processors, load %s)\n", name.c_str(),
                  std::thread::hardware_concurrency(), load().c_str());
      measure(repeat);
    }
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "engine_bench: %s\n", error.what());
    return 1;
  }
}
