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

template <class A, class B, Config C>
void rung(const Params& p) {
  *p.out = double(sizeof(A)) * 1000 + double(sizeof(B)) * 100 + C.threads + C.nested;
}

InstanceList all() {
  const auto body = []<class A, class B, Config C>(const Params& p) { rung<A, B, C>(p); };
  return concat(instances<Params, kExact>(AnyOf<Types<float, bf16>, Types<int64_t, bf16>>{}, body),
                instances<Params, kNested>(AnyOf<Types<float, bf16>>{}, body, &Config::nested));
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
