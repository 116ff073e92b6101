// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/dlpack_traits.hpp"
#include "tensorcraft/op/host/rows.hpp"
#include "tensorcraft/ops/paged_attention/elements.cuh"
#include "tensorcraft/ops/paged_attention/requests.hpp"

namespace tensorcraft::kernel::paged_attention {

// n elements of a line as floats.
template <class Code>
void load_line(float* to, const Code* from, int64_t step, int64_t n) {
  if constexpr (kIsRow<Code>)
    for (int d = 0; d < n; ++d) to[d] = element(from, step, d);
  else
    host::load_elements(to, from, dtype_of<Code>(), step, n);
}

// The lines that the keys of a request have in a cache, one after the other.
template <class Code>
class Walk {
 public:
  Walk(const Params& p, int64_t b, const Cache& cache, int head, int key)
      : p_(p), b_(b), cache_(cache), head_(head), key_(key), row_(key % p.block_size) {}

  const Code* line() {
    find();
    return line_ + row_ * cache_.row;
  }
  float scale() {
    find();
    return cache_
        .scale[block_ * cache_.scale_block + row_ * cache_.scale_row + head_ * cache_.scale_head];
  }
  // Lines of this block from the present one on.
  int left() const { return int(p_.block_size - row_); }
  void next(int lines = 1) {  // at most left()
    key_ += lines;
    row_ += lines;
    if (row_ < p_.block_size) return;
    row_ = 0;
    line_ = nullptr;
  }

 private:
  void find() {
    if (line_) return;
    block_ = block_of(p_, b_, key_);
    line_ = static_cast<const Code*>(cache_.data) + block_ * cache_.block + head_ * cache_.head;
  }

  const Params& p_;
  const int64_t b_;
  const Cache& cache_;
  const int head_;
  int64_t key_, row_, block_ = 0;
  const Code* line_ = nullptr;  // of row 0 of the block; null until it is asked for
};

}  // namespace tensorcraft::kernel::paged_attention
