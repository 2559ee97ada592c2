#include "agents/frame.hh"

#include <cstring>
#include <vector>

#include "proto/frame.pb.h"

namespace orrery {
namespace {

// Below this a copy is cheaper than a reference-counted slice.
constexpr std::int64_t copy_below = 1024;

grpc::Slice slice_of(const Tensor& tensor) {
  const auto bytes = static_cast<std::size_t>(tensor.bytes());
  if (tensor.bytes() < copy_below) return grpc::Slice(tensor.data(), bytes);
  auto* owner = new std::shared_ptr<float>(tensor.storage());
  return grpc::Slice(
      owner->get(), bytes, [](void* user) { delete static_cast<std::shared_ptr<float>*>(user); },
      owner);
}

// Reads on over the borders of gRPC's slices.
class Cursor {
 public:
  explicit Cursor(const std::vector<grpc::Slice>& slices) : slices_(slices) {}

  void read(void* into, std::size_t count) {
    auto* out = static_cast<char*>(into);
    while (count > 0) {
      if (index_ == slices_.size()) throw Error("a message from a peer is cut off");
      const grpc::Slice& slice = slices_[index_];
      const std::size_t n = std::min(count, slice.size() - offset_);
      std::memcpy(out, slice.begin() + offset_, n);
      out += n;
      count -= n;
      offset_ += n;
      if (offset_ == slice.size()) {
        ++index_;
        offset_ = 0;
      }
    }
  }

 private:
  const std::vector<grpc::Slice>& slices_;
  std::size_t index_ = 0;
  std::size_t offset_ = 0;
};

}  // namespace

grpc::ByteBuffer to_wire(int from, const Message& message) {
  wire::FrameHead head;
  head.set_from(from);
  head.set_kind(static_cast<std::uint32_t>(message.kind));
  head.set_tag(message.tag);
  head.set_header(message.header);
  for (const Tensor& tensor : message.tensors) {
    wire::TensorShape* shape = head.add_tensors();
    for (const std::int64_t extent : tensor.shape()) shape->add_extents(extent);
  }
  const auto length = static_cast<std::uint32_t>(head.ByteSizeLong());
  std::string text(sizeof length, '\0');
  std::memcpy(text.data(), &length, sizeof length);
  head.AppendToString(&text);

  std::vector<grpc::Slice> slices;
  slices.reserve(1 + message.tensors.size());
  slices.emplace_back(text);
  for (const Tensor& tensor : message.tensors) slices.push_back(slice_of(tensor));
  return grpc::ByteBuffer(slices.data(), slices.size());
}

Received from_wire(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  if (!buffer.Dump(&slices).ok()) throw Error("a message from a peer cannot be read");
  Cursor cursor(slices);
  std::uint32_t length = 0;
  cursor.read(&length, sizeof length);
  if (length > buffer.Length()) throw Error("a message from a peer is cut off");
  std::string text(length, '\0');
  cursor.read(text.data(), length);
  wire::FrameHead head;
  if (!head.ParseFromString(text) || head.kind() >= message_kinds)
    throw Error("a message from a peer is not a frame of this version");

  Received received;
  received.from = head.from();
  received.message.kind = static_cast<MessageKind>(head.kind());
  received.message.tag = head.tag();
  received.message.header = head.header();
  for (const wire::TensorShape& shape : head.tensors()) {
    Tensor tensor(std::vector<std::int64_t>(shape.extents().begin(), shape.extents().end()));
    cursor.read(tensor.data(), static_cast<std::size_t>(tensor.bytes()));
    received.message.tensors.push_back(std::move(tensor));
  }
  return received;
}

}  // namespace orrery
