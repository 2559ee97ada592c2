// A tensor as strategies and the wire see it: contiguous float32, shared ownership, no libtorch.
// Kernels (agents/torch) wrap the same memory without a copy.
#pragma once

#include <cstdint>
#include <memory>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

namespace orrery {

/// Copies share memory; clone() does not.
class Tensor {
 public:
  Tensor() = default;
  /// Memory is left uninitialised: what fills it is always a kernel or the wire.
  explicit Tensor(std::vector<std::int64_t> shape)
      : shape_(std::move(shape)),
        count_(std::accumulate(shape_.begin(), shape_.end(), std::int64_t{1},
                               [](std::int64_t a, std::int64_t b) { return a * b; })),
        data_(new float[static_cast<std::size_t>(count_)], std::default_delete<float[]>()) {}
  /// Takes shared ownership of `count` floats that something else allocated.
  Tensor(std::vector<std::int64_t> shape, std::shared_ptr<float> data) : Tensor() {
    shape_ = std::move(shape);
    count_ = 1;
    for (const std::int64_t extent : shape_) count_ *= extent;
    data_ = std::move(data);
  }

  explicit operator bool() const { return data_ != nullptr; }
  const std::vector<std::int64_t>& shape() const { return shape_; }
  std::int64_t count() const { return count_; }
  std::int64_t bytes() const { return count_ * static_cast<std::int64_t>(sizeof(float)); }
  float* data() { return data_.get(); }
  const float* data() const { return data_.get(); }
  std::span<float> values() { return {data_.get(), static_cast<std::size_t>(count_)}; }
  std::span<const float> values() const { return {data_.get(), static_cast<std::size_t>(count_)}; }
  const std::shared_ptr<float>& storage() const { return data_; }

  Tensor clone() const {
    Tensor copy(shape_);
    std::copy(values().begin(), values().end(), copy.data());
    return copy;
  }
  /// The same memory from element `offset` on, as another shape.
  Tensor view(std::int64_t offset, std::vector<std::int64_t> shape) const {
    return Tensor(std::move(shape), std::shared_ptr<float>(data_, data_.get() + offset));
  }

 private:
  std::vector<std::int64_t> shape_;
  std::int64_t count_ = 0;
  std::shared_ptr<float> data_;
};

}  // namespace orrery
