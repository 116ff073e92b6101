// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/append_kv/arguments.hpp"

#include "tensorcraft/device/latent_row.h"
#include "tensorcraft/op/checks/check.hpp"
#include "tensorcraft/op/checks/latent_rows.hpp"

namespace tensorcraft::kernel::append_kv {
namespace {

constexpr int64_t kMaxSize = int64_t(1) << 30;  // kernels count heads and rows in 32 bits

// The inputs of a call by their names.
struct Inputs {
  const TensorView &k_cache, &v_cache, &k, &v, &slots;  // v_cache and v may be absent

  explicit Inputs(std::span<const TensorView> in)
      : k_cache(in[0]), v_cache(in[1]), k(in[2]), v(in[3]), slots(in[4]) {}
  bool has_values() const { return !op::is_absent(v); }
};

int64_t dim_of(const TensorView& t) { return t.shape(t.rank() - 1); }
// Elements of a row of k_cache.
int64_t row_dim(const TensorView& k, const Options& o) {
  return dim_of(k) + (o.k_pe ? dim_of(*o.k_pe) : 0);
}

// A cache as [blocks, block_size, heads_k, head_dim].
TensorView by_rows(const TensorView& cache, CacheLayout layout) {
  if (cache.dtype() == DType::uint8) return op::latent_rows(kName, "k_cache", cache, layout);
  return layout == CacheLayout::nhd ? cache : cache.transpose(1, 2);
}

bool is_number(const TensorView& scale) { return scale.size() == 1 && scale.rank() <= 1; }

void check_cache(std::string_view name, const TensorView& cache, const TensorView& tokens,
                 const std::optional<TensorView>& scale) {
  const DType dtype = tokens.dtype();
  op::check_dtype(kName, name, cache,
                  {dtype, DType::float8_e4m3fn, DType::float8_e5m2, DType::int8, DType::uint8});
  if (scale) {
    const std::string_view name_of_it = name == "k_cache" ? "k_scale" : "v_scale";
    const Dims each(std::span<const int64_t>(tokens.shape()).first(size_t(tokens.rank() - 1)));
    const Dims heads{each.back()};
    op::check_dtype(kName, name_of_it, *scale, {DType::float32});
    if (!is_number(*scale) && scale->shape() != heads && scale->shape() != each)
      fail(ErrorKind::value, kName, ": ", name_of_it, ": expected a number, or shape ", heads,
           ", one for each head, or ", each, ", that of ", name[0], " without head_dim, got ",
           scale->shape());
  }
  if (cache.dtype() == DType::int8 && !scale)
    fail(ErrorKind::value, kName, ": ", name, ": int8 codes need ", name[0],
         "_scale, by which they are multiplied; give a number, or one for each head, or one for "
         "each token and head");
}

// Values have a cache, or there are none: then rows of k_cache are latent ones.
void check_values(const Inputs& in, const Options& o) {
  const bool has_cache = !op::is_absent(in.v_cache);
  if (has_cache != in.has_values())
    fail(ErrorKind::value, kName, ": ", has_cache ? "v_cache" : "v", " is given, but no ",
         has_cache ? "v" : "v_cache",
         "; give both, or neither: then k_cache is a latent cache and k its rows");
  if (has_cache && o.k_pe)
    fail(ErrorKind::value, kName,
         ": k_pe is a part of rows of a latent cache, and v is given; leave v_cache and v out, or "
         "k_pe");
  if (!has_cache && (o.v_scale || o.v_cache_out))
    fail(ErrorKind::value, kName, ": ", o.v_scale ? "v_scale" : "v_cache_out",
         " is for v_cache, which is not given; leave it out");
}

// k, and k_pe behind it.
void check_keys(const TensorView& k, const Options& o) {
  op::check_dtype(kName, "k", k, {DType::float32, DType::float16, DType::bfloat16});
  if (k.rank() < 2)
    fail(ErrorKind::value, kName, ": k: expected (..., heads_k, head_dim), got shape ", k.shape());
  if (!o.k_pe) return;
  Dims shape = k.shape();
  if (o.k_pe->rank() == k.rank()) shape[k.rank() - 1] = dim_of(*o.k_pe);
  op::check_like(kName, "k_pe", *o.k_pe, k.dtype(), shape);
}

// A cache of rows of 656 bytes.
void check_latent_rows(const Inputs& in, const Options& o) {
  if (in.has_values())
    fail(ErrorKind::value, kName,
         ": k_cache: uint8 rows have latent values and no v; leave "
         "v_cache and v out, or give caches of the dtype of k or of codes");
  op::latent_rows(kName, "k_cache", in.k_cache, o.layout);
  const int64_t heads = in.k.shape(in.k.rank() - 2), dim = row_dim(in.k, o);
  if (heads != 1 || dim != LatentRow::kDim || (o.k_pe && dim_of(in.k) != LatentRow::kLatent))
    fail(ErrorKind::value, kName, ": k: rows of ", LatentRow::kBytes, " bytes have one head of ",
         LatentRow::kDim, " elements, or of ", LatentRow::kLatent, " beside a k_pe of ",
         LatentRow::kRope, ", got shape ", in.k.shape(), o.k_pe ? " and k_pe of " : "",
         o.k_pe ? join(o.k_pe->shape()) : "");
  if (o.k_scale)
    fail(ErrorKind::value, kName, ": k_scale: rows of ", LatentRow::kBytes,
         " bytes have scales of their own, which are computed; leave it out");
  if (o.cos && o.cos->rank() == 2 && 2 * o.cos->shape(1) > LatentRow::kRope)
    fail(ErrorKind::value, kName, ": cos: its rows turn ", o.cos->shape(1), " pairs, and a row of ",
         LatentRow::kBytes, " bytes keeps ", LatentRow::kRope,
         " elements to be rotated; give at most ", LatentRow::kRope / 2, " columns");
}

// The shapes of caches, k and v; both caches have the same blocks.
void check_shapes(const Inputs& in, const Options& o) {
  const auto& [k_cache, v_cache, k, v, slots] = in;
  check_values(in, o);
  check_keys(k, o);
  op::check_dtype(kName, "slots", slots, {DType::int32, DType::int64});
  const Dims tokens(std::span<const int64_t>(k.shape()).first(size_t(k.rank() - 2)));
  op::check_like(kName, "slots", slots, slots.dtype(), tokens);
  if (in.has_values()) {
    Dims of_v = k.shape();
    if (v.rank() == k.rank()) of_v[k.rank() - 1] = dim_of(v);
    op::check_like(kName, "v", v, k.dtype(), of_v);
  }

  const bool nhd = o.layout == CacheLayout::nhd;
  SymbolicSize blocks("blocks"), block_size("block_size"), heads_k("heads_k");
  heads_k.set_value(k.shape(k.rank() - 2));
  const auto match = [&](const TensorView& cache, std::string_view name, int64_t dim) {
    SymbolicSize head_dim("head_dim");
    head_dim.set_value(dim);
    TensorMatcher({blocks, nhd ? block_size : heads_k, nhd ? heads_k : block_size, head_dim})
        .with_any_strides()
        .verify(cache, kName, name);
  };
  if (k_cache.dtype() == DType::uint8) return check_latent_rows(in, o);
  match(k_cache, "k_cache", row_dim(k, o));
  check_cache("k_cache", k_cache, k, o.k_scale);
  if (in.has_values()) {
    match(v_cache, "v_cache", dim_of(v));
    op::check_dtype(kName, "v_cache", v_cache, {k_cache.dtype()});
    check_cache("v_cache", v_cache, v, o.v_scale);
  }
}

void check_sizes(const Inputs& in, const Options& o) {
  const auto& [k_cache, v_cache, k, v, slots] = in;
  for (const int64_t n : {k_cache.shape(1), k_cache.shape(2), row_dim(k, o), dim_of(v)})
    if (n > kMaxSize)
      fail(ErrorKind::unsupported, kName, ": sizes above 2^30 are not supported, got ", n);
  if (slots.size() > 0 && k_cache.size() == 0)
    fail(ErrorKind::value, kName, ": k_cache: shape ", k_cache.shape(), " has no place for ",
         slots.size(), " tokens");
}

void check_q(const TensorView& k, const Options& o) {
  if (!o.q) {
    if (o.q_weight)
      fail(ErrorKind::value, kName,
           ": q_weight is for q, which is not given; give q or leave "
           "q_weight out");
    return;
  }
  Dims shape = k.shape();
  if (o.q->rank() == k.rank()) shape[k.rank() - 2] = o.q->shape(k.rank() - 2);
  shape[k.rank() - 1] = row_dim(k, o);
  op::check_like(kName, "q", *o.q, k.dtype(), shape);
  if (!o.cos && !o.q_weight)
    fail(ErrorKind::value, kName,
         ": q is given, but neither cos, sin and positions nor q_weight, so nothing would change "
         "it; leave q out");
}

void check_parameters(const TensorView& k, const Options& o) {
  const int64_t dim = o.k_pe ? dim_of(*o.k_pe) : dim_of(k);  // of what may rotate
  const bool rotates = o.cos || o.sin || o.positions;
  if (rotates && !(o.cos && o.sin && o.positions))
    fail(ErrorKind::value, kName, ": give cos, sin and positions, or none of them; got ",
         o.cos ? "cos " : "", o.sin ? "sin " : "", o.positions ? "positions" : "");
  if (!(o.eps >= 0)) fail(ErrorKind::value, kName, ": eps must be at least 0, got ", o.eps);
  SymbolicDType dtype({k.dtype()});
  if (k.dtype() != DType::float32) dtype.set_options({k.dtype(), DType::float32});
  if (rotates) {
    SymbolicSize max_seq("max_seq"), half("rotated/2");
    TensorMatcher({max_seq, half})
        .with_any_strides()
        .with_dtype(dtype)
        .verify(*o.cos, kName, "cos");
    op::check_like(kName, "sin", *o.sin, o.cos->dtype(), o.cos->shape());
    if (2 * half.unwrap() > dim)
      fail(ErrorKind::value, kName, ": cos: its rows turn ", half.unwrap(), " pairs, and ",
           o.k_pe ? "k_pe" : "a head", " has ", dim, " elements; give at most ", dim / 2,
           " columns");
    op::check_dtype(kName, "positions", *o.positions, {DType::int32, DType::int64});
    const Dims tokens(std::span<const int64_t>(k.shape()).first(size_t(k.rank() - 2)));
    op::check_like(kName, "positions", *o.positions, o.positions->dtype(), tokens);
  }
  const auto check_weight = [&](std::string_view name, const std::optional<TensorView>& weight,
                                int64_t size) {
    SymbolicSize head_dim("head_dim");
    head_dim.set_value(size);
    if (weight) TensorMatcher({head_dim}).with_dtype(dtype).verify(*weight, kName, name);
  };
  check_weight("q_weight", o.q_weight, row_dim(k, o));
  check_weight("k_weight", o.k_weight, dim_of(k));
}

void check_inputs(const Inputs& in, const Options& o) {
  check_shapes(in, o);
  check_sizes(in, o);
  check_q(in.k, o);
  check_parameters(in.k, o);
}

// Tokens are written in any order, so what is written may only be what it is a new form of.
void check_written(const Inputs& in, const TensorView& k_cache_out, const Options& o) {
  const auto check_apart = [](std::string_view out, const TensorView& written, auto... others) {
    (op::check_apart(kName, out, written, others.first, *others.second), ...);
  };
  const std::pair k_cache("k_cache", &in.k_cache), v_cache("v_cache", &in.v_cache), k("k", &in.k),
      v("v", &in.v), slots("slots", &in.slots);
  check_apart("k_cache_out", k_cache_out, v_cache, k, v, slots);
  if (o.v_cache_out) check_apart("v_cache_out", *o.v_cache_out, k_cache, k, v, slots);
  if (o.q_out) check_apart("q_out", *o.q_out, k, v, slots);
  if (!o.k_pe) return;
  check_apart("k_cache_out", k_cache_out, std::pair("k_pe", &*o.k_pe));
  if (o.q_out) check_apart("q_out", *o.q_out, std::pair("k_pe", &*o.k_pe));
}

}  // namespace

std::vector<op::OutputSpec> infer(std::span<const TensorView> in, const Options& o) {
  const Inputs inputs(in);
  check_inputs(inputs, o);
  std::vector<op::OutputSpec> specs{
      {"k_cache_out", inputs.k_cache.dtype(), inputs.k_cache.shape(), 0}};
  if (inputs.has_values())
    specs.push_back({"v_cache_out", inputs.v_cache.dtype(), inputs.v_cache.shape(), 1});
  if (o.q) specs.push_back({"q_out", o.q->dtype(), o.q->shape()});
  return specs;
}

Problem check(const op::Call<Options>& call) {
  Options o = call.options;
  const Inputs in(call.inputs);
  check_inputs(in, o);
  for (std::optional<TensorView>* scale : {&o.k_scale, &o.v_scale})
    if (*scale && is_number(**scale)) *scale = (*scale)->at((*scale)->data(), {}, {});
  if (in.has_values() && !o.v_cache_out) o.v_cache_out = in.v_cache;
  if (o.q && !o.q_out) o.q_out = o.q;
  op::check_like(kName, "k_cache_out", call.out(), in.k_cache.dtype(), in.k_cache.shape());
  if (o.v_cache_out)
    op::check_like(kName, "v_cache_out", *o.v_cache_out, in.v_cache.dtype(), in.v_cache.shape());
  if (o.q_out && !o.q) fail(ErrorKind::value, kName, ": q_out is q prepared; give both");
  if (o.q) op::check_like(kName, "q_out", *o.q_out, o.q->dtype(), o.q->shape());
  check_written(in, call.out(), o);
  Problem problem{.k_cache_out = by_rows(call.out(), o.layout),
                  .k_cache = by_rows(in.k_cache, o.layout),
                  .k = in.k,
                  .slots = in.slots,
                  .k_pe = o.k_pe,
                  .k_scale = o.k_scale,
                  .v_scale = o.v_scale,
                  .q = o.q,
                  .q_out = o.q_out,
                  .cos = o.cos,
                  .sin = o.sin,
                  .positions = o.positions,
                  .q_weight = o.q_weight,
                  .k_weight = o.k_weight,
                  .eps = o.eps};
  if (in.has_values()) {
    problem.v_cache_out = by_rows(*o.v_cache_out, o.layout);
    problem.v_cache = by_rows(in.v_cache, o.layout);
    problem.v = in.v;
  }
  return problem;
}

}  // namespace tensorcraft::kernel::append_kv
