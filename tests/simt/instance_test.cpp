// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/simt/instance.hpp"

#include <gtest/gtest.h>

namespace tensorcraft::simt {
namespace {

struct Params {
  double* out;
};
struct Config {
  int threads = 32;
  int nested = 0;
  friend bool operator==(const Config&, const Config&) = default;
};
constexpr std::array kExact{Config{.threads = 32}, Config{.threads = 64}};
constexpr std::array kNested{Config{.threads = 32, .nested = 1}};

struct Sizes {
  template <class A, class B, Config C>
  static void run(const Params& p) {
    *p.out = double(sizeof(A)) * 1000 + double(sizeof(B)) * 100 + C.threads + C.nested;
  }
};

InstanceList all() {
  return concat(list<Sizes, kExact>(Pairs<Types<float, int64_t>, Types<bf16>>{}),
                list<Sizes, kNested>(AnyOf<Types<float, bf16>>{}, &Config::nested));
}

// What the instance computes; 0 if there is none.
double result(std::initializer_list<DType> types, const Config& config) {
  const InstanceList list = all();
  const Instance* found = find(list, {types.begin(), types.size()}, config_bytes(config));
  double out = 0;
  const Params params{&out};
  if (found) found->body(&params);
  return out;
}

TEST(Instances, AreCompiledForEveryTypeAndConfig) {
  EXPECT_EQ(all().size(), 5u);
  EXPECT_EQ(result({DType::float32, DType::bfloat16}, {.threads = 32}), 4232);
  EXPECT_EQ(result({DType::float32, DType::bfloat16}, {.threads = 64}), 4264);
  EXPECT_EQ(result({DType::int64, DType::bfloat16}, {.threads = 64}), 8264);
}

TEST(Instances, KnowTheSizeOfTheirParams) {
  for (const Instance& one : all()) EXPECT_EQ(one.params_bytes, sizeof(Params));
}

TEST(Instances, PairEachTypeOfAListWithEachOfAnother) {
  using Pair = Pairs<Types<float, bf16>, Types<int32_t, int64_t>>;
  using Written = AnyOf<Types<float, int32_t>, Types<float, int64_t>, Types<bf16, int32_t>,
                        Types<bf16, int64_t>>;
  static_assert(std::is_same_v<Pair, Written>);
}

TEST(Instances, AreFoundByAllTypesAndTheWholeConfig) {
  EXPECT_EQ(result({DType::float32, DType::float16}, {}), 0);
  EXPECT_EQ(result({DType::float32}, {}), 0);
  EXPECT_EQ(result({DType::float32, DType::bfloat16}, {.threads = 128}), 0);
  EXPECT_EQ(result({DType::int64, DType::bfloat16}, {.threads = 32, .nested = 1}), 0);
}

TEST(Instances, ServeConfigsThatDifferInAMemberThatMay) {
  EXPECT_EQ(result({DType::float32, DType::bfloat16}, {.threads = 32, .nested = 1}), 4233);
  EXPECT_EQ(result({DType::float32, DType::bfloat16}, {.threads = 32, .nested = 7}), 4233);
  EXPECT_EQ(result({DType::float32, DType::bfloat16}, {.threads = 64, .nested = 7}), 0);
  EXPECT_EQ(result({DType::float32, DType::bfloat16}, {.threads = 32}), 4232)
      << "the exact is first";
}

}  // namespace
}  // namespace tensorcraft::simt
