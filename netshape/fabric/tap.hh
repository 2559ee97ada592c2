// A TAP device with virtio-net headers: one end is a network interface in a namespace, the other is
// our descriptor. It ends with the descriptor, so nothing is left behind however a process ends.
#pragma once

#include <string>

#include "base/fd.hh"
#include "netshape/fabric/frame_pool.hh"

namespace orrery::netshape {

class TapDevice {
 public:
  /// Made in the network namespace that the calling thread is in. With `offload` it takes and gives
  /// super-packets of TCP and leaves checksums to the other end; without, plain frames only.
  /// Throws MachineError where the machine has no /dev/net/tun or we may not open it.
  TapDevice(const std::string& name, bool offload);

  int descriptor() const { return fd_.get(); }
  const std::string& name() const { return name_; }
  /// The interface's number in its namespace.
  int index() const { return index_; }
  const Mac& mac() const { return mac_; }
  void set_mac(const Mac& mac);

  /// The next frame that the kernel has sent, taken from `pool`; none: nothing waits. Throws
  /// SystemError when the device is gone.
  FrameRef read(FramePool& pool);
  /// Hands segments of a frame to the kernel as arrived. False: it did not take them.
  bool write(const Frame& frame, int first, int count, bool marked, const Mac& from);
  /// One packet with a flipped bit.
  bool write_corrupt(const Frame& frame, int first, bool marked, std::uint32_t draw,
                     const Mac& from);

 private:
  FileDescriptor fd_;
  std::string name_;
  int index_ = 0;
  Mac mac_{};
  FrameRef landing_;  ///< what the next frame is read into
};

}  // namespace orrery::netshape
