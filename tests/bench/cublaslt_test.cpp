// SPDX-License-Identifier: Apache-2.0
#include "bench/cublaslt.hpp"

#include "bench/product.hpp"
#include "tensorcraft/op/host/elements.hpp"
#include "tensorcraft/ops/all.hpp"
#include "tests/bench/expect_mention.hpp"
#include "tests/stress/stress.hpp"
#include "tests/support/fake_driver.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <deque>
#include <functional>

#if __has_include(<cublasLt.h>)
#include <cublasLt.h>
#endif

// The peer of gemm with a library in host memory that multiplies column-major matrices in double.
namespace tensorcraft::bench {
namespace {

using test::expect_mention;
using test::FakeDriver;

// The algorithms of the library here behave so: the first cannot be had, the second does not run,
// the third leaves out the last step along k; the last two are right, and the last is the fastest.
enum Algorithm : uint64_t { kUnavailable, kFails, kDropsTail, kSlow, kFast, kAlgorithms };

struct Layout {
  int type = 0;
  int64_t rows = 0, cols = 0, leading = 0, batch_stride = 0;
  int32_t batch = 1;

  TensorView memory(const void* data) const {
    const DType dtype = type == 0 ? DType::float32 : type == 2 ? DType::float16 : DType::bfloat16;
    const int64_t last = (batch - 1) * batch_stride + (cols - 1) * leading + rows;
    return {const_cast<void*>(data), dtype, Dims{last}};
  }
  int64_t at(int64_t row, int64_t col, int64_t entry) const {
    return entry * batch_stride + col * leading + row;
  }
};
struct Description {
  int compute = 0;
  bool transpose[2] = {false, false};
  int epilogue = kPlain, bias_type = 0;
  const void* bias = nullptr;
};

struct FakeLt : CublasLt {
  FakeLt();
  static inline std::deque<Layout> layouts;
  static inline std::deque<Description> products;
  static inline size_t workspace = 0;
  static inline int proposed = kAlgorithms;
  static inline FakeDriver* driver = nullptr;
  static inline void* result = nullptr;  // of the last product
};

int set_product(void* product, int attribute, const void* value, size_t) {
  auto& d = *static_cast<Description*>(product);
  if (attribute == kTransA) d.transpose[0] = *static_cast<const int*>(value);
  if (attribute == kTransB) d.transpose[1] = *static_cast<const int*>(value);
  if (attribute == kEpilogue) d.epilogue = *static_cast<const int*>(value);
  if (attribute == kBiasType) d.bias_type = *static_cast<const int*>(value);
  if (attribute == kBiasPointer) d.bias = *static_cast<const void* const*>(value);
  return 0;
}

int set_layout(void* layout, int attribute, const void* value, size_t) {
  auto& x = *static_cast<Layout*>(layout);
  if (attribute == kBatchCount) x.batch = *static_cast<const int32_t*>(value);
  if (attribute == kBatchStride) x.batch_stride = *static_cast<const int64_t*>(value);
  return 0;
}

int propose(void*, void*, void*, void*, void*, void*, void*, int most, LtHeuristic* found,
            int* count) {
  *count = std::min(most, FakeLt::proposed);
  for (int i = 0; i < *count; ++i) {
    found[i].algorithm.data[0] = uint64_t(i);
    found[i].status = i == kUnavailable ? kLtNotSupported : 0;
  }
  return *count ? 0 : kLtNotSupported;
}

double activated(const Description& d, double x) {
  if (d.epilogue & kRelu) return std::max(x, 0.0);
  return d.epilogue & kGeluTanh ? host::activate(Activation::gelu_tanh, x) : x;
}

int multiply(void*, void* product, const void* alpha, const void* a, void* a_layout, const void* b,
             void* b_layout, const void* beta, const void* c, void* c_layout, void* d,
             void* d_layout, const LtAlgorithm* algorithm, void*, size_t, CUstream_st*) {
  const auto& how = *static_cast<Description*>(product);
  const Layout &x = *static_cast<Layout*>(a_layout), &y = *static_cast<Layout*>(b_layout),
               &z = *static_cast<Layout*>(c_layout), &out = *static_cast<Layout*>(d_layout);
  if (algorithm->data[0] == kFails) return 14;
  FakeLt::result = d;
  FakeLt::driver->clock_ms += algorithm->data[0] == kFast ? 1 : 2;
  const int64_t k = (how.transpose[0] ? x.rows : x.cols) - (algorithm->data[0] == kDropsTail);
  const float scale = *static_cast<const float*>(alpha), keep = *static_cast<const float*>(beta);
  const host::Elements left(x.memory(a)), right(y.memory(b)), added(z.memory(c)),
      result(out.memory(d)),
      bias(Layout{.type = how.bias_type, .rows = out.rows, .cols = 1}.memory(how.bias));
  for (int64_t e = 0; e < out.batch; ++e)
    for (int64_t j = 0; j < out.cols; ++j)
      for (int64_t i = 0; i < out.rows; ++i) {
        double sum = 0;
        for (int64_t s = 0; s < k; ++s)
          sum += left[how.transpose[0] ? x.at(s, i, e) : x.at(i, s, e)] *
                 right[how.transpose[1] ? y.at(j, s, e) : y.at(s, j, e)];
        sum *= scale;
        if (keep != 0) sum += keep * added[z.at(i, j, e)];
        if (how.epilogue & kBias) sum += bias[i];
        result.set(out.at(i, j, e), activated(how, sum));
      }
  return 0;
}

FakeLt::FakeLt() {
  layouts.clear();
  products.clear();
  proposed = kAlgorithms;
  create = [](void** handle) { return *handle = &layouts, 0; };
  create_product = [](void** made, int compute, int) {
    return *made = &products.emplace_back(Description{.compute = compute}), 0;
  };
  set_product = bench::set_product;
  create_layout = [](void** made, int type, uint64_t rows, uint64_t cols, int64_t leading) {
    if (leading < int64_t(rows)) return 7;
    return *made = &layouts.emplace_back(Layout{type, int64_t(rows), int64_t(cols), leading}), 0;
  };
  set_layout = bench::set_layout;
  create_preference = [](void** made) { return *made = &layouts, 0; };
  set_preference = [](void*, int, const void* value, size_t) {
    return workspace = *static_cast<const size_t*>(value), 0;
  };
  propose = bench::propose;
  get_config = [](const LtAlgorithm* algorithm, int which, void* value, size_t, size_t*) {
    return std::memcpy(value, &algorithm->data[0], 2), which == kId ? 0 : 15;
  };
  multiply = bench::multiply;
}

// A call of gemm with its arrays on the GPU in host memory; ours is the reference on the CPU.
class Gemm {
 public:
  explicit Gemm(const std::string& line)
      : case_{diagnose::parse_request(line), {}},
        request_(find_operator("gemm"), case_.request, device_info(Device::cuda())),
        operands_(case_, request_, stream_, 2) {
    FakeLt::driver = &fake;
  }
  PeerProblem problem() const {
    const op::Cost large{.bytes = 1e9};  // timed by events, which see the clock of the products
    return {operands_, large, Device::cuda(), stream_, [this](int copy) { run_reference(copy); }};
  }
  PeerCall open(bool with_kernel = false) const {
    return open_cublaslt(problem(), library_, with_kernel);
  }
  TensorView out(int copy) const { return on_host(operands_.outputs(copy)[0]); }

