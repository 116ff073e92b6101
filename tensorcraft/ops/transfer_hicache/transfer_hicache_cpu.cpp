// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/op/host/elements.hpp"
#include "tensorcraft/op/host/parallel.hpp"
#include "tensorcraft/ops/transfer_hicache/problem.hpp"

#include <cstring>

namespace tensorcraft::kernel::transfer_hicache {
void check_tokens(const Side& side, int64_t count, const SideNames& names) {
  for (int64_t i = 0; i < count; ++i)
    if (const int64_t token = token_at(side, i); token < 0 || token >= side.places)
      fail(ErrorKind::index, names.op, ": ", names.indices, ": element ", i, " is ", token,
           ", expected [0, ", side.places, "), the tokens of ", names.caches);
}

namespace {

void check_tokens(const Problem& q) {
  check_tokens(q.params.dst, q.params.count, dst_names(q.op));
  check_tokens(q.params.src, q.params.count, src_names(q.op));
}

void copy(const TensorView& to, const TensorView& from) {
  if (to.data() == from.data()) return;
  const size_t bytes = dtype_bytes(to.dtype());
  const host::Elements out(to), in(from);
  for (int64_t i = 0; i < to.size(); ++i) std::memcpy(out.address(i), in.address(i), bytes);
}

void copy_caches(const Problem& q) {
  copy(q.k_dst_out, q.k_dst);
  copy(q.v_dst_out, q.v_dst);
}

}  // namespace

void cpu(const Problem& q) {
  const Params& p = q.params;
  check_tokens(q);
  copy_caches(q);
  constexpr int64_t kGrainElements = 64;
  host::parallel_for(p.count * p.layers, kGrainElements, [&](int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item) {
      const int64_t layer = item / p.count, i = item % p.count;
      const int64_t to = offset_of(p.dst, token_at(p.dst, i)),
                    from = offset_of(p.src, token_at(p.src, i));
      std::memmove(keys_of(p.dst, layer) + to, keys_of(p.src, layer) + from,
                   size_t(p.element_bytes));
      std::memmove(values_of(p.dst, layer) + to, values_of(p.src, layer) + from,
                   size_t(p.element_bytes));
    }
  });
}

void reference(const Problem& q) {
  const Params& p = q.params;
  check_tokens(q);
  copy_caches(q);
  for (int64_t layer = 0; layer < p.layers; ++layer)
    for (int64_t i = 0; i < p.count; ++i)
      for (int64_t byte = 0; byte < p.element_bytes; ++byte) {
        const int64_t to = token_at(p.dst, i), from = token_at(p.src, i);
        const int64_t at = to / p.dst.page_size * p.dst.page + to % p.dst.page_size * p.dst.token;
        const int64_t source =
            from / p.src.page_size * p.src.page + from % p.src.page_size * p.src.token;
        keys_of(p.dst, layer)[at + byte] = keys_of(p.src, layer)[source + byte];
        values_of(p.dst, layer)[at + byte] = values_of(p.src, layer)[source + byte];
      }
}

}  // namespace tensorcraft::kernel::transfer_hicache
