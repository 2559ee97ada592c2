#include "netshape/fabric/fabric_loop.hh"

#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <future>
#include <thread>
#include <utility>

#include "base/error.hh"

namespace orrery::netshape {
namespace {

constexpr std::size_t no_device = static_cast<std::size_t>(-1);
constexpr std::uint64_t wake_mark = ~std::uint64_t{0};
// So that a busy device does not keep the others, or what is due, waiting.
constexpr int frames_a_turn = 16;
constexpr int releases_a_turn = 64;
constexpr std::int64_t longest_sleep = 1'000'000'000;
constexpr Duration longest_spin = Duration::milliseconds(5);

}  // namespace

Instant FabricLoop::now() {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return {time.tv_sec * std::int64_t{1'000'000'000} + time.tv_nsec};
}

FabricLoop::FabricLoop(Switch& fabric, TapNetwork& network, const FabricOptions& options)
    : fabric_(fabric),
      network_(network),
      options_(options),
      epoll_(check_system(::epoll_create1(EPOLL_CLOEXEC), "make an epoll descriptor")),
      wake_(check_system(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "make an event descriptor")),
      device_of_(fabric.port_count(), no_device),
      budget_(options.spin_share, longest_spin) {
  const auto add = [this](int fd, std::uint64_t mark) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = mark;
    check_system(::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event), "watch a descriptor");
  };
  add(wake_.get(), wake_mark);
  std::vector<TapNetwork::Device>& devices = network_.devices();
  for (std::size_t i = 0; i < devices.size(); ++i) {
    device_of_.at(devices[i].port) = i;
    add(devices[i].tap.descriptor(), i);
  }
  ready_.reserve(devices.size());
  // Signals are the program's business, not this thread's.
  sigset_t all, before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { run(); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

FabricLoop::~FabricLoop() {
  stop_ = true;
  ::eventfd_write(wake_.get(), 1);
  thread_.join();
}

void FabricLoop::in_between(const std::function<void()>& work) {
  std::promise<void> promise;
  std::future<void> done = promise.get_future();
  {
    const std::lock_guard lock(mutex_);
    if (ended_) {
      if (failure_) std::rethrow_exception(failure_);
      throw std::logic_error("the fabric has stopped");
    }
    requests_.push_back([&] {
      try {
        work();
        promise.set_value();
      } catch (...) {
        promise.set_exception(std::current_exception());
      }
    });
  }
  ::eventfd_write(wake_.get(), 1);
  done.get();
}

void FabricLoop::serve_requests() {
  eventfd_t ignored;
  ::eventfd_read(wake_.get(), &ignored);
  std::vector<std::function<void()>> requests;
  {
    const std::lock_guard lock(mutex_);
    requests.swap(requests_);
  }
  for (const auto& request : requests) request();
}

// Not the real-time class: a thread there that is busy for 0.95 s loses its processor for 50 ms, so
// that others run at all.
void FabricLoop::ask_for_favour() {
  if (!options_.favoured) return;
  constexpr int highest = -20;
  favoured_ = ::setpriority(PRIO_PROCESS, 0, highest) == 0;  // of this thread
}

void FabricLoop::run() {
  ::pthread_setname_np(::pthread_self(), "fabric");
  ::prctl(PR_SET_TIMERSLACK, 1);
  ask_for_favour();
  std::exception_ptr failure;
  try {
    loop();
  } catch (...) {
    failure = std::current_exception();
  }
  std::vector<std::function<void()>> late;
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    failure_ = failure;
    late.swap(requests_);
  }
  // Nothing moves any more, so these are still served truly.
  for (const auto& request : late) request();
}

void FabricLoop::loop() {
  Instant before = now();
  while (!stop_) {
    const Instant at = now();
    budget_.pass(at - before, std::exchange(spinning_, false));
    before = at;
    const bool more = fabric_.release_until(at, *this, releases_a_turn);
    wait(more ? Instant{} : at);
    if (ready_.empty()) continue;
    // Frames read in one turn were sent before it; the time of reading is the best that is known.
    const Instant arrived = now();
    for (const std::size_t device : ready_) read_device(device, arrived);
  }
}

std::int64_t FabricLoop::time_to_sleep(Instant from) const {
  const auto next = fabric_.next_release();
  if (!next) return longest_sleep;
  const std::int64_t left = (*next - from).ns;
  const std::int64_t sleep = budget_.left() ? left - options_.spin.ns : left;
  return std::clamp<std::int64_t>(sleep, 0, longest_sleep);
}

// Looks for frames, and sleeps for them if nothing is due soon. From Instant{}: only looks.
void FabricLoop::wait(Instant from) {
  const std::int64_t sleep = from == Instant{} ? 0 : time_to_sleep(from);
  std::array<epoll_event, 64> events;
  const timespec span{sleep / 1'000'000'000, sleep % 1'000'000'000};
  const int count =
      ::epoll_pwait2(epoll_.get(), events.data(), static_cast<int>(events.size()), &span, nullptr);
  if (count < 0 && errno == ENOSYS)
    throw MachineError("the fabric waits with epoll_pwait2; it needs Linux 5.11 or newer");
  if (count < 0 && errno != EINTR) throw_errno("wait for frames");
  ready_.clear();
  spinning_ = count == 0 && sleep == 0;
  bool asked = false;
  for (int i = 0; i < count; ++i) {
    const std::uint64_t mark = events[static_cast<std::size_t>(i)].data.u64;
    if (mark == wake_mark)
      asked = true;
    else
      ready_.push_back(static_cast<std::size_t>(mark));
  }
  if (asked) serve_requests();
}

void FabricLoop::read_device(std::size_t device, Instant at) {
  TapNetwork::Device& from = network_.devices()[device];
  for (int i = 0; i < frames_a_turn; ++i) {
    FrameRef frame = from.tap.read(fabric_.pool());
    if (!frame) return;
    fabric_.receive(from.port, std::move(frame), at);
  }
}

void FabricLoop::write(PortNumber port, const Piece& piece) {
  const std::size_t device = device_of_[port];
  if (device == no_device) return;
  TapNetwork::Device& to = network_.devices()[device];
  if (piece.corrupted)
    to.tap.write_corrupt(*piece.frame, piece.first, piece.marked, piece.corrupt_draw, to.neighbour);
  else
    to.tap.write(*piece.frame, piece.first, piece.count, piece.marked, to.neighbour);
}

}  // namespace orrery::netshape
