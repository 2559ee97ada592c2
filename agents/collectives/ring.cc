#include "agents/collectives/ring.hh"

namespace orrery {
namespace {

struct Chunk {
  std::int64_t begin;
  std::int64_t count;
};

// Near-equal parts: the first (count mod size) have one element more.
Chunk chunk_of(std::int64_t count, int size, int index) {
  const int i = ((index % size) + size) % size;
  const std::int64_t base = count / size;
  const std::int64_t larger = count % size;
  return {i * base + std::min<std::int64_t>(i, larger), base + (i < larger ? 1 : 0)};
}

Message chunk_message(const Tensor& values, const Chunk& chunk, MessageKind kind,
                      std::uint32_t tag) {
  return {kind, tag, {}, {values.view(chunk.begin, {chunk.count})}};
}

}  // namespace

void ring_all_reduce(Node& node, Tensor& values, MessageKind kind, std::uint32_t tag) {
  const int n = node.size();
  if (n == 1) return;
  const int rank = node.rank();
  const int right = (rank + 1) % n;
  const int left = (rank + n - 1) % n;

  for (int step = 0; step < n - 1; ++step) {
    node.send(right, chunk_message(values, chunk_of(values.count(), n, rank - step), kind, tag));
    const Message message = node.recv({left, tag});
    const Chunk mine = chunk_of(values.count(), n, rank - step - 1);
    node.compute(reduce_kernel(mine.count), [&] {
      float* into = values.data() + mine.begin;
      const float* from = message.tensors.at(0).data();
      for (std::int64_t i = 0; i < mine.count; ++i) into[i] += from[i];
    });
  }
  for (int step = 0; step < n - 1; ++step) {
    node.send(right,
              chunk_message(values, chunk_of(values.count(), n, rank + 1 - step), kind, tag + 1));
    const Message message = node.recv({left, tag + 1});
    const Chunk mine = chunk_of(values.count(), n, rank - step);
    node.compute(copy_kernel(mine.count), [&] {
      const float* from = message.tensors.at(0).data();
      std::copy(from, from + mine.count, values.data() + mine.begin);
    });
  }
}

std::vector<KernelSpec> ring_kernels(int size, std::int64_t count) {
  std::vector<KernelSpec> kernels;
  if (size == 1) return kernels;
  for (const std::int64_t part : {count / size, count / size + 1}) {
    kernels.push_back(reduce_kernel(part));
    kernels.push_back(copy_kernel(part));
    kernels.push_back(message_kernel(part * 4));
  }
  return kernels;
}

}  // namespace orrery
