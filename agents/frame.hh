// A message's form on the wire (proto/frame.proto).
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include "agents/transport.hh"

namespace orrery {

/// The tensors' memory is shared with the buffer, not copied.
grpc::ByteBuffer to_wire(int from, const Message& message);

struct Received {
  int from = 0;
  Message message;
};
/// Throws Error if the bytes are not a frame.
Received from_wire(const grpc::ByteBuffer& buffer);

}  // namespace orrery
