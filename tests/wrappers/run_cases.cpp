// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/cuda/launch_kernel.hpp"
#include "tensorcraft/cuda/memory.hpp"
#include "tensorcraft/cuda/tensor_map.hpp"
#include "tensorcraft/simt/tensor_map.hpp"
#include "tests/wrappers/cases.hpp"

#include <cstring>

namespace tensorcraft::test {
namespace {

// Says what one launch gets, and how many clusters it has.
struct Part {
  Params params;
  unsigned clusters;
};

template <class Encode>
std::vector<Part> parts_of(const Case& c, uint32_t* in, uint32_t* out, const Encode& encode) {
  if (!c.tensor) return {{{{}, in, out, c.in_words, c.out_words}, unsigned(c.blocks)}};
  std::vector<Part> parts;
  for (int block = 0; block < c.blocks; ++block) {
    Params p{{}, in + block * c.in_words, out + block * c.out_words, c.in_words, c.out_words};
    TiledTensor tensor = c.tensor->tensor;
    tensor.address = (c.tensor->written ? p.out : in + block * c.in_words) + c.tensor->word;
    if (auto windows = c.tensor->windows) {
      windows->images.address = tensor.address;
      p.map = encode(*windows);
    } else {
      p.map = encode(tensor);
    }
    parts.push_back({p, 1});
  }
  return parts;
}

struct SimtMap {
  TensorMap operator()(const TiledTensor& t) const { return simt::encode_tiled(t); }
  TensorMap operator()(const Im2colTensor& t) const { return simt::encode_im2col(t); }
};
struct GpuMap {
  TensorMap operator()(const TiledTensor& t) const { return cuda::encode_tiled(t); }
  TensorMap operator()(const Im2colTensor& t) const { return cuda::encode_im2col(t); }
};

// Memory at a multiple of 128 bytes, as a GPU's is.
class Aligned {
 public:
  explicit Aligned(const std::vector<uint32_t>& words) : words_(words.size() + 32) {
    const auto at = reinterpret_cast<uintptr_t>(words_.data());
    first_ = words_.data() + (128 - at % 128) % 128 / 4;
    std::memcpy(first_, words.data(), words.size() * 4);
  }
  uint32_t* data() const { return first_; }

 private:
  std::vector<uint32_t> words_;
  uint32_t* first_;
};

}  // namespace

const std::vector<Case>& cases() {
  static const auto all = [] {
    std::vector<Case> list;
    // The copy engine's come last: what it does not like ends a process's use of the GPU.
    for (const auto& some :
         {convert_cases(), warp_cases(), atomic_cases(), matrix_cases(), mma_cases(), wmma_cases(),
          layout_cases(), async_copy_cases(), barrier_cases(), order_cases(), wgmma_cases(),
          cluster_cases(), bulk_cases(), tma_cases()})
      list.insert(list.end(), some.begin(), some.end());
    return list;
  }();
  return all;
}

void run_on_simt(const Case& c, simt::Body body, const std::vector<uint32_t>& in,
                 std::vector<uint32_t>& out) {
  const Aligned from(in), to(std::vector<uint32_t>(out.size(), 0xdddddddd));
  for (int i = 0; i < c.launches; ++i)
    for (const Part& part : parts_of(c, from.data(), to.data(), SimtMap()))
      simt::launch({.name = c.name,
                    .grid = {part.clusters * c.cluster.x, c.cluster.y, c.cluster.z},
                    .block = {unsigned(c.threads)},
                    .cluster = c.cluster,
                    .shared_bytes = c.shared_bytes},
                   body, &part.params);
  std::memcpy(out.data(), to.data(), out.size() * 4);
}

void run_on_gpu(const Case& c, const LoadedKernel& kernel, const std::vector<uint32_t>& in,
                std::vector<uint32_t>& out) {
  const StreamRef stream;
  auto* from = static_cast<uint32_t*>(cuda::allocate(in.size() * 4, stream));
  auto* to = static_cast<uint32_t*>(cuda::allocate(out.size() * 4, stream));
  cuda::copy_async(from, in.data(), in.size() * 4, stream);
  cuda::fill_async(to, 0xdd, out.size() * 4, stream);
  for (int i = 0; i < c.launches; ++i)
    for (const Part& part : parts_of(c, from, to, GpuMap()))
      LaunchKernel({part.clusters * c.cluster.x, c.cluster.y, c.cluster.z}, {uint32_t(c.threads)},
                   stream, c.shared_bytes)
          .cluster({c.cluster.x, c.cluster.y, c.cluster.z})
          .programmatic_dependent_launch(i > 0)(kernel, part.params);
  cuda::copy_async(out.data(), to, out.size() * 4, stream);
  stream.synchronize();
  cuda::deallocate(from, stream);
  cuda::deallocate(to, stream);
}

}  // namespace tensorcraft::test
