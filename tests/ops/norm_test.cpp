// SPDX-License-Identifier: Apache-2.0
// Checks what rms_norm and layer_norm promise alike: residuals, outputs in place, codes, and
// mistakes.
#include "tensorcraft/op/host/code_rows.hpp"
#include "tensorcraft/ops/norm/norm.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/tensors.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace tensorcraft {
namespace {

using test::expect_error;
using test::normal_tensor;
using test::values;

struct Rms {
  using Options = RmsNormOptions;
  static constexpr const char* kName = "rms_norm";
  template <class... Arguments>
  static auto run(const Arguments&... arguments) {
    return rms_norm(arguments...);
  }
};
struct Layer {
  using Options = LayerNormOptions;
  static constexpr const char* kName = "layer_norm";
  template <class... Arguments>
  static auto run(const Arguments&... arguments) {
    return layer_norm(arguments...);
  }
};

template <class Norm>
class Norms : public ::testing::Test {
 protected:
  using Options = typename Norm::Options;
  static constexpr const char* kHostVariants[] = {"cpu", "reference"};

  // The call fails with the operator's name in front of `text`.
  template <class... Tensors>
  static void refuses(const std::string& text, const Options& options, const Tensors&... tensors) {
    const ErrorKind kind =
        text.starts_with("out_dtype must be") ? ErrorKind::type : ErrorKind::value;
    expect_error(kind, [&] { Norm::run(tensors..., options); }, join(Norm::kName, ": ", text));
  }
};
using Both = ::testing::Types<Rms, Layer>;
class Name {
 public:
  template <class Norm>
  static std::string GetName(int) {
    return Norm::kName;
  }
};
TYPED_TEST_SUITE(Norms, Both, Name);

TYPED_TEST(Norms, AResidualEqualsASeparateAddition) {
  std::mt19937 random(3);
  const Tensor x = normal_tensor({6, 77}, random, 0.5f, 2),
               residual = normal_tensor({6, 77}, random, 0.5f, 2);
  Tensor sum(DType::float32, {6, 77});
  for (int64_t i = 0; i < sum.size(); ++i)
    sum.data_as<float>()[i] = x.data_as<float>()[i] + residual.data_as<float>()[i];
  for (const auto* variant : this->kHostVariants) {
    SCOPED_TRACE(variant);
    const typename TypeParam::Options with{.residual = residual.view(), .variant = variant},
        without{.variant = variant};
    const auto fused = TypeParam::run(x, with);
    EXPECT_EQ(values(fused.residual_out), values(sum));
    const auto separate = values(TypeParam::run(sum, without).out);
    for (size_t i = 0; i < separate.size(); ++i)
      ASSERT_NEAR(fused.out.template data_as<float>()[i], separate[i], 1e-6);
  }
}

TYPED_TEST(Norms, OutputsMayReplaceXAndResidual) {
  for (const auto* variant : this->kHostVariants) {
    SCOPED_TRACE(variant);
    std::mt19937 random(4);
    Tensor x = normal_tensor({4, 33}, random, 0.5f, 2),
           residual = normal_tensor({4, 33}, random, 0.5f, 2);
    typename TypeParam::Options options{.residual = residual.view(), .variant = variant};
    const auto expected = TypeParam::run(x, options);
    options.residual_out = residual.view();
    TypeParam::run(x, x, options);
    EXPECT_EQ(values(x), values(expected.out));
    EXPECT_EQ(values(residual), values(expected.residual_out));
  }
}

TYPED_TEST(Norms, CodesAreThoseOfTheFloat32Result) {
  std::mt19937 random(11);
  const Tensor x = normal_tensor({7, 333}, random, 0.5f, 2),
               weight = normal_tensor({333}, random, 0.5f, 2);
  for (const auto* variant : this->kHostVariants) {
    SCOPED_TRACE(variant);
    typename TypeParam::Options options{.weight = weight.view(), .variant = variant};
    if constexpr (requires { options.activation; }) options.activation = Activation::silu;
    const auto y = TypeParam::run(x, options);
    for (const DType dtype : {DType::float8_e4m3fn, DType::float8_e5m2, DType::int8})
      for (const bool per_token : {false, true}) {
        options.out_dtype = dtype;
        options.scale = per_token ? std::nullopt : std::optional(0.02f);
        options.per_token = per_token;
        const auto codes = TypeParam::run(x, options);
        const Tensor expected(dtype, x.shape()), scales(DType::float32, {7});
        const host::CodeRows rows(expected, per_token ? std::optional(scales.view()) : std::nullopt,
                                  0.02f);
        for (int64_t row = 0; row < 7; ++row)
          rows.commit(row, y.out.template data_as<float>() + row * 333);
        EXPECT_EQ(std::memcmp(codes.out.data(), expected.data(), size_t(x.size())), 0) << dtype;
        EXPECT_EQ(codes.scales.size(), per_token ? 7 : 0);
        if (!per_token) continue;
        EXPECT_EQ(values(codes.scales), values(scales)) << dtype;
      }
  }
}

TYPED_TEST(Norms, SayWhatIsWrongAboutCodes) {
  const Tensor x(DType::float32, {2, 8}), out(DType::int8, {2, 8});
  this->refuses(
      "out_dtype must be float8_e4m3fn, float8_e5m2, int8 or that of x, float32, got int32",
      {.out_dtype = DType::int32}, x);
  const std::string either = "out_dtype int8 needs either scale or per_token=True, and not both";
  this->refuses(either, {.out_dtype = DType::int8}, x);
  this->refuses(either, {.out_dtype = DType::int8, .scale = 1, .per_token = true}, x);
  this->refuses("scale and per_token are of codes; give out_dtype too", {.scale = 1}, x);
  this->refuses("scale must be finite and above 0, got 0", {.out_dtype = DType::int8, .scale = 0},
                x);
  this->refuses("scales is written where per_token is set; give both or none",
                {.out_dtype = DType::int8, .per_token = true}, out.view(), x.view());
}

TYPED_TEST(Norms, SayWhatIsWrong) {
  const Tensor x(DType::float32, {2, 8}), w(DType::float32, {7}), number(DType::float32, {}),
      out(DType::float32, {2, 8}), sum(DType::float32, {2, 8}), row(DType::float32, {8});
  this->refuses("x: expected at least 1 dimension, got shape []", {}, number);
  this->refuses("eps must be at least 0, got -1", {.eps = -1}, x);
  this->refuses(
      "weight: Size mismatch for shape#0('cols'): expected 8 but got 7; weight is [7], "
      "expected [8]",
      {.weight = w.view()}, x);
  this->refuses("residual_out is x + residual; give residual too", {.residual_out = sum.view()},
                out.view(), x.view());
  this->refuses("an output overlaps the memory of weight; give it memory of its own",
                {.weight = row.view()}, row.view(), x.view().select(0, 0));
}

}  // namespace
}  // namespace tensorcraft
