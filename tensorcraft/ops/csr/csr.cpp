// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/csr/csr.hpp"

#include "tensorcraft/op/checks/check.hpp"
#include "tensorcraft/op/checks/csr_arguments.hpp"
#include "tensorcraft/op/definition.hpp"
#include "tensorcraft/ops/registry.hpp"
#include "tensorcraft/ops/csr/steps.hpp"

namespace tensorcraft {
namespace kernel::csr {
namespace {

using Options = CsrOptions;
const jit::Rung& kSummary = *kernel("summary", "summary.cuh");
const jit::Rung& kCountRows = *kernel("count_rows", "count_rows.cuh");

using RungCall = op::RungCall<Params, op::NoGiven>;
RungCall call_of_index(const Problem& q) { return {params(q), {}, {q.index}}; }
RungCall call_of_dense(const Problem& q) { return {params(q), {}, {moved(*q.dense), q.index}}; }
RungCall call_of_data(const Problem& q) { return {params(q), {}, {moved(*q.data), q.index}}; }

void complete_report(op::Plan& plan, std::string_view, const Problem& q, const DeviceInfo&) {
  plan.workspace_bytes = size_t(plan.main().launch.grid.x) * sizeof(Facts);
  plan.main().workspace_at = kWorkspace;
  plan.add(step(kSummary, {&q.index, 1}, Start{{}, 1}), params(q));
}

void complete_offsets(op::Plan& plan, std::string_view, const Problem& q, const DeviceInfo&) {
  const Params p = params(q);
  const DType bits = moved(*q.dense);
  plan.workspace_bytes = size_t(q.rows) * sizeof(uint32_t);
  plan.main().workspace_at = kWorkspace;
  plan.add_preparation(step(kCountRows, {&bits, 1}, warp_a_row(p, {}, {})), p);
}

using Host = op::HostVariant<Problem>;
const Host kReportHost[] = {
    {.name = "cpu", .idea = "rows over all cores", .run = report_cpu},
    {.name = "reference", .idea = "obvious loops", .run = report_reference}};
const Host kStartsHost[] = {
    {.name = "cpu", .idea = "a binary search for each tile", .run = starts_cpu},
    {.name = "reference", .idea = "walks the merge", .run = starts_reference}};
const Host kOffsetsHost[] = {
    {.name = "cpu", .idea = "rows over all cores", .run = offsets_cpu},
    {.name = "reference", .idea = "obvious loops", .run = offsets_reference}};
const Host kFromDenseHost[] = {
    {.name = "cpu", .idea = "rows over all cores", .run = from_dense_cpu},
    {.name = "reference", .idea = "obvious loops", .run = from_dense_reference}};
const Host kToDenseHost[] = {
    {.name = "cpu", .idea = "rows over all cores", .run = to_dense_cpu},
    {.name = "reference", .idea = "obvious loops", .run = to_dense_reference}};
const Host kTransposeHost[] = {
    {.name = "cpu", .idea = "a counting sort", .run = transpose_cpu},
    {.name = "reference", .idea = "a column after the other", .run = transpose_reference}};

constexpr int64_t kMost32 = (int64_t(1) << 31) - 1;

void check_integer(std::string_view op, std::string_view name, int64_t value) {
  if (value < 0) fail(ErrorKind::value, op, ": ", name, " must be at least 0, got ", value);
}

// Sizes that the indices can hold, or the kernels count.
void check_sizes(std::string_view op, DType index, int64_t rows, int64_t cols, int64_t stored) {
  if (index != DType::int32 && index != DType::int64)
    fail(ErrorKind::type, op, ": index_dtype must be int32 or int64, got ", index);
  for (const int64_t size : {rows, cols, stored})
    if (index == DType::int32 && size > kMost32)
      fail(ErrorKind::value, op,
           ": the shape is too large for int32: rows, columns and stored elements must be below "
           "2^31, got ",
           size, "; use int64");
}

void check_dense(std::string_view op, const TensorView& x) {
  op::check_dtype(op, "x", x, {DType::float32, DType::float16, DType::bfloat16});
  if (x.rank() != 2)
    fail(ErrorKind::value, op, ": x: expected a matrix, (rows, cols), got shape ", x.shape());
}

// A further output, which a call from C++ has to bring.
TensorView required(std::string_view op, std::string_view name, const std::optional<TensorView>& t,
                    DType dtype, const Dims& shape) {
  if (!t) fail(ErrorKind::value, op, ": ", name, " must be given");
  op::check_like(op, name, *t, dtype, shape);
  return *t;
}

using Inputs = std::span<const TensorView>;
std::vector<op::OutputSpec> infer_report(Inputs in, const Options& o) {
  op::check_structure("csr_report", in[0], in[1]);
  check_integer("csr_report", "cols", o.cols);
  return {{"out", DType::int64, {kCsrFacts}}};
}
Problem check_report(const op::Call<Options>& call) {
  infer_report(call.inputs, call.options);
  op::check_like("csr_report", "out", call.out(), DType::int64, {kCsrFacts});
  const TensorView &indices = call.in(0), &indptr = call.in(1);
  return {.rows = indptr.size() - 1,
          .cols = call.options.cols,
          .stored = indices.size(),
          .indices_in = indices,
          .indptr_in = indptr,
          .data = call.out(),
          .index = indices.dtype()};
}

std::vector<op::OutputSpec> infer_starts(Inputs in, const Options& o) {
  op::check_offsets("csr_starts", in[0]);
  check_integer("csr_starts", "stored", o.stored);
  check_sizes("csr_starts", in[0].dtype(), in[0].size() - 1, 0, o.stored);
  return {{"out", DType::int64, {merge_tiles(in[0].size() - 1, o.stored) + 1}}};
}
Problem check_starts(const op::Call<Options>& call) {
  op::check_like("csr_starts", "out", call.out(), DType::int64,
                 infer_starts(call.inputs, call.options)[0].shape);
  const TensorView& indptr = call.in();
  return {.rows = indptr.size() - 1,
          .stored = call.options.stored,
          .indptr_in = indptr,
          .data = call.out(),
          .index = indptr.dtype()};
}

std::vector<op::OutputSpec> infer_offsets(Inputs in, const Options& o) {
  constexpr std::string_view kName = "csr_offsets";
  check_dense(kName, in[0]);
  check_sizes(kName, o.index_dtype, in[0].shape(0), in[0].shape(1), 0);
  if (o.index_dtype == DType::int32 && in[0].size() > kMost32)
    fail(ErrorKind::value, kName, ": x has ", in[0].size(),
         " elements, of which int32 may not count those that are stored; use "
         "index_dtype=\"int64\"");
  return {{"out", o.index_dtype, {in[0].shape(0) + 1}}};
}
Problem check_offsets(const op::Call<Options>& call) {
  const auto specs = infer_offsets(call.inputs, call.options);
  op::check_like("csr_offsets", "out", call.out(), specs[0].dtype, specs[0].shape);
  const TensorView& x = call.in();
  return {.rows = x.shape(0),
          .cols = x.shape(1),
          .dense = x,
          .indptr = call.out(),
          .index = call.options.index_dtype};
}

std::vector<op::OutputSpec> infer_from_dense(Inputs in, const Options& o) {
  constexpr std::string_view kName = "csr_from_dense";
  check_dense(kName, in[0]);
  op::check_offsets(kName, in[1]);
  const DType index = in[1].dtype();
  op::check_like(kName, "indptr", in[1], index, {in[0].shape(0) + 1});
  check_integer(kName, "stored", o.stored);
  check_sizes(kName, index, in[0].shape(0), in[0].shape(1), o.stored);
  if (o.stored > in[0].size())
    fail(ErrorKind::value, kName, ": stored must be at most the ", in[0].size(),
         " elements of x, got ", o.stored);
  return {{"data", in[0].dtype(), {o.stored}}, {"indices", index, {o.stored}}};
}
Problem check_from_dense(const op::Call<Options>& call) {
  constexpr std::string_view kName = "csr_from_dense";
  const auto specs = infer_from_dense(call.inputs, call.options);
  op::check_like(kName, "data", call.out(), specs[0].dtype, specs[0].shape);
  const TensorView& x = call.in();
  return {
      .rows = x.shape(0),
      .cols = x.shape(1),
      .stored = call.options.stored,
      .indptr_in = call.in(1),
      .dense = x,
      .data = call.out(),
      .indices = required(kName, "indices", call.options.indices, specs[1].dtype, specs[1].shape),
      .index = specs[1].dtype};
}

std::vector<op::OutputSpec> infer_to_dense(Inputs in, const Options& o) {
  constexpr std::string_view kName = "csr_to_dense";
  check_integer(kName, "cols", o.cols);
  const op::CsrView a = op::checked_csr(kName, in[0], in[1], in[2], o.cols);
  return {{"out", in[0].dtype(), {a.rows(), o.cols}}};
}
Problem check_to_dense(const op::Call<Options>& call) {
  const auto specs = infer_to_dense(call.inputs, call.options);
  op::check_like("csr_to_dense", "out", call.out(), specs[0].dtype, specs[0].shape);
  return {.rows = specs[0].shape[0],
          .cols = call.options.cols,
          .stored = call.in(1).size(),
          .data_in = call.in(0),
          .indices_in = call.in(1),
          .indptr_in = call.in(2),
          .dense = call.out(),
          .index = call.in(1).dtype()};
}

std::vector<op::OutputSpec> infer_transpose(Inputs in, const Options& o) {
  constexpr std::string_view kName = "csr_transpose";
  check_integer(kName, "cols", o.cols);
  const op::CsrView a = op::checked_csr(kName, in[0], in[1], in[2], o.cols);
  const DType index = in[1].dtype();
  const Dims elements{a.stored()};
  check_sizes(kName, index, a.rows(), o.cols, a.stored());
  return {{"indptr", index, {o.cols + 1}},
          {"data", in[0].dtype(), elements},
          {"indices", index, elements}};
}
Problem check_transpose(const op::Call<Options>& call) {
  constexpr std::string_view kName = "csr_transpose";
  const auto specs = infer_transpose(call.inputs, call.options);
  op::check_like(kName, "indptr", call.out(), specs[0].dtype, specs[0].shape);
  const Options& o = call.options;
  return {.rows = call.in(2).size() - 1,
          .cols = o.cols,
          .stored = call.in(1).size(),
          .data_in = call.in(0),
          .indices_in = call.in(1),
          .indptr_in = call.in(2),
          .data = required(kName, "data", o.data, specs[1].dtype, specs[1].shape),
          .indices = required(kName, "indices", o.indices, specs[2].dtype, specs[2].shape),
          .indptr = call.out(),
          .index = specs[0].dtype};
}

// Every tensor once.
op::Cost cost(const Problem& q) {
  double bytes = 0;
  for (const auto* t :
       {&q.data_in, &q.indices_in, &q.indptr_in, &q.dense, &q.data, &q.indices, &q.indptr})
    if (*t) bytes += double((*t)->nbytes());
  return {.bytes = bytes};
}

template <auto describe, const auto& rungs, auto complete = nullptr>
auto ladder() {
  return op::make_ladder<describe, rungs, complete>("csr", op::kThreads);
}

const std::vector<DType> kFloats{DType::float32, DType::float16, DType::bfloat16};
const auto kCols = op::positional(op::option("cols", &Options::cols, "columns of the matrix"));
const auto kStored =
    op::positional(op::option("stored", &Options::stored, "elements that are stored"));

const op::Definition<Problem, Options> kReport{
    .name = "csr_report",
    .group = "sparse",
    .summary = "What a matrix of compressed rows is like, and where it is wrong.",
    .details =
        "Five numbers: the elements of the longest row; how many rows are empty; and the first row "
        "of each fault, or the number of rows if there is none: the row is not the next part of "
        "the stored elements; one of its indices is outside the columns or below the one before; "
        "an index is that before. tc.sparse reads it when a matrix is made.",
    .inputs = {op::kCsrIndices, op::kCsrIndptr},
    .options = {kCols},
    .out_doc = "int64, (5)",
    .dtypes = {DType::int32, DType::int64},
    .infer = infer_report,
    .check = check_report,
    .cost = cost,
    .ladder = ladder<call_of_index, kReportRungs, complete_report>(),
    .host = kReportHost};

const op::Definition<Problem, Options> kStarts{
    .name = "csr_starts",
    .group = "sparse",
    .summary = "Where equal parts of a matrix of compressed rows begin.",
    .details =
        "The ends of rows and the stored elements are merged in steps; out[i] is how many rows end "
        "in the first 2048 i of them. It depends on indptr alone, so a matrix may keep it for "
        "spmv.",
    .inputs = {op::kCsrStarts},
    .options = {kStored},
    .out_doc = "int64, one for each 2048 rows and stored elements, and one",
    .dtypes = {DType::int32, DType::int64},
    .infer = infer_starts,
    .check = check_starts,
    .cost = cost,
    .ladder = ladder<call_of_index, kStartsRungs>(),
    .host = kStartsHost};

const op::Definition<Problem, Options> kOffsetsOf{
    .name = "csr_offsets",
    .group = "sparse",
    .summary = "Where the rows of a dense matrix begin once it is compressed.",
    .details =
        "All elements are stored but +0, so -0 and NaN too. The last number says how many; "
        "csr_from_dense takes it and gives the elements.",
    .inputs = {{"x", op::takes(op::kFloatTypes, "(rows, cols), %, any strides")}},
    .options = {op::option("index_dtype", &Options::index_dtype, "int32 or int64")},
    .out_doc = "(rows + 1), of index_dtype",
    .dtypes = kFloats,
    .infer = infer_offsets,
    .check = check_offsets,
    .cost = cost,
    .ladder = ladder<call_of_index, kOffsetsRungs, complete_offsets>(),
    .host = kOffsetsHost};

const op::Definition<Problem, Options> kFromDense{
    .name = "csr_from_dense",
    .group = "sparse",
    .summary = "The elements of a dense matrix that are not +0, and their columns.",
    .details =
        "Bits are copied, so -0 and NaN stay what they are. indptr is that of csr_offsets, "
        "and stored its last number. tc.sparse.from_dense calls both.",
    .inputs = {{"x", op::takes(op::kFloatTypes, "(rows, cols), %, any strides")}, op::kCsrStarts},
    .options = {kStored},
    .out_name = "data",
    .out_doc = "(stored), dtype of x",
    .extra_outputs = {{{"indices", "(stored), dtype of indptr"}, &Options::indices}},
    .dtypes = kFloats,
    .infer = infer_from_dense,
    .check = check_from_dense,
    .cost = cost,
    .ladder = ladder<call_of_dense, kFromDenseRungs>(),
    .host = kFromDenseHost};

const op::Definition<Problem, Options> kToDense{
    .name = "csr_to_dense",
    .group = "sparse",
    .summary = "The dense matrix of one of compressed rows.",
    .details =
        "Elements that are not stored are +0, the bits of the others are copied. A row "
        "names a column once; what lies outside the matrix is left out.",
    .inputs = op::csr_inputs(),
    .options = {kCols},
    .out_doc = "(rows, cols), dtype of data",
    .dtypes = kFloats,
    .infer = infer_to_dense,
    .check = check_to_dense,
    .cost = cost,
    .ladder = ladder<call_of_dense, kToDenseRungs>(),
    .host = kToDenseHost};

const op::Definition<Problem, Options> kTranspose{
    .name = "csr_transpose",
    .group = "sparse",
    .summary = "A matrix of compressed rows by compressed columns, or the other way.",
    .details =
        "The result is the transposed matrix by compressed rows. Its rows are in order, the bits "
        "of elements are copied, and results repeat to the bit. What lies outside the matrix is "
        "left out.",
    .inputs = op::csr_inputs(),
    .options = {kCols},
    .out_name = "indptr",
    .out_doc = "(cols + 1): where columns begin, dtype of indptr",
    .extra_outputs = {{{"data", "(stored), dtype of data"}, &Options::data},
                      {{"indices", "(stored): the rows of them"}, &Options::indices}},
    .dtypes = kFloats,
    .infer = infer_transpose,
    .check = check_transpose,
    .cost = cost,
    .ladder = ladder<call_of_data, kTransposeRungs, complete_transpose>(),
    .host = kTransposeHost};

}  // namespace
}  // namespace kernel::csr

void csr_report(const TensorView& out, const TensorView& indices, const TensorView& indptr,
                const CsrOptions& options) {
  op::run(kernel::csr::kReport, out, {indices, indptr}, options);
}
Tensor csr_report(const TensorView& indices, const TensorView& indptr, const CsrOptions& options) {
  return std::move(op::allocate(kernel::csr::kReport, {indices, indptr}, options)[0]);
}
void csr_starts(const TensorView& out, const TensorView& indptr, const CsrOptions& options) {
  op::run(kernel::csr::kStarts, out, {indptr}, options);
}
Tensor csr_starts(const TensorView& indptr, const CsrOptions& options) {
  return std::move(op::allocate(kernel::csr::kStarts, {indptr}, options)[0]);
}
void csr_offsets(const TensorView& out, const TensorView& x, const CsrOptions& options) {
  op::run(kernel::csr::kOffsetsOf, out, {x}, options);
}
Tensor csr_offsets(const TensorView& x, const CsrOptions& options) {
  return std::move(op::allocate(kernel::csr::kOffsetsOf, {x}, options)[0]);
}
void csr_from_dense(const TensorView& data, const TensorView& x, const TensorView& indptr,
                    const CsrOptions& options) {
  op::run(kernel::csr::kFromDense, data, {x, indptr}, options);
}
CsrElements csr_from_dense(const TensorView& x, const TensorView& indptr,
                           const CsrOptions& options) {
  auto all = op::allocate(kernel::csr::kFromDense, {x, indptr}, options);
  return {std::move(all[0]), std::move(all[1])};
}
void csr_to_dense(const TensorView& out, const TensorView& data, const TensorView& indices,
                  const TensorView& indptr, const CsrOptions& options) {
  op::run(kernel::csr::kToDense, out, {data, indices, indptr}, options);
}
Tensor csr_to_dense(const TensorView& data, const TensorView& indices, const TensorView& indptr,
                    const CsrOptions& options) {
  return std::move(op::allocate(kernel::csr::kToDense, {data, indices, indptr}, options)[0]);
}
void csr_transpose(const TensorView& indptr_out, const TensorView& data, const TensorView& indices,
                   const TensorView& indptr, const CsrOptions& options) {
  op::run(kernel::csr::kTranspose, indptr_out, {data, indices, indptr}, options);
}
CsrArrays csr_transpose(const TensorView& data, const TensorView& indices, const TensorView& indptr,
                        const CsrOptions& options) {
  auto all = op::allocate(kernel::csr::kTranspose, {data, indices, indptr}, options);
  return {std::move(all[1]), std::move(all[2]), std::move(all[0])};
}

op::OperatorList ops::csr() {
  namespace c = kernel::csr;
  return op::registered(c::kReport, c::kStarts, c::kOffsetsOf, c::kFromDense, c::kToDense,
                        c::kTranspose);
}

}  // namespace tensorcraft
