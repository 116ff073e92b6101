// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/ops/all.hpp"
#include "tensorcraft/ops/elementwise/elementwise.hpp"
#include "tensorcraft/ops/paged_attention/paged_attention.hpp"
#include "tensorcraft/ops/permute/permute.hpp"
#include "tests/support/tensors.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

namespace tensorcraft::test {

// A batch whose keys lie in pages that are in disorder. Every element that no query may read is
// NaN.
struct PagedBatch {
  std::vector<int> lengths;
  int block_size = 16, heads_k = 2, dim = 64;
  int v_dim = 0;  // above 0: values are the first elements of keys
  DType dtype = DType::bfloat16;
  unsigned order = 1;   // of the pages
  int spare = 3;        // pages of no request
  Tensor keys, values;  // [batch, longest, heads_k, dim], float32
  Tensor k_cache, v_cache, tables;

  int longest() const { return std::max(1, *std::ranges::max_element(lengths)); }
  int width() const { return (longest() + block_size - 1) / block_size + 1; }

  void fill(unsigned seed) {
    const Dims shape{int64_t(lengths.size()), longest(), heads_k, dim};
    keys = normal_tensor(shape, DType::float32, seed);
    values = normal_tensor(shape, DType::float32, seed + 1);
    lay_out();
  }
  void lay_out() {
    int blocks = spare;
    for (const int n : lengths) blocks += (n + block_size - 1) / block_size;
    std::vector<int32_t> free(static_cast<size_t>(blocks));
    std::iota(free.begin(), free.end(), 0);
    std::shuffle(free.begin(), free.end(), std::mt19937(order));
    const Dims shape{blocks, block_size, heads_k, dim};
    std::vector<float> k(size_t(num_elements(shape)), NAN), v = k;
    // Entries behind a request's blocks name no block at all.
    std::vector<int32_t> table(lengths.size() * size_t(width()), order % 2 ? -1 : 1 << 29);
    const int row = heads_k * dim;
    for (size_t b = 0; b < lengths.size(); ++b)
      for (int j = 0; j < lengths[b]; ++j) {
        int32_t& block = table[b * size_t(width()) + size_t(j / block_size)];
        if (j % block_size == 0) {
          block = free.back();
          free.pop_back();
        }
        const auto from = (int64_t(b) * longest() + j) * row;
        const auto to = (int64_t(block) * block_size + j % block_size) * row;
        std::copy_n(keys.data_as<float>() + from, row, k.begin() + to);
        std::copy_n(values.data_as<float>() + from, row, v.begin() + to);
      }
    k_cache = astype(Tensor::from(k, shape), {.dtype = dtype});
    v_cache = astype(Tensor::from(v, shape), {.dtype = dtype});
    tables = Tensor::from(table, {int64_t(lengths.size()), width()});
  }
  // Copies the batch into memory of its own.
  PagedBatch twin() const {
    PagedBatch t{lengths, block_size, heads_k, dim, v_dim, dtype, order, spare, {}, {}, {}, {}, {}};
    t.keys = copy(keys);
    t.values = copy(values);
    t.k_cache = copy(k_cache);
    t.v_cache = copy(v_cache);
    t.tables = copy(tables);
    return t;
  }
  Tensor lengths_tensor() const {
    const std::vector<int32_t> all(lengths.begin(), lengths.end());
    return Tensor::from(all, {int64_t(all.size())});
  }
  PagedAttentionResult run(const Tensor& q, Device place, std::string_view variant,
                           PagedAttentionOptions options = {}) const {
    options.return_lse = true;
    options.variant = variant;
    if (v_dim > 0) options.v_dim = v_dim;
    const Tensor own_values = v_dim > 0 ? Tensor() : v_cache.to(place);
    return paged_attention(astype(q, {.dtype = dtype}).to(place), k_cache.to(place),
                           v_dim > 0 ? std::nullopt : std::optional(own_values.view()),
                           tables.to(place), lengths_tensor().to(place), options);
  }
};

// Variants that refuse ragged tokens, and more than 16 queries of a request.
inline bool takes_few_queries(std::string_view variant) {
  return variant == "split_kv" || variant == "split_wgmma";
}

// The emulator, if it is built, and a GPU that every rung runs on.
inline std::vector<Device> kernel_places() {
  std::vector<Device> all;
  for (const Device device : devices())
    if (device == Device::simt() ||
        (device == Device::cuda() && device_info(device).compute_capability == 90))
      all.push_back(device);
  return all;
}

// Every variant that takes a v_cache, on the host, the emulator and a GPU.
template <class F>
void each_paged_variant(F&& f) {
  auto devices = kernel_places();
  devices.push_back(Device::cpu());
  for (const auto& v : find_operator("paged_attention").description().variants)
    for (const Device place : devices)
      if (v.name != "latent_wgmma" && (v.device == DeviceType::cpu) == (place == Device::cpu()))
        f(place, v.name);
}

inline std::vector<double> rows_of(const Tensor& t, int64_t first, int64_t count) {
  const auto all = doubles(t);
  const int64_t row = t.size() / t.shape(0);
  return {all.begin() + first * row, all.begin() + (first + count) * row};
}

}  // namespace tensorcraft::test
