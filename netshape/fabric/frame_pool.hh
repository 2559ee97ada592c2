// Memory for frames: a few sizes, kept for the next frame instead of being given back. After the
// busiest moment so far nothing is allocated any more.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "netshape/fabric/frame.hh"

namespace orrery::netshape {

class FramePool;

/// A frame, unchanged since it was read. Parts of it, copies included, share it.
class Frame {
 public:
  OffloadHeader net;
  FrameShape shape;

  std::span<std::byte> room() { return {bytes_.get(), room_}; }
  std::span<const std::byte> bytes() const { return {bytes_.get(), size_}; }
  void set_size(std::size_t size) { size_ = size; }

 private:
  friend class FramePool;
  friend class FrameRef;
  std::unique_ptr<std::byte[]> bytes_;
  std::size_t room_ = 0;
  std::size_t size_ = 0;
  FramePool* pool_ = nullptr;
  std::size_t size_class_ = 0;
  int references_ = 0;
};

/// Shared ownership within one thread. The pool outlives it.
class FrameRef {
 public:
  FrameRef() = default;
  explicit FrameRef(Frame* frame) : frame_(frame) {
    if (frame_) ++frame_->references_;
  }
  FrameRef(const FrameRef& other) : FrameRef(other.frame_) {}
  FrameRef(FrameRef&& other) noexcept : frame_(std::exchange(other.frame_, nullptr)) {}
  FrameRef& operator=(FrameRef other) noexcept {
    std::swap(frame_, other.frame_);
    return *this;
  }
  ~FrameRef();

  Frame* operator->() const { return frame_; }
  Frame& operator*() const { return *frame_; }
  explicit operator bool() const { return frame_ != nullptr; }

 private:
  Frame* frame_ = nullptr;
};

class FramePool {
 public:
  FramePool() = default;
  FramePool(const FramePool&) = delete;
  FramePool& operator=(const FramePool&) = delete;

  /// With room for `bytes`, at most largest_frame; contents are whatever was there before.
  FrameRef take(std::size_t bytes);
  /// How many frames were ever allocated.
  std::size_t allocated() const { return all_.size(); }

 private:
  friend class FrameRef;
  void give_back(Frame* frame);

  // An acknowledgement, a full frame, a short burst, a long one.
  static constexpr std::array<std::size_t, 4> sizes{256, 2048, 16384, largest_frame};
  std::array<std::vector<Frame*>, sizes.size()> free_;
  std::vector<std::unique_ptr<Frame>> all_;
};

}  // namespace orrery::netshape
