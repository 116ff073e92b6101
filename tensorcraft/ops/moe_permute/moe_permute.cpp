// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/moe_permute/moe_permute.hpp"

#include "tensorcraft/op/checks/check.hpp"
#include "tensorcraft/op/definition.hpp"
#include "tensorcraft/op/checks/moved_as.hpp"
#include "tensorcraft/ops/registry.hpp"
#include "tensorcraft/ops/moe_permute/plan.h"
#include "tensorcraft/ops/moe_permute/problem.hpp"

#include <cstddef>
#include <limits>

namespace tensorcraft {
namespace kernel::moe_permute {

SortParams sort_params(const SortProblem& q) {
  SortParams p{.ids = q.ids.data(),
               .ids_strides = {q.ids.stride(0), q.ids.stride(1)},
               .wide = q.ids.dtype() == DType::int64,
               .entries = int32_t(q.entries()),
               .k = int32_t(q.ids.shape(1)),
               .experts = int32_t(q.experts),
               .align = int32_t(q.align),
               .rows = int32_t(q.rows)};
  if (q.offsets) {
    p.offsets = q.offsets->data_as<int32_t>();
    p.offsets_stride = q.offsets->stride(0);
  }
  if (q.row_map) {
    p.row_map = q.row_map->data_as<int32_t>();
    p.row_map_strides[0] = q.row_map->stride(0);
    p.row_map_strides[1] = q.row_map->stride(1);
  }
  if (q.sources) {
    p.sources = q.sources->data_as<int32_t>();
    p.sources_stride = q.sources->stride(0);
  }
  cut_entries(p);
  return p;
}

namespace {

constexpr std::string_view kFolder = "moe_permute";

const jit::Rung& kCount = op::make_rung(kFolder, "count", "count.cuh", op::kThreads);

op::RungCall<SortParams, op::NoGiven> sort_call(const SortProblem& q) {
  return {sort_params(q), {}, {}};
}

// The step that counts, for chunks that must know of each other.
void add_count(op::Plan& plan, const SortParams& p) {
  if (p.chunks == 1) return;
  op::Step& step = plan.add_preparation(op::make_step(kCount, {}, Start{{}, p.chunks}), p);
  step.workspace_at = offsetof(SortParams, workspace);
}

void complete_sort(op::Plan& plan, std::string_view rung, const SortProblem& q, const DeviceInfo&) {
  const SortParams p = sort_params(q);
  plan.workspace_bytes = workspace_bytes(p);
  plan.main().workspace_at = offsetof(SortParams, workspace);
  if (rung == "chunks") add_count(plan, p);
}

const auto kSortLadder =
    op::make_ladder<sort_call, kSortRungs, complete_sort>(kFolder, op::kThreads);

op::RungCall<Params, Given> rung_call(const Problem& q) {
  const int bytes = int(dtype_bytes(q.x.dtype()));
  return {Params{.sort = sort_params(q.sort),
                 .x = q.x.data(),
                 .out = q.out.writable_data(),
                 .hidden = q.x.shape(1),
                 .x_strides = {q.x.stride(0), q.x.stride(1)},
                 .out_strides = {q.out.stride(0), q.out.stride(1)}},
          {bytes},
          {op::moved_as(bytes)}};
}

// Units of 16 bytes are two of 8, whatever the dtype.
void as_units(op::Plan& plan) {
  auto p = plan.params_as<Params>(plan.main());
  const int64_t bytes = int64_t(dtype_bytes(plan.main().kernel.types[0]));
  for (int64_t* elements : {&p.hidden, &p.x_strides[0], &p.out_strides[0]})
    *elements = *elements * bytes / int64_t(sizeof(int64_t));
  plan.set_params(plan.main_index(), p);
  plan.main().kernel.types[0] = DType::int64;
}

void complete(op::Plan& plan, std::string_view rung, const Problem& q, const DeviceInfo&) {
  const SortParams p = sort_params(q.sort);
  plan.workspace_bytes = workspace_bytes(p);
  plan.main().workspace_at = int32_t(offsetof(Params, sort) + offsetof(SortParams, workspace));
  if (rung == "rows") as_units(plan);
  add_count(plan, p);
  op::Step& sort =
      plan.add_preparation(op::make_step(kSortLadder.rung("chunks"), {}, Start{{}, p.chunks}), p);
  sort.workspace_at = offsetof(SortParams, workspace);
}

const op::HostVariant<SortProblem> kSortHost[] = {
    {.name = "cpu", .idea = "a counting sort", .run = sort_cpu},
    {.name = "reference", .idea = "a stable sort", .run = sort_reference},
};
const op::HostVariant<Problem> kHost[] = {
    {.name = "cpu", .idea = "a counting sort, then rows over all cores", .run = cpu},
    {.name = "reference", .idea = "a stable sort, then obvious loops", .run = reference},
};

struct Sizes {
  int64_t tokens, k, rows;
};
Sizes checked(std::string_view op, const TensorView& ids, int64_t experts, int64_t align) {
  SymbolicSize tokens("tokens"), k("k");
  TensorMatcher({tokens, k})
      .with_any_strides()
      .with_dtype({DType::int32, DType::int64})
      .verify(ids, op, "ids");
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  if (experts < 1 || experts > kMaxExperts)
    fail(ErrorKind::value, op, ": num_experts must be in [1, ", kMaxExperts, "], got ", experts);
  if (align < 1 || align > kMost)
    fail(ErrorKind::value, op, ": align must be in [1, 2^31), got ", align);
  const int64_t entries = ids.size();
  const int64_t rows =
      std::max((entries + std::min(experts, entries) * (align - 1)) / align * align, align);
  if (rows > kMost - kZeroRows)
    fail(ErrorKind::unsupported, op, ": ids: ", rows, " rows are not supported, expected below ",
         "2^31 - ", kZeroRows, "; route fewer tokens at once, or align to less");
  return {tokens.unwrap(), k.unwrap(), rows};
}

std::vector<op::OutputSpec> maps(const Sizes& sizes, int64_t experts) {
  return {{"offsets", DType::int32, {experts + 1}},
          {"row_map", DType::int32, {sizes.tokens, sizes.k}},
          {"sources", DType::int32, {sizes.rows}}};
}

std::vector<op::OutputSpec> infer_sort(std::span<const TensorView> in, const MoeSortOptions& o) {
  return maps(checked("moe_sort", in[0], o.num_experts, o.align), o.num_experts);
}

std::vector<op::OutputSpec> infer(std::span<const TensorView> in, const MoePermuteOptions& o) {
  const Sizes sizes = checked(kFolder, in[1], o.num_experts, o.align);
  SymbolicSize hidden("hidden");
  TensorMatcher({sizes.tokens, hidden}).with_any_strides().verify(in[0], kFolder, "x");
  if (hidden.unwrap() == 0)
    fail(ErrorKind::value, kFolder, ": x: a row must have at least one element, got shape ",
         in[0].shape());
  std::vector<op::OutputSpec> all = maps(sizes, o.num_experts);
  all.insert(all.begin(), {"out", in[0].dtype(), {sizes.rows, hidden.unwrap()}});
  return all;
}

// The outputs that are there have the shapes of `specs`.
SortProblem checked_sort(std::string_view op, std::span<const op::OutputSpec> specs,
                         const TensorView& ids, std::optional<TensorView> offsets,
                         std::optional<TensorView> row_map, std::optional<TensorView> sources,
                         int64_t experts, int64_t align) {
  size_t i = 0;
  for (const auto& map : {offsets, row_map, sources}) {
    if (map) op::check_like(op, specs[i].name, *map, specs[i].dtype, specs[i].shape);
    ++i;
  }
  return {ids, offsets, row_map, sources, experts, align, specs[2].shape[0]};
}

SortProblem check_sort(const op::Call<MoeSortOptions>& call) {
  const MoeSortOptions& o = call.options;
  return checked_sort("moe_sort", infer_sort(call.inputs, o), call.in(), call.out(), o.row_map,
                      o.sources, o.num_experts, o.align);
}

Problem check(const op::Call<MoePermuteOptions>& call) {
  const MoePermuteOptions& o = call.options;
  const std::vector<op::OutputSpec> specs = infer(call.inputs, o);
  op::check_like(kFolder, "out", call.out(), specs[0].dtype, specs[0].shape);
  return {checked_sort(kFolder, std::span(specs).subspan(1), call.in(1), o.offsets, o.row_map,
                       o.sources, o.num_experts, o.align),
          call.out(), call.in(0)};
}

double map_bytes(const SortProblem& q) {
  double bytes = double(q.ids.nbytes());
  for (const auto& map : {q.offsets, q.row_map, q.sources})
    if (map) bytes += double(map->nbytes());
  return bytes;
}
op::Cost sort_cost(const SortProblem& q) { return {.bytes = map_bytes(q)}; }
op::Cost cost(const Problem& q) {
  return {.bytes = double(q.x.nbytes()) + double(q.out.nbytes()) + map_bytes(q.sort)};
}

constexpr op::ParameterDoc kIdsDoc =
    op::takes(op::kIndexTypes, "%, (tokens, k), any strides: the expert of each slot of a token");
constexpr std::string_view kExpertsDoc = "how many experts are here, 1 to 1024";
constexpr std::string_view kAlignDoc = "every group of rows begins at a multiple of it";
constexpr std::string_view kOffsetsDoc =
    "int32, (num_experts + 1): expert e has the rows offsets[e] to offsets[e + 1]";
constexpr std::string_view kRowMapDoc = "int32, (tokens, k): the row of each id, -1 if it has none";
constexpr std::string_view kSourcesDoc =
    "int32, (rows): the id of each row as token * k + slot, -1 if it has none";

const op::Definition<SortProblem, MoeSortOptions> kSort{
    .name = "moe_sort",
    .group = "mixture of experts",
    .summary = "A row for each id of an expert, sorted by expert.",
    .details =
        "Rows of one expert are in the order of tokens, then slots. An id outside [0, num_experts) "
        "has no row, as those of experts that other devices have. Groups may be empty. Offsets are "
        "multiples of align; rows that it adds have the source -1, as have all behind the last "
        "group: how many rows there are depends on shapes alone. It is tokens * k + "
        "min(num_experts, tokens * k) * (align - 1), rounded down to a multiple of align, and at "
        "least align. Results repeat to the bit.",
    .inputs = {{"ids", kIdsDoc}},
    .options = {op::positional(
                    op::option("num_experts", &MoeSortOptions::num_experts, kExpertsDoc)),
                op::option("align", &MoeSortOptions::align, kAlignDoc)},
    .out_name = "offsets",
    .out_doc = kOffsetsDoc,
    .extra_outputs = {{{"row_map", kRowMapDoc}, &MoeSortOptions::row_map},
                      {{"sources", kSourcesDoc}, &MoeSortOptions::sources}},
    .dtypes = {DType::int32, DType::int64},
    .infer = infer_sort,
    .check = check_sort,
    .cost = sort_cost,
    .ladder = kSortLadder,
    .host = kSortHost};

const op::Definition<Problem, MoePermuteOptions> kPermute{
    .name = "moe_permute",
    .group = "mixture of experts",
    .summary = "The tokens of each expert as neighbouring rows.",
    .details =
        "out[r, :] = x[sources[r] // k, :], zeros where the source is -1; the bits are copied. "
        "Which row an id has is what moe_sort says: by expert, then token, then slot; an id "
        "outside [0, num_experts) has none. moe_combine brings the rows back by row_map.",
    .inputs = {{"x", "(tokens, hidden), any dtype and strides"}, {"ids", kIdsDoc}},
    .options = {op::positional(
                    op::option("num_experts", &MoePermuteOptions::num_experts, kExpertsDoc)),
                op::option("align", &MoePermuteOptions::align, kAlignDoc)},
    .out_doc = "(rows, hidden), dtype of x",
    .extra_outputs = {{{"offsets", kOffsetsDoc}, &MoePermuteOptions::offsets},
                      {{"row_map", kRowMapDoc}, &MoePermuteOptions::row_map},
                      {{"sources", kSourcesDoc}, &MoePermuteOptions::sources}},
    .dtypes = op::moved_dtypes(),
    .infer = infer,
    .check = check,
    .cost = cost,
    .ladder = op::make_ladder<rung_call, kRungs, complete>(kFolder, op::kThreads),
    .host = kHost};

}  // namespace
}  // namespace kernel::moe_permute

void moe_sort(const TensorView& offsets, const TensorView& ids, const MoeSortOptions& options) {
  op::run(kernel::moe_permute::kSort, offsets, {ids}, options);
}
MoeSortResult moe_sort(const TensorView& ids, const MoeSortOptions& options) {
  auto tensors = op::allocate(kernel::moe_permute::kSort, {ids}, options);
  return {std::move(tensors[0]), std::move(tensors[1]), std::move(tensors[2])};
}
void moe_permute(const TensorView& out, const TensorView& x, const TensorView& ids,
                 const MoePermuteOptions& options) {
  op::run(kernel::moe_permute::kPermute, out, {x, ids}, options);
}
MoePermuteResult moe_permute(const TensorView& x, const TensorView& ids,
                             const MoePermuteOptions& options) {
  auto tensors = op::allocate(kernel::moe_permute::kPermute, {x, ids}, options);
  return {std::move(tensors[0]), std::move(tensors[1]), std::move(tensors[2]),
          std::move(tensors[3])};
}

op::OperatorList ops::moe_permute() {
  namespace m = kernel::moe_permute;
  return op::registered(m::kSort, m::kPermute);
}

}  // namespace tensorcraft
