// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/transfer_hicache/transfer_hicache.hpp"

#include "tensorcraft/op/checks/check.hpp"
#include "tensorcraft/op/launch/copy_step.hpp"
#include "tensorcraft/op/definition.hpp"
#include "tensorcraft/op/checks/moved_as.hpp"
#include "tensorcraft/op/launch/shared_address.hpp"
#include "tensorcraft/ops/registry.hpp"
#include "tensorcraft/ops/transfer_hicache/plan.h"
#include "tensorcraft/ops/transfer_hicache/problem.hpp"

#include <limits>

namespace tensorcraft {
namespace kernel::transfer_hicache {
namespace {

using OneLayer = TransferHicacheOneLayerOptions;
using AllLayer = TransferHicacheAllLayerOptions;
constexpr std::string_view kFolder = "transfer_hicache";
constexpr std::string_view kOneLayer = "transfer_hicache_one_layer";
constexpr std::string_view kAllLayer = "transfer_hicache_all_layer";
constexpr ConfigField kFields[] = {{"threads"}, {"lanes"}, {"package"}};
constexpr op::ParameterDoc kDstIndices =
    op::takes(op::kIndexTypes, "% (n,): where each element goes");
constexpr op::ParameterDoc kSrcIndices = op::takes(op::kIndexTypes, "% (n,): which token it is");
const op::Immortal<op::Parameter> kOneInputs = {
    op::written("k_dst", "keys"),    op::written("v_dst", "values"),    {"idx_dst", kDstIndices},
    {"k_src", "keys that are read"}, {"v_src", "values that are read"}, {"idx_src", kSrcIndices}};
op::Parameter or_table(op::Parameter caches) {
  caches.addresses = true;
  return caches;
}
const op::Immortal<op::Parameter> kAllInputs = {
    or_table(op::written("k_ptr_dst", "keys of all layers, or a table of them")),
    or_table(op::written("v_ptr_dst", "values likewise")),
    {"idx_dst", kDstIndices},
    or_table({"k_ptr_src", "keys of all layers that are read, or a table of them"}),
    or_table({"v_ptr_src", "values likewise"}),
    {"idx_src", kSrcIndices}};
const jit::Rung& kCopy = op::make_rung(kFolder, "copy", "copy.cuh", op::kThreads, "CopyConfig");

op::RungCall<Params, Given> rung_call(const Problem& q) {
  const int unit = unit_of(q.params);
  return {q.params,
          {.unit = unit, .unroll = q.unroll, .block_quota = q.block_quota},
          {op::moved_as(std::min(unit, 8))}};
}

void complete(op::Plan& plan, std::string_view, const Problem& q, const DeviceInfo&) {
  op::add_copy(plan, kCopy, q.v_dst_out, q.v_dst);
  op::add_copy(plan, kCopy, q.k_dst_out, q.k_dst);
}

const auto kLadder = op::make_ladder<rung_call, kRungs, complete>(kFolder, kFields);

const op::HostVariant<Problem> kHost[] = {
    {.name = "cpu", .idea = "an element is one copy, elements over all cores", .run = cpu},
    {.name = "reference", .idea = "obvious loops over bytes", .run = reference},
};

// All four caches share these sizes, and both of a side share Strides. Names are those of messages.
struct Shared {
  SymbolicSize element{"head dimension"}, layers{"num_layers"}, indices{"indices length"};
  SymbolicDType dtype;
};
struct Strides {
  Strides(const char* layer, const char* page, const char* token)
      : layer(layer), page(page), token(token) {}
  SymbolicSize layer, page, token, places{"num_tokens"}, page_size{"page_size"};
};
Strides dst_strides() { return {"dst layer stride", "dst page stride", "dst kv stride"}; }
Strides src_strides() { return {"src layer stride", "src page stride", "src kv stride"}; }

// The cache with all axes from `first` on as one.
TensorView by_elements(std::string_view op, std::string_view name, const TensorView& t, int first) {
  if (t.rank() <= first) return t;  // the matcher says what is missing
  Dims shape, strides;
  int64_t count = 1;
  for (int i = t.rank() - 1; i >= first; --i) {
    if (t.shape(i) != 1 && t.stride(i) != count && t.size() > 0)
      fail(ErrorKind::value, op, ": ", name, ": the elements of ", t,
           " have gaps: Tensor is not contiguous as expected; copy the cache first");
    count *= t.shape(i);
  }
  for (int i = 0; i < first; ++i) {
    shape.push_back(t.shape(i));
    strides.push_back(t.stride(i));
  }
  shape.push_back(count);
  strides.push_back(1);
  return t.at(t.data(), shape, strides);
}

// Matches one cache that is a tensor; `layers`: it has an axis of them.
void match_cache(std::string_view op, std::string_view name, const TensorView& cache,
                 Shared& shared, Strides& s, HicacheLayout layout, bool layers) {
  const TensorView t =
      by_elements(op, name, cache, !layers ? 1 : 2 + (layout == HicacheLayout::page_first_direct));
  const auto match = [&](std::initializer_list<SizeRef> shape,
                         std::initializer_list<SizeRef> strides) {
    TensorMatcher(shape).with_strides(strides).with_dtype(shared.dtype).verify(t, op, name);
  };
  if (!layers) return match({s.places, shared.element}, {s.token, 1});
  switch (layout) {
    case HicacheLayout::layer_first:
      return match({shared.layers, s.places, shared.element}, {s.layer, s.token, 1});
    case HicacheLayout::page_first:
      return match({s.places, shared.layers, shared.element}, {s.token, s.layer, 1});
    case HicacheLayout::page_first_direct:
      return match({s.places, shared.layers, s.page_size, shared.element},
                   {s.page, s.layer, s.token, 1});
  }
}

int64_t value_or(const SymbolicSize& symbol, int64_t value) {
  return symbol.has_value() ? symbol.unwrap() : value;
}

// The side of two tensors that match; its indices are not set.
Side side_of(const TensorView& k, const TensorView& v, const Strides& s, int64_t dtype_size) {
  Side side{.k = static_cast<unsigned char*>(op::shared_address(k)),
            .v = static_cast<unsigned char*>(op::shared_address(v)),
            .layer = value_or(s.layer, 0) * dtype_size,
            .page = value_or(s.token, 0) * dtype_size,
            .places = s.places.unwrap(),
            .page_size = 1};
  if (!s.page_size.has_value()) return side;
  const int64_t size = s.page_size.unwrap();
  if (size > std::numeric_limits<int32_t>::max())
    fail(ErrorKind::unsupported, kAllLayer,
         ": pages of 2^31 tokens or more are not supported, got ", size);
  side.token = side.page;
  side.page = value_or(s.page, 0) * dtype_size;
  side.page_size = int32_t(std::max<int64_t>(size, 1));
  side.places *= size;
  return side;
}

bool is_table(const TensorView& t) { return t.rank() == 1 && t.dtype() == DType::int64; }

Side side_of_tables(const TensorView& k, const TensorView& v, int64_t stride) {
  return {.k_layers = k.data_as<const int64_t>(),
          .v_layers = v.data_as<const int64_t>(),
          .page = stride,
          .places = std::numeric_limits<int64_t>::max(),
          .page_size = 1};
}

void set_indices(std::string_view op, std::string_view name, Side& side, const TensorView& idx,
                 Shared& shared) {
  TensorMatcher({shared.indices})
      .with_any_strides()
      .with_dtype({DType::int32, DType::int64})
      .verify(idx, op, name);
  side.indices = idx.data();
  side.index_step = idx.stride(0);
  side.wide = idx.dtype() == DType::int64;
}

template <class Options>
void check_launch(std::string_view op, const Options& o) {
  if (o.unroll && *o.unroll != 1 && *o.unroll != 2 && *o.unroll != 4)
    fail(ErrorKind::value, op, ": unroll must be 1, 2 or 4, got ", *o.unroll,
         "; leave it out for what suits the elements");
  if (o.block_quota && (*o.block_quota < 1 || *o.block_quota > op::kMaxBlocks))
    fail(ErrorKind::value, op, ": block_quota must be in [1, 2^31), got ", *o.block_quota,
         "; leave it out for ", kDefaultQuota);
}

void check_element(std::string_view op, std::string_view option, std::optional<int64_t> given,
                   int64_t have) {
  if (given && *given != have)
    fail(ErrorKind::value, op, ": HicacheKernel: cache dimension mismatch. ", option, " is ",
         *given, ", and the caches have ", have, "; leave it out");
}

// The tensors of a call by their names.
struct Arguments {
  const TensorView &k_dst, &v_dst, &idx_dst, &k_src, &v_src, &idx_src;
  explicit Arguments(std::span<const TensorView> in)
      : k_dst(in[0]), v_dst(in[1]), idx_dst(in[2]), k_src(in[3]), v_src(in[4]), idx_src(in[5]) {}
};

// The whole check of one layer.
Params checked(const Arguments& a, const OneLayer& o) {
  Shared shared;
  Strides dst = dst_strides(), src = src_strides();
  const auto match = [&](std::string_view name, const TensorView& t, Strides& s) {
    match_cache(kOneLayer, name, t, shared, s, HicacheLayout::layer_first, false);
  };
  match("k_dst", a.k_dst, dst);
  match("v_dst", a.v_dst, dst);
  match("k_src", a.k_src, src);
  match("v_src", a.v_src, src);
  check_launch(kOneLayer, o);
  check_element(kOneLayer, "element_dim", o.element_dim, shared.element.unwrap());
  const auto bytes = int64_t(dtype_bytes(a.k_dst.dtype()));
  Params p{.dst = side_of(a.k_dst, a.v_dst, dst, bytes),
           .src = side_of(a.k_src, a.v_src, src, bytes),
           .layers = 1,
           .element_bytes = shared.element.unwrap() * bytes};
  set_indices(kOneLayer, "idx_dst", p.dst, a.idx_dst, shared);
  set_indices(kOneLayer, "idx_src", p.src, a.idx_src, shared);
  p.count = shared.indices.unwrap();
  return p;
}

// Describes one side of all layers of a call.
struct SideOptions {
  std::string_view k_name, v_name, stride_name, layout_name;
  std::optional<int64_t> stride;
  HicacheLayout layout;
};
void match_side(const TensorView& k, const TensorView& v, const SideOptions& o, Shared& shared,
                Strides& s) {
  if (is_table(k) != is_table(v))
    fail(ErrorKind::value, kAllLayer, ": ", o.k_name, " and ", o.v_name,
         " must both be tables of addresses, int64 (num_layers), or both tensors, got ", k, " and ",
         v);
  if (!is_table(k)) {
    if (o.stride)
      fail(ErrorKind::value, kAllLayer, ": ", o.stride_name, " is for tables of addresses, and ",
           o.k_name, " is a tensor with strides of its own; leave it out");
    match_cache(kAllLayer, o.k_name, k, shared, s, o.layout, true);
    match_cache(kAllLayer, o.v_name, v, shared, s, o.layout, true);
    return;
  }
  if (o.layout != HicacheLayout::layer_first)
    fail(ErrorKind::value, kAllLayer, ": ", o.layout_name, " is for tensors, and ", o.k_name,
         " is a table of addresses, which says where each layer begins; leave it out");
  TensorMatcher({shared.layers}).verify(k, kAllLayer, o.k_name).verify(v, kAllLayer, o.v_name);
}

int64_t element_bytes(const Arguments& a, const AllLayer& o, const Shared& shared) {
  if (!shared.element.has_value()) {
    if (!o.element_size || *o.element_size < 0)
      fail(ErrorKind::value, kAllLayer,
           ": element_size is needed where tables give all layers: the "
           "bytes of a token in one layer of a cache");
    return *o.element_size;
  }
  const TensorView& tensor = is_table(a.k_dst) ? a.k_src : a.k_dst;
  const int64_t bytes = shared.element.unwrap() * int64_t(dtype_bytes(tensor.dtype()));
  check_element(kAllLayer, "element_size", o.element_size, bytes);
  return bytes;
}

// The whole check of all layers.
Params checked(const Arguments& a, const AllLayer& o) {
  Shared shared;
  Strides dst = dst_strides(), src = src_strides();
  match_side(
      a.k_dst, a.v_dst,
      {"k_ptr_dst", "v_ptr_dst", "kv_dst_stride", "dst_layout", o.kv_dst_stride, o.dst_layout},
      shared, dst);
  match_side(
      a.k_src, a.v_src,
      {"k_ptr_src", "v_ptr_src", "kv_src_stride", "src_layout", o.kv_src_stride, o.src_layout},
      shared, src);
  check_launch(kAllLayer, o);
  Params p{.element_bytes = element_bytes(a, o, shared)};
  const auto side = [&](const TensorView& k, const TensorView& v, const Strides& s,
                        const std::optional<int64_t>& stride) {
    if (is_table(k)) return side_of_tables(k, v, stride.value_or(p.element_bytes));
    return side_of(k, v, s, int64_t(dtype_bytes(k.dtype())));
  };
  p.dst = side(a.k_dst, a.v_dst, dst, o.kv_dst_stride);
  p.src = side(a.k_src, a.v_src, src, o.kv_src_stride);
  set_indices(kAllLayer, "idx_dst", p.dst, a.idx_dst, shared);
  set_indices(kAllLayer, "idx_src", p.src, a.idx_src, shared);
  p.count = shared.indices.unwrap();
  p.layers = shared.layers.unwrap();
  return p;
}

template <class Options>
std::vector<op::OutputSpec> infer(std::span<const TensorView> in, const Options& o) {
  checked(Arguments(in), o);
  return {{"k_dst_out", in[0].dtype(), in[0].shape(), 0},
          {"v_dst_out", in[1].dtype(), in[1].shape(), 1}};
}

// A layer that a table points to cannot move elsewhere.
void check_table_stays(std::string_view name, const TensorView& out, const TensorView& table) {
  if (out.data() && out.data() != table.data())
    fail(ErrorKind::value, kAllLayer, ": ", name,
         " must be the table itself, through which layers are written; leave out away");
}

// Keys and values have places of their own. A cache may be moved within itself.
template <class Options>
void check_outputs_apart(std::string_view op, const op::Call<Options>& call, const TensorView& k,
                         const TensorView& v) {
  const auto& inputs = op == kOneLayer ? kOneInputs : kAllInputs;
  op::check_apart(op, "k_dst_out", k, inputs[1].name, call.inputs[1]);
  op::check_apart(op, "v_dst_out", v, inputs[0].name, call.inputs[0]);
}

template <class Options>
Problem check_call(std::string_view op, const op::Call<Options>& call) {
  const Options& o = call.options;
  const TensorView &k_dst = call.in(0), &v_dst = call.in(1);
  op::check_like(op, "k_dst_out", call.out(), k_dst.dtype(), k_dst.shape());
  if (o.v_dst_out) op::check_like(op, "v_dst_out", *o.v_dst_out, v_dst.dtype(), v_dst.shape());
  // Without memory, in a call that is only asked about, an output is the cache itself.
  const TensorView k_out = call.out().data() ? call.out() : k_dst;
  const TensorView v_out = o.v_dst_out && o.v_dst_out->data() ? *o.v_dst_out : v_dst;
  if (k_out.data() != k_dst.data() || v_out.data() != v_dst.data())
    checked(Arguments(call.inputs), o);
  if (!o.v_dst_out && k_out.data() != k_dst.data())
    fail(ErrorKind::value, op,
         ": v_dst_out must be given if k_dst_out has memory of its own; give both or neither");
  check_outputs_apart(op, call, k_out, v_out);
  if (op == kAllLayer && is_table(k_dst)) {
    check_table_stays("k_dst_out", k_out, k_dst);
    check_table_stays("v_dst_out", v_out, v_dst);
  }
  std::vector<TensorView> written(call.inputs.begin(), call.inputs.end());
  written[0] = k_out;
  written[1] = v_out;
  const Params p = checked(Arguments(written), o);
  return {op,
          k_out,
          v_out,
          k_dst,
          v_dst,
          p,
          int(o.unroll.value_or(default_unroll(p.element_bytes))),
          o.block_quota.value_or(kDefaultQuota)};
}
Problem check_one_layer(const op::Call<OneLayer>& call) { return check_call(kOneLayer, call); }
Problem check_all_layer(const op::Call<AllLayer>& call) { return check_call(kAllLayer, call); }

// Keys and values of elements are read and written once.
op::Cost cost(const Problem& q) {
  const Params& p = q.params;
  const double elements = double(p.count) * double(p.layers);
  double bytes = 4 * elements * double(p.element_bytes) +
                 double(p.count) * (4.0 * (1 + p.dst.wide) + 4.0 * (1 + p.src.wide));
  if (q.k_dst_out.data() != q.k_dst.data()) bytes += 2 * double(q.k_dst.nbytes());
  if (q.v_dst_out.data() != q.v_dst.data()) bytes += 2 * double(q.v_dst.nbytes());
  return {.bytes = bytes, .flops = 0};
}

std::string sizes(const Problem& q) {
  return join("elements ", q.params.count, ", layers ", q.params.layers, ", element_bytes ",
              q.params.element_bytes);
}

constexpr std::string_view kRules =
    " The device is that of the indices. A cache may lie on the host beside a GPU. In page-locked "
    "memory, as tc.memory.pinned makes it, it must stay until the stream has run the transfer; "
    "pageable memory goes through the ring of the transfer engine while the call waits, and not "
    "into a graph. Tokens that are written must differ, and none of them may be read. A token "
    "outside a cache is an IndexError on the CPU and with pageable memory, before anything is "
    "written; else a GPU leaves its element out. A graph may be replayed with other contents of "
    "all arrays; it freezes shapes and addresses.";
constexpr std::string_view kUnrollDoc =
    "elements that a warp moves at once, 1, 2 or 4; by default 4 up to 512 bytes, 2 up to 1024, "
    "else 1";
constexpr std::string_view kQuotaDoc =
    "the most blocks, so that others keep multiprocessors; by default 256";
const std::string& kOneLayerDetails = *new std::string(join(
    "k_dst[idx_dst[i]] = k_src[idx_src[i]] and the same of v; the bits are copied. k_dst and v_dst "
    "are written in place and returned; out=(array, array) leaves them as they are and writes "
    "copies "
    "with the elements. Caches are (tokens, ...) of one dtype, and an element, which is what a "
    "token "
    "has in a cache, has no gaps; k and v of a side have one stride of tokens.",
    kRules));
const std::string& kAllLayerDetails = *new std::string(join(
    "transfer_hicache_one_layer for every layer. k and v of a side are tables, int64 (num_layers): "
    "the address of each layer as the device sees it, a multiple of 16, and kv_dst_stride or "
    "kv_src_stride is the distance of tokens in bytes. Or they are tensors of all layers in the "
    "order of dst_layout or src_layout: layer_first (num_layers, tokens, ...), page_first (tokens, "
    "num_layers, ...) or page_first_direct (pages, num_layers, page_size, ...), where token t lies "
    "on page t // page_size. One side may be tables and the other tensors. What a table points to "
    "cannot be checked.",
    kRules));

const op::Definition<Problem, OneLayer> kOne{
    .name = kOneLayer,
    .group = "attention",
    .summary = "Moves elements of one layer of a cache of keys and values to another.",
    .details = kOneLayerDetails,
    .inputs = kOneInputs,
    .options = {op::option("element_dim", &OneLayer::element_dim,
                           "what an element has; by default what the caches say"),
                op::option("unroll", &OneLayer::unroll, kUnrollDoc),
                op::option("block_quota", &OneLayer::block_quota, kQuotaDoc)},
    .out_name = "k_dst_out",
    .out_doc = "k_dst with the elements: itself, unless out gives memory",
    .extra_outputs = {{{"v_dst_out", "v_dst with the elements, likewise"}, &OneLayer::v_dst_out}},
    .dtypes = op::moved_dtypes(),
    .in_place = true,
    .reaches_host = true,
    .run_pageable = run_pageable,
    .infer = infer<OneLayer>,
    .check = check_one_layer,
    .cost = cost,
    .sizes = sizes,
    .ladder = kLadder,
    .host = kHost};

const op::Definition<Problem, AllLayer> kAll{
    .name = kAllLayer,
    .group = "attention",
    .summary = "Moves elements of all layers of a cache of keys and values to another.",
    .details = kAllLayerDetails,
    .inputs = kAllInputs,
    .options =
        {op::option("kv_dst_stride", &AllLayer::kv_dst_stride,
                    "bytes from a token to the next in what tables give; by default those of "
                    "an element"),
         op::option("kv_src_stride", &AllLayer::kv_src_stride, "likewise"),
         op::option("element_size", &AllLayer::element_size,
                    "bytes of an element; needed if both sides are tables"),
         op::option("dst_layout", &AllLayer::dst_layout,
                    "order of the dimensions of k_ptr_dst and v_ptr_dst, if they are tensors"),
         op::option("src_layout", &AllLayer::src_layout,
                    "order of the dimensions of k_ptr_src and v_ptr_src, if they are tensors"),
         op::option("unroll", &AllLayer::unroll, kUnrollDoc),
         op::option("block_quota", &AllLayer::block_quota, kQuotaDoc)},
    .out_name = "k_dst_out",
    .out_doc = "k_ptr_dst with the elements: itself, unless it is a tensor and out gives memory",
    .extra_outputs = {{{"v_dst_out", "v_ptr_dst with the elements, likewise"},
                       &AllLayer::v_dst_out}},
    .dtypes = op::moved_dtypes(),
    .in_place = true,
    .reaches_host = true,
    .run_pageable = run_pageable,
    .infer = infer<AllLayer>,
    .check = check_all_layer,
    .cost = cost,
    .sizes = sizes,
    .ladder = kLadder,
    .host = kHost};

}  // namespace
}  // namespace kernel::transfer_hicache

void transfer_hicache_one_layer(const TensorView& k_dst_out, const TensorView& k_dst,
                                const TensorView& v_dst, const TensorView& idx_dst,
                                const TensorView& k_src, const TensorView& v_src,
                                const TensorView& idx_src,
                                const TransferHicacheOneLayerOptions& options) {
  TransferHicacheOneLayerOptions o = options;
  if (!o.v_dst_out) o.v_dst_out = v_dst;
  op::run(kernel::transfer_hicache::kOne, k_dst_out, {k_dst, v_dst, idx_dst, k_src, v_src, idx_src},
          o);
}
void transfer_hicache_one_layer(const TensorView& k_dst, const TensorView& v_dst,
                                const TensorView& idx_dst, const TensorView& k_src,
                                const TensorView& v_src, const TensorView& idx_src,
                                const TransferHicacheOneLayerOptions& options) {
  transfer_hicache_one_layer(k_dst, k_dst, v_dst, idx_dst, k_src, v_src, idx_src, options);
}
void transfer_hicache_all_layer(const TensorView& k_dst_out, const TensorView& k_ptr_dst,
                                const TensorView& v_ptr_dst, const TensorView& idx_dst,
                                const TensorView& k_ptr_src, const TensorView& v_ptr_src,
                                const TensorView& idx_src,
                                const TransferHicacheAllLayerOptions& options) {
  TransferHicacheAllLayerOptions o = options;
  if (!o.v_dst_out) o.v_dst_out = v_ptr_dst;
  op::run(kernel::transfer_hicache::kAll, k_dst_out,
          {k_ptr_dst, v_ptr_dst, idx_dst, k_ptr_src, v_ptr_src, idx_src}, o);
}
void transfer_hicache_all_layer(const TensorView& k_ptr_dst, const TensorView& v_ptr_dst,
                                const TensorView& idx_dst, const TensorView& k_ptr_src,
                                const TensorView& v_ptr_src, const TensorView& idx_src,
                                const TransferHicacheAllLayerOptions& options) {
  transfer_hicache_all_layer(k_ptr_dst, k_ptr_dst, v_ptr_dst, idx_dst, k_ptr_src, v_ptr_src,
                             idx_src, options);
}

op::OperatorList ops::transfer_hicache() {
  namespace t = kernel::transfer_hicache;
  return op::registered(t::kOne, t::kAll);
}

}  // namespace tensorcraft
