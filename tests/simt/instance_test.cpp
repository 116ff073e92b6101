// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/simt/instance.hpp"

#include <gtest/gtest.h>

#include <memory>

namespace tensorcraft::simt {
namespace {

struct Config {
  int threads = 32;
};
void body(const void*) {}
constexpr Instance kList[] = {
    // in their order
    {"test::f", {DType::float32, DType::bfloat16}, 2, config_bytes(Config{.threads = 32}), body},
    {"test::f", {DType::float32, DType::bfloat16}, 2, config_bytes(Config{.threads = 64}), body},
    {"test::f", {DType::float32}, 1, config_bytes(Config{.threads = 32}), body},
    {"test::none", {}, 0, {}, body},
};

struct Call {
  std::string_view function;
  std::vector<DType> types;
  int threads = 32;
};
// Where the list has it; -1: it has not.
ptrdiff_t place_of(const Call& call) {
  const ConfigBytes config = config_bytes(Config{call.threads});
  const Instance* const found = find_in(kList, {call.function, call.types, config});
  return found ? found - kList : -1;
}

TEST(Instances, AreFoundByFunctionAllTypesAndTheWholeConfig) {
  EXPECT_EQ(place_of({"test::f", {DType::float32, DType::bfloat16}}), 0);
  EXPECT_EQ(place_of({"test::f", {DType::float32, DType::bfloat16}, 64}), 1);
  EXPECT_EQ(place_of({"test::f", {DType::float32}}), 2);
  EXPECT_EQ(place_of({"test::f", {DType::float32}, 64}), -1);
  EXPECT_EQ(place_of({"test::f", {DType::float32, DType::float16}}), -1);
  EXPECT_EQ(place_of({"test::f", {}}), -1);
  EXPECT_EQ(place_of({"test::none", {}, 0}), 3);
  EXPECT_EQ(place_of({"test::g", {DType::float32}}), -1);
}

// A program's own are known beside the library's, in whatever order they come and go.
TEST(Instances, AreKnownAsLongAsTheirObject) {
  const ConfigBytes config = config_bytes(Config{});
  const DType type = DType::float32;
  const Wanted wanted{"test::f", {&type, 1}, config};
  const auto all = [](const Wanted& w) { return find_in(kList, w); };
  const auto none = [](const Wanted&) -> const Instance* { return nullptr; };
  EXPECT_EQ(find_instance(wanted), nullptr);
  auto first = std::make_unique<KnownInstances>(all);
  auto second = std::make_unique<KnownInstances>(none);
  EXPECT_EQ(find_instance(wanted), &kList[2]);
  first.reset();
  EXPECT_EQ(find_instance(wanted), nullptr);
  first = std::make_unique<KnownInstances>(all);
  second.reset();
  EXPECT_EQ(find_instance(wanted), &kList[2]);
  first.reset();
  EXPECT_EQ(find_instance(wanted), nullptr);
}

}  // namespace
}  // namespace tensorcraft::simt