  // Holds the peer's second copy against the reference.
  void expect_equal(const PeerCall& peer) const {
    ASSERT_TRUE(peer.call) << peer.reason;
    const ExpectedResult expected(problem(), product_of(problem(), 0));
    expected.poison();
    EXPECT_NE(expected.difference(), "");
    peer.call(0);
    EXPECT_EQ(expected.difference(), "");
    const std::vector<double> theirs = after([&] { peer.call(1); });
    const std::vector<double> ours = after([&] { run_reference(1); });
    for (size_t i = 0; i < ours.size(); ++i)
      ASSERT_NEAR(theirs[i], ours[i], 0.02 * std::max(std::abs(ours[i]), 1.0)) << i;
  }

  FakeDriver fake;

 private:
  static TensorView on_host(const TensorView& t) { return t.at(t.data(), Device::cpu()); }
  void run_reference(int copy) const {
    std::vector<TensorView> inputs, outputs{out(copy)};
    for (const TensorView& t : operands_.inputs(copy)) inputs.push_back(on_host(t));
    std::vector<op::Value> options(operands_.options(copy).begin(), operands_.options(copy).end());
    for (op::Value& option : options)
      if (const auto* t = std::get_if<TensorView>(&option)) option = on_host(*t);
    request_.op().run(outputs, {inputs, options, "reference"});
  }
  std::vector<double> after(const std::function<void()>& work) const {
    const host::Elements elements(out(1));
    for (int64_t i = 0; i < out(1).size(); ++i) elements.set(i, NAN);
    work();
    std::vector<double> all;
    for (int64_t i = 0; i < out(1).size(); ++i) all.push_back(elements[i]);
    return all;
  }

