// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/paged_attention/arguments.hpp"

#include "tensorcraft/device/latent_row.h"
#include "tensorcraft/op/checks/check.hpp"
#include "tensorcraft/op/checks/latent_rows.hpp"
#include "tensorcraft/op/checks/window.hpp"

#include <algorithm>
#include <cmath>

namespace tensorcraft::kernel::paged_attention {
namespace {

constexpr int64_t kMaxSize = int64_t(1) << 30;  // kernels count in 32 bits

// The sizes of a call.
struct Sizes {
  int64_t batch, queries, tokens;  // queries: 0 if the batch is ragged
  int64_t heads, head_dim, v_dim;
  int64_t blocks, block_size, heads_k, table_size;
};

int64_t dim_of(const TensorView& t) { return t.shape(t.rank() - 1); }
int64_t dim_of(const std::optional<TensorView>& t) { return t ? dim_of(*t) : 0; }

bool has_rows(const TensorView& k_cache) { return k_cache.dtype() == DType::uint8; }
// k_cache of four dimensions; rows of bytes have one head.
TensorView heads_of(const TensorView& k_cache, CacheLayout layout) {
  if (!has_rows(k_cache)) return k_cache;
  const TensorView rows = op::latent_rows(kName, "k_cache", k_cache, layout);
  return layout == CacheLayout::nhd ? rows : rows.transpose(1, 2);
}

void check_rank(const TensorView& q, const Options& o) {
  const bool fits = q.rank() == 3 || (q.rank() == 4 && !o.cu_seqlens_q);
  if (!fits)
    fail(ErrorKind::value, kName, ": q: expected (",
         o.cu_seqlens_q ? "tokens, heads, head_dim) with cu_seqlens_q"
                        : "batch, heads, head_dim) or (batch, queries, heads, head_dim)",
         ", got shape ", q.shape());
}

// The axes of block_size and heads_k.
struct Axes {
  int row, head;
};
Axes axes_of(CacheLayout layout) { return layout == CacheLayout::nhd ? Axes{1, 2} : Axes{2, 1}; }

void check_scale(std::string_view name, const std::optional<TensorView>& scale,
                 const TensorView& cache, CacheLayout layout) {
  if (!scale) {
    if (cache.dtype() == DType::int8)
      fail(ErrorKind::value, kName, ": ", name,
           ": int8 codes are multiplied by it; give a number, or one for each head, or one for "
           "each key and head");
    return;
  }
  const Dims each(std::span<const int64_t>(cache.shape()).first(3));
  const Dims heads{each[axes_of(layout).head]};
  op::check_dtype(kName, name, *scale, {DType::float32});
  const bool is_number = scale->size() == 1 && scale->rank() <= 1;
  if (!is_number && scale->shape() != heads && scale->shape() != each)
    fail(ErrorKind::value, kName, ": ", name, ": expected a number, or shape ", heads,
         ", one for each head, or ", each, ", that of the cache without head_dim, got ",
         scale->shape());
}

void check_q_pe(const TensorView& q, const Options& o) {
  if (!o.q_pe) return;
  Dims shape = q.shape();
  if (o.q_pe->rank() == q.rank()) shape[q.rank() - 1] = dim_of(*o.q_pe);
  op::check_like(kName, "q_pe", *o.q_pe, q.dtype(), shape);
}

// A cache of rows of 656 bytes.
void check_rows(int64_t head_dim, const Options& o) {
  if (head_dim != LatentRow::kDim)
    fail(ErrorKind::value, kName, ": k_cache: rows of ", LatentRow::kBytes, " bytes have ",
         LatentRow::kDim, " elements, and queries, q_pe included, ", head_dim);
  for (const auto& [name, given] : {std::pair("v_cache", &o.v_cache), std::pair("k_pe", &o.k_pe),
                                    std::pair("k_scale", &o.k_scale)})
    if (*given)
      fail(ErrorKind::value, kName, ": ", name, ": rows of ", LatentRow::kBytes,
           " bytes have all of a key, its scales and its value; leave ", name, " out");
}

// head_dim: of queries.
void check_keys(int64_t head_dim, const TensorView& k_cache, const Options& o) {
  TensorMatcher({kAnySize, kAnySize, kAnySize, kAnySize})
      .with_any_strides()
      .verify(k_cache, kName, "k_cache");
  if (has_rows(k_cache)) return check_rows(head_dim, o);
  if (o.k_pe) {
    Dims shape = k_cache.shape();
    if (o.k_pe->rank() == 4) shape[3] = dim_of(*o.k_pe);
    op::check_like(kName, "k_pe", *o.k_pe, k_cache.dtype(), shape);
  }
  const int64_t of_keys = dim_of(k_cache) + dim_of(o.k_pe);
  if (of_keys != head_dim)
    fail(ErrorKind::value, kName, ": k_cache: expected head_dim ", head_dim, ", that of q",
         o.q_pe ? " and q_pe" : "", ", got ", of_keys, o.k_pe ? ", that of k_cache and k_pe" : "",
         ": k_cache has shape ", k_cache.shape());
  check_scale("k_scale", o.k_scale, k_cache, o.layout);
}

void check_caches(const TensorView& q, const TensorView& k_cache, const Options& o) {
  op::check_dtype(kName, "k_cache", k_cache,
                  {q.dtype(), DType::float8_e4m3fn, DType::float8_e5m2, DType::int8, DType::uint8});
  check_q_pe(q, o);
  check_keys(dim_of(q) + dim_of(o.q_pe), k_cache, o);
  if (!o.v_cache) {
    if (o.v_scale)
      fail(ErrorKind::value, kName,
           ": v_scale is for v_cache, which is not given; values are "
           "keys and have k_scale");
    const int64_t most = has_rows(k_cache) ? LatentRow::kLatent : dim_of(k_cache);
    if (o.v_dim < 1 || o.v_dim > most)
      fail(ErrorKind::value, kName, ": v_dim must be 1 to ",
           has_rows(k_cache) ? "the latent values of a row, " : "head_dim, ", most,
           ", if there is no v_cache: values are the first v_dim elements of ",
           o.k_pe ? "k_cache" : "keys", "; got ", o.v_dim);
    return;
  }
  Dims shape = k_cache.shape();
  if (o.v_cache->rank() == 4) shape[3] = o.v_cache->shape(3);
  op::check_like(kName, "v_cache", *o.v_cache, k_cache.dtype(), shape);
  check_scale("v_scale", o.v_scale, *o.v_cache, o.layout);
}

Sizes sizes_of(const TensorView& q, const TensorView& k_cache, const Options& o) {
  const Axes axes = axes_of(o.layout);
  const bool ragged = o.cu_seqlens_q.has_value(), one = q.rank() == 3;
  Sizes s{.batch = ragged ? o.lengths->shape(0) : q.shape(0),
          .queries = ragged ? 0
                     : one  ? 1
                            : q.shape(1),
          .tokens = one ? q.shape(0) : q.shape(0) * q.shape(1),
          .heads = q.shape(q.rank() - 2),
          .head_dim = dim_of(q) + dim_of(o.q_pe),
          .v_dim = o.v_cache ? o.v_cache->shape(3) : o.v_dim,
          .blocks = k_cache.shape(0),
          .block_size = k_cache.shape(axes.row),
          .heads_k = k_cache.shape(axes.head),
          .table_size = o.block_tables->shape(1)};
  if (s.head_dim < 1 || s.head_dim > kMaxHeadDim || s.v_dim < 1 || s.v_dim > kMaxValueDim)
    fail(ErrorKind::unsupported, kName, ": the head_dim of q must be 1 to ", kMaxHeadDim,
         " and that of values 1 to ", kMaxValueDim, ", got ", s.head_dim, " and ", s.v_dim);
  if (s.heads != 0 && (s.heads_k == 0 || s.heads % s.heads_k != 0))
    fail(ErrorKind::value, kName, ": the heads of q must be a multiple of those of k_cache, got ",
         s.heads, " and ", s.heads_k);
  for (const int64_t n : {s.batch, s.queries, s.heads, s.block_size, s.table_size})
    if (n > kMaxSize || s.block_size * s.table_size > kMaxSize)
      fail(ErrorKind::unsupported, kName, ": sizes above 2^30 are not supported, got batch ",
           s.batch, ", queries ", s.queries, ", heads ", s.heads, ", block_size ", s.block_size,
           " and tables of ", s.table_size, " blocks");
  return s;
}

// The arrays of requests: tables, lengths and where ragged queries begin.
void check_requests(const TensorView& q, const Options& o) {
  if (!o.block_tables || !o.lengths)
    fail(ErrorKind::value, kName,
         ": give block_tables and lengths: which blocks a request has, and "
         "how many keys are in use");
  op::check_dtype(kName, "lengths", *o.lengths, {DType::int32, DType::int64});
  op::check_dtype(kName, "block_tables", *o.block_tables, {DType::int32, DType::int64});
  SymbolicSize batch("batch"), max_blocks("max_blocks");
  if (!o.cu_seqlens_q) batch.set_value(q.shape(0));
  TensorMatcher({batch}).with_any_strides().verify(*o.lengths, kName, "lengths");
  TensorMatcher({batch, max_blocks})
      .with_any_strides()
      .verify(*o.block_tables, kName, "block_tables");
  if (!o.cu_seqlens_q) return;
  op::check_dtype(kName, "cu_seqlens_q", *o.cu_seqlens_q, {DType::int32, DType::int64});
  op::check_like(kName, "cu_seqlens_q", *o.cu_seqlens_q, o.cu_seqlens_q->dtype(),
                 {batch.unwrap() + 1});
}

// bool [batch, queries, queries], or a bit a key: int32 [tokens, words].
void check_mask(const Sizes& s, const Options& o) {
  if (!o.mask) return;
  const TensorView& mask = *o.mask;
  op::check_dtype(kName, "mask", mask, {DType::bool_, DType::int32});
  if (mask.dtype() == DType::bool_) {
    if (o.cu_seqlens_q)
      fail(ErrorKind::value, kName,
           ": mask: with cu_seqlens_q give packed bits, int32 (tokens, words), as requests have "
           "different numbers of queries; got bool of shape ",
           mask.shape());
    TensorMatcher({s.batch, s.queries, s.queries}).with_any_strides().verify(mask, kName, "mask");
    return;
  }
  TensorMatcher({s.tokens, kAnySize}).with_any_strides().verify(mask, kName, "mask");
  const int64_t words = mask.shape(1), needed = std::max<int64_t>(1, (s.queries + 31) / 32);
  if (words < needed || words > kMaxSize / 32)
    fail(ErrorKind::value, kName, ": mask: a bit for each query of a request needs ", needed,
         " words of 32 bits a token, and there may be 2^25, got shape ", mask.shape());
}

Sizes check_inputs(const TensorView& q, const TensorView& k_cache, const Options& o) {
  op::check_dtype(kName, "q", q, {DType::float32, DType::float16, DType::bfloat16});
  check_rank(q, o);
  check_requests(q, o);
  check_caches(q, k_cache, o);
  op::check_scores(kName, o.scale, o.softcap, o.window);
  const Sizes s = sizes_of(q, k_cache, o);
  if (o.sinks) TensorMatcher({s.heads}).with_dtype(DType::float32).verify(*o.sinks, kName, "sinks");
  if (const auto& each = o.causal.tensor)
    TensorMatcher({s.batch}).with_dtype(DType::bool_).verify(*each, kName, "causal");
  check_mask(s, o);
  return s;
}

Dims out_shape(const TensorView& q, const Sizes& s) {
  Dims shape = q.shape();
  shape[q.rank() - 1] = s.v_dim;
  return shape;
}
Dims lse_shape(const TensorView& q) {
  return Dims(std::span<const int64_t>(q.shape()).first(size_t(q.rank() - 1)));
}

Strides strides_of(const TensorView& t, bool ragged) {
  const int d = t.rank() - 1;
  return {.batch = ragged ? 0 : t.stride(0),
          .row = ragged   ? t.stride(0)
                 : d == 3 ? t.stride(1)
                          : 0,
          .head = t.stride(d - 1),
          .step = t.stride(d)};
}

TreeMask tree_of(const Sizes& s, const std::optional<TensorView>& mask, bool ragged) {
  if (!mask) return {};
  if (mask->dtype() == DType::bool_)
    return {mask->data(), mask->stride(0), mask->stride(1), mask->stride(2), 0};
  const int64_t row = mask->stride(0);
  return {mask->data(), ragged ? 0 : s.queries * row, row, mask->stride(1),
          int32_t(mask->shape(1))};
}

Cache cache_of(const TensorView& t, const std::optional<TensorView>& scale, Axes axes) {
  Cache c{.data = t.data(),
          .scale = data_of<const float>(scale),
          .block = t.stride(0),
          .row = t.stride(axes.row),
          .head = t.stride(axes.head),
          .step = t.stride(3)};
  if (scale && scale->rank() == 3) {
    c.scale_block = scale->stride(0);
    c.scale_row = scale->stride(axes.row);
    c.scale_head = scale->stride(axes.head);
  } else if (scale && scale->size() > 1) {
    c.scale_head = scale->stride(0);
  }
  return c;
}

}  // namespace

std::vector<op::OutputSpec> infer(std::span<const TensorView> in, const Options& o) {
  const Sizes s = check_inputs(in[0], heads_of(in[1], o.layout), o);
  std::vector<op::OutputSpec> specs{{"out", in[0].dtype(), out_shape(in[0], s)}};
  if (o.return_lse) specs.push_back({"lse", DType::float32, lse_shape(in[0])});
  return specs;
}

namespace {

void check_outputs(const TensorView& q, const Sizes& s, const TensorView& out, const Options& o) {
  op::check_like(kName, "out", out, q.dtype(), out_shape(q, s));
  if (!o.lse) return;
  op::check_like(kName, "lse", *o.lse, DType::float32, lse_shape(q));
  if (!o.lse->is_contiguous())
    fail(ErrorKind::value, kName, ": lse must be contiguous, got strides ", o.lse->strides());
}

}  // namespace

Problem check(const op::Call<Options>& call) {
  const Options& o = call.options;
  const TensorView &q = call.in(0), &out = call.out();
  const TensorView k_cache = heads_of(call.in(1), o.layout);
  const Sizes s = check_inputs(q, k_cache, o);
  check_outputs(q, s, out, o);
  const Axes axes = axes_of(o.layout);
  const bool ragged = o.cu_seqlens_q.has_value();
  const bool causal = o.causal.value && !o.causal.tensor;
  const auto is_wide = [](const std::optional<TensorView>& t) {
    return int32_t(t && t->dtype() == DType::int64);
  };
  const Cache k = cache_of(k_cache, o.k_scale, axes);
  return {{.q = q.data(),
           .q_pe = data_of(o.q_pe),
           .out = out.writable_data(),
           .lse = data_of<float>(o.lse),
           .sinks = data_of<const float>(o.sinks),
           .tables = o.block_tables->data(),
           .lengths = o.lengths->data(),
           .starts = ragged ? o.cu_seqlens_q->data() : nullptr,
           .causal_each = data_of<const uint8_t>(o.causal.tensor),
           .tree = tree_of(s, o.mask, ragged),
           .q_strides = strides_of(q, ragged),
           .q_pe_strides = o.q_pe ? strides_of(*o.q_pe, ragged) : Strides{},
           .out_strides = strides_of(out, ragged),
           .k = k,
           .v = o.v_cache ? cache_of(*o.v_cache, o.v_scale, axes) : k,
           .k_pe = o.k_pe ? cache_of(*o.k_pe, {}, axes) : Cache{},
           .table_row = o.block_tables->stride(0),
           .table_step = o.block_tables->stride(1),
           .lengths_step = o.lengths->stride(0),
           .starts_step = ragged ? o.cu_seqlens_q->stride(0) : 0,
           .tokens = s.tokens,
           .blocks = s.blocks,
           .batch = int32_t(s.batch),
           .queries = int32_t(s.queries),
           .heads = int32_t(s.heads),
           .group = int32_t(s.heads ? s.heads / s.heads_k : 1),
           .head_dim = int32_t(s.head_dim),
           .v_dim = int32_t(s.v_dim),
           .q_dim = int32_t(dim_of(q)),
           .k_dim = int32_t(s.head_dim - dim_of(o.k_pe)),
           .has_rows = has_rows(k_cache),
           .block_size = int32_t(s.block_size),
           .table_size = int32_t(s.table_size),
           .wide_tables = is_wide(o.block_tables),
           .wide_lengths = is_wide(o.lengths),
           .wide_starts = is_wide(o.cu_seqlens_q),
           .window = o.window ? window_of((*o.window)[0], (*o.window)[1], causal)
                              : window_of(-1, -1, causal),
           .scale = o.scale.value_or(1.0f / std::sqrt(float(s.head_dim))),
           .softcap = o.softcap.value_or(0.0f)},
          q.dtype(),
          k_cache.dtype(),
          !o.v_cache};
}

}  // namespace tensorcraft::kernel::paged_attention
