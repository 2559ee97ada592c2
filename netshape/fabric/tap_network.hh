// What a plan is to the kernel when the fabric carries its packets: a namespace a vertex, a TAP
// device a port, addresses and routes. Nothing of it has a name outside its namespace, and all of
// it ends with our descriptors and the last process inside.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/fd.hh"
#include "netshape/backend.hh"
#include "netshape/fabric/tap.hh"

namespace orrery::netshape {

class TapNetwork {
 public:
  /// A vertex's end of a port. Ports between two switches have none.
  struct Device {
    std::size_t port = 0;  ///< Switch's number
    TapDevice tap;
    Mac neighbour{};  ///< the sender's address in frames that arrive here
  };

  /// Builds all of it, or throws and leaves nothing.
  TapNetwork(const Plan& plan, bool offload);

  std::vector<Device>& devices() { return devices_; }
  /// std::logic_error for a name that the plan has not.
  int descriptor(const std::string& vertex) const;
  const std::vector<Applied>& record() const { return record_; }

 private:
  void make_vertex(const Plan& plan, const VertexPlan& vertex, std::vector<std::size_t> ports,
                   bool offload);

  std::map<std::string, FileDescriptor> namespaces_;
  std::vector<Device> devices_;
  std::vector<Applied> record_;
};

}  // namespace orrery::netshape
