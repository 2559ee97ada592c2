// The fabric's one thread: it reads what the TAP devices hold, asks the switch what leaves when,
// waits for that instant, and writes. All that is impure about time is here.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "netshape/fabric/spin_budget.hh"
#include "netshape/fabric/switch.hh"
#include "netshape/fabric/tap_network.hh"

namespace orrery::netshape {

struct FabricOptions {
  /// Super-packets and checksums cross the devices as they are; without, each packet by itself.
  bool offload = true;
  /// A sleeping thread wakes late, by some 0.04 ms: it sleeps until so long before a release, then
  /// looks at the clock until it is time.
  Duration spin = Duration::microseconds(60);
  /// But not for more of its time than this; then it rather wakes late.
  double spin_share = 0.5;
  /// Ask for the greatest weight that the scheduler gives, so that other load does not make
  /// releases late.
  bool favoured = true;
};

class FabricLoop final : private PortWriter {
 public:
  /// Starts the thread. Both are its own until stop().
  FabricLoop(Switch& fabric, TapNetwork& network, const FabricOptions& options);
  /// Stops it.
  ~FabricLoop() override;
  FabricLoop(const FabricLoop&) = delete;
  FabricLoop& operator=(const FabricLoop&) = delete;

  /// Runs `work` in the thread, between two packets, and waits for it. What it throws is thrown
  /// here; so is what ended the thread, if it has ended.
  void in_between(const std::function<void()>& work);

  /// Whether that was granted.
  bool favoured() const { return favoured_; }

  static Instant now();

 private:
  void run();
  void loop();
  void ask_for_favour();
  void read_device(std::size_t device, Instant at);
  void wait(Instant from);
  std::int64_t time_to_sleep(Instant from) const;
  void serve_requests();
  void write(PortNumber port, const Piece& piece) override;

  Switch& fabric_;
  TapNetwork& network_;
  FabricOptions options_;
  FileDescriptor epoll_;
  FileDescriptor wake_;                 ///< readable: somebody asks for something
  std::vector<std::size_t> device_of_;  ///< port → device
  std::vector<std::size_t> ready_;      ///< devices that have frames, this time round
  SpinBudget budget_;
  bool spinning_ = false;  ///< since the last time round
  std::atomic<bool> stop_ = false;
  std::atomic<bool> favoured_ = false;
  std::mutex mutex_;
  std::vector<std::function<void()>> requests_;  ///< under mutex_
  std::exception_ptr failure_;                   ///< under mutex_: what ended the thread
  bool ended_ = false;                           ///< under mutex_
  std::thread thread_;
};

}  // namespace orrery::netshape