  const Stream stream_;
  const Case case_;
  const diagnose::Request request_;
  const Operands operands_;
  const FakeLt library_;
};

TEST(CublasLt, ComputesWhatOursDoesInEveryLayout) {
  for (const char* call :
       {"5x7 7x3", "5x7 3x7 --option transpose_b=true", "7x5 7x3 --option transpose_a=true",
        "7x5 3x7 --option transpose_a=true --option transpose_b=true", "1x7 7x3", "5x7 7x1",
        "5x1 1x3 --option alpha=0.5", "5x7/9 7x3/4 --option c=5x3/8",
        "7x5/9 3x7/8 --option transpose_a=true --option transpose_b=true"})
    for (const char* dtype : {"bfloat16", "float16", "float32"}) {
      SCOPED_TRACE(join(call, ' ', dtype));
      const Gemm gemm(join("gemm ", call, " --dtype ", dtype));
      gemm.expect_equal(gemm.open());
    }
}

TEST(CublasLt, TakesTheFastestProposalWhoseResultIsOurs) {
  const Gemm gemm("gemm 5x7 7x3 --dtype bfloat16");
  const PeerCall peer = gemm.open();
  EXPECT_EQ(peer.note, "algorithm 4, rejected 1");
  EXPECT_EQ(FakeLt::workspace, size_t(32) << 20);
}

TEST(CublasLt, AResultThatIsNeverOursIsAnError) {
  const Gemm gemm("gemm 5x7 7x3");
  FakeLt::proposed = kDropsTail + 1;
  expect_mention(
      ErrorKind::internal, [&] { gemm.open(); },
      "its results differ from ours: at row 0, column 0");
}

TEST(CublasLt, WithoutAProposalThereIsAReason) {
  const Gemm gemm("gemm 5x7 7x3");
  FakeLt::proposed = 0;
  EXPECT_EQ(gemm.open().reason, "it proposes nothing for this product");
  FakeLt::proposed = kFails + 1;
  EXPECT_EQ(gemm.open().reason, "nothing that it proposes runs");
}

TEST(CublasLt, HasTheEpiloguesOfOurs) {
  for (const char* options :
       {"--option bias=3", "--option activation=relu", "--option bias=3 --option activation=relu",
        "--option activation=gelu_tanh", "--option bias=3 --option activation=gelu_tanh",
        "--option c=5x3", "--option c=5x3 --option beta=0.5 --option alpha=2 --option bias=3",
        "--option bias=3 --option out_dtype=float32 --option c=5x3:float32"}) {
    SCOPED_TRACE(options);
    const Gemm gemm(join("gemm 5x7 7x3 --dtype bfloat16 ", options));
    gemm.expect_equal(gemm.open());
    EXPECT_FALSE(gemm.open(true).applies);
  }
}

TEST(CublasLt, WhatItsEpilogueLacksIsAKernelAfterIt) {
  Gemm gemm("gemm 5x7 7x3 --option bias=3 --option activation=silu");
  EXPECT_EQ(gemm.open().reason, "its epilogue lacks it; see cublaslt+kernel");
  int copy = 0;
  gemm.fake.on_launch = [&](const auto&, const void*) {
    const host::Elements out(gemm.out(copy));
    for (int64_t i = 0; i < gemm.out(copy).size(); ++i)
      out.set(i, host::activate(Activation::silu, out[i]));
  };
  const PeerCall peer = gemm.open(true);
  ASSERT_TRUE(peer.call) << peer.reason;
  EXPECT_EQ(FakeLt::products.front().epilogue, kBias);
  const ExpectedResult expected(gemm.problem(), product_of(gemm.problem(), 0));
  expected.poison();
  peer.call(0);
  EXPECT_EQ(expected.difference(), "");
}

TEST(CublasLt, AGateIsAKernelAfterBothHalves) {
  const auto& options = find_operator("gemm").description().options;
  if (std::ranges::find(options, "gated", &op::Parameter::name) == options.end())
    GTEST_SKIP() << "gemm has no option gated yet";
  Gemm gemm("gemm 5x7 6x7 --option transpose_b=true --option gated=silu");
  EXPECT_EQ(gemm.open().reason, "its epilogue lacks it; see cublaslt+kernel");
  gemm.fake.on_launch = [&](const auto&, const void*) {
    const host::Elements halves({FakeLt::result, DType::float32, Dims{5 * 6}}), out(gemm.out(0));
    for (int64_t i = 0; i < 15; ++i)
      out.set(i, host::activate(Activation::silu, halves[i / 3 * 6 + i % 3]) *
                     halves[i / 3 * 6 + i % 3 + 3]);
  };
  const PeerCall peer = gemm.open(true);
  ASSERT_TRUE(peer.call) << peer.reason;
  EXPECT_EQ(FakeLt::layouts.back().leading, 6);
}

TEST(CublasLt, TakesBatchesAndFoldsThoseOfOneWeight) {
  for (const char* call :
       {"4x5x7 4x7x3", "2x2x5x7 2x2x3x7 --option transpose_b=true",
        "4x7x5 7x3 --option transpose_a=true", "5x7 4x7x3", "4x5x7 7x3 --option c=4x5x3",
        "4x5x7 7x3 --option c=5x3", "4x5x7/8 7x3"}) {
    SCOPED_TRACE(call);
    const Gemm gemm(join("gemm ", call, " --dtype bfloat16"));
    gemm.expect_equal(gemm.open());
  }
  const Gemm folded("gemm 4x5x7 7x3");
  EXPECT_EQ(product_of(folded.problem(), 0).batch, 1);
  EXPECT_EQ(product_of(folded.problem(), 0).d.rows, 20);
  EXPECT_EQ(Gemm("gemm 2x4x5x7 4x7x3").open().reason,
            "b is broadcast along a part of the leading dimensions");
}

TEST(CublasLt, RoundsToTf32WhereOursMay) {
  Gemm("gemm 5x7 7x3 --option allow_tf32=true").open();
  EXPECT_EQ(FakeLt::products.front().compute, kCompute32FastTf32);
  Gemm("gemm 5x7 7x3").open();
  EXPECT_EQ(FakeLt::products.front().compute, kCompute32);
}

TEST(CublasLt, AnEmptyProductHasNoCounterpart) {
  EXPECT_EQ(Gemm("gemm 0x7 7x3").open().reason, "the product is empty");
}

#if __has_include(<cublasLt.h>)
TEST(CublasLt, NumbersAreThoseOfItsHeader) {
  static_assert(sizeof(LtHeuristic) == sizeof(cublasLtMatmulHeuristicResult_t));
  EXPECT_EQ(int(kTransA), CUBLASLT_MATMUL_DESC_TRANSA);
  EXPECT_EQ(int(kTransB), CUBLASLT_MATMUL_DESC_TRANSB);
  EXPECT_EQ(int(kEpilogue), CUBLASLT_MATMUL_DESC_EPILOGUE);
  EXPECT_EQ(int(kBiasPointer), CUBLASLT_MATMUL_DESC_BIAS_POINTER);
  EXPECT_EQ(int(kBiasType), CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE);
  EXPECT_EQ(int(kScaleA), CUBLASLT_MATMUL_DESC_A_SCALE_POINTER);
  EXPECT_EQ(int(kScaleB), CUBLASLT_MATMUL_DESC_B_SCALE_POINTER);
  EXPECT_EQ(int(kFastAccumulation), CUBLASLT_MATMUL_DESC_FAST_ACCUM);
  EXPECT_EQ(int(kBatchCount), CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT);
  EXPECT_EQ(int(kBatchStride), CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
  EXPECT_EQ(int(kId), CUBLASLT_ALGO_CONFIG_ID);
  EXPECT_EQ(int(kTile), CUBLASLT_ALGO_CONFIG_TILE_ID);
  EXPECT_EQ(int(kSplits), CUBLASLT_ALGO_CONFIG_SPLITK_NUM);
  EXPECT_EQ(int(kStages), CUBLASLT_ALGO_CONFIG_STAGES_ID);
  EXPECT_EQ(int(kCluster), CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID);
  EXPECT_EQ(int(kPlain), CUBLASLT_EPILOGUE_DEFAULT);
  EXPECT_EQ(kRelu | kBias, CUBLASLT_EPILOGUE_RELU_BIAS);
  EXPECT_EQ(kGeluTanh | kBias, CUBLASLT_EPILOGUE_GELU_BIAS);
  EXPECT_EQ(kPreferWorkspace, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
  EXPECT_EQ(kTransposed, CUBLAS_OP_T);
  EXPECT_EQ(kCompute32, CUBLAS_COMPUTE_32F);
  EXPECT_EQ(kCompute32FastTf32, CUBLAS_COMPUTE_32F_FAST_TF32);
  EXPECT_EQ(kLtNotSupported, CUBLAS_STATUS_NOT_SUPPORTED);
}
#endif

}  // namespace
}  // namespace tensorcraft::bench
