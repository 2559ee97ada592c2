#include "netshape/fabric/frame_pool.hh"

#include <stdexcept>

namespace orrery::netshape {

FrameRef::~FrameRef() {
  if (frame_ && --frame_->references_ == 0) frame_->pool_->give_back(frame_);
}

FrameRef FramePool::take(std::size_t bytes) {
  std::size_t size_class = 0;
  while (size_class < sizes.size() && sizes[size_class] < bytes) ++size_class;
  if (size_class == sizes.size())
    throw std::logic_error("a frame of " + std::to_string(bytes) + " bytes is too large");
  std::vector<Frame*>& free = free_[size_class];
  if (free.empty()) {
    auto frame = std::make_unique<Frame>();
    frame->bytes_.reset(new std::byte[sizes[size_class]]);
    frame->room_ = sizes[size_class];
    frame->pool_ = this;
    frame->size_class_ = size_class;
    free.push_back(frame.get());
    all_.push_back(std::move(frame));
  }
  Frame* frame = free.back();
  free.pop_back();
  return FrameRef(frame);
}

void FramePool::give_back(Frame* frame) { free_[frame->size_class_].push_back(frame); }

}  // namespace orrery::netshape
