// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/tuning/tuned.hpp"

#include "tensorcraft/jit/source.hpp"
#include "tensorcraft/op/schema.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tensorcraft::op {
namespace {

const DeviceInfo& host() { return device_info(Device::cpu()); }

const std::vector<VariantInfo>& two_variants() {
  static const std::vector<VariantInfo> all{{"fast", {}, {}, {}, DeviceType::cpu},
                                            {"slow", {}, {}, {}, DeviceType::cpu}};
  return all;
}

// Nothing is tuned when it begins and when it ends.
class Tuned : public testing::Test {
 protected:
  Tuned() { forget_tuned(); }
  ~Tuned() override { forget_tuned(); }
};

TEST_F(Tuned, IsEmptyUntilSomethingIsSet) {
  EXPECT_FALSE(may_have_tuned(Device::cpu()));
  EXPECT_FALSE(has_tuned(host(), "toy"));
  EXPECT_FALSE(find_tuned(host(), "toy", two_variants(), "a").has_value());
  EXPECT_FALSE(tuning_history(host(), "toy").has_value());
  const uint64_t before = tuned_generation();
  const TunedEntry fast{"fast", "tile=1", 2, 3};
  set_tuned(host(), "toy", two_variants(), "a", fast);
  EXPECT_NE(tuned_generation(), before);
  EXPECT_TRUE(may_have_tuned(Device::cpu()));
  EXPECT_TRUE(has_tuned(host(), "toy"));
  EXPECT_FALSE(has_tuned(host(), "other"));
  EXPECT_EQ(find_tuned(host(), "toy", two_variants(), "a"), fast);
  EXPECT_FALSE(find_tuned(host(), "toy", two_variants(), "b").has_value());
  forget_tuned();
  EXPECT_FALSE(may_have_tuned(Device::cpu()));
}

TEST_F(Tuned, IsOfOneDevice) {
  set_tuned(host(), "toy", two_variants(), "a", {"fast", "", 1, 1});
  const DeviceInfo other{.device = Device::cuda(0), .name = "A GPU that nothing is tuned for"};
  EXPECT_FALSE(has_tuned(other, "toy"));
}

TEST_F(Tuned, IsStaleOnceTheVariantsAreOthers) {
  set_tuned(host(), "toy", two_variants(), "a", {"fast", "", 1, 1});
  const std::vector<VariantInfo> one(two_variants().begin(), two_variants().begin() + 1);
  EXPECT_FALSE(find_tuned(host(), "toy", one, "a").has_value());
}

TEST_F(Tuned, VersionsFollowTheDeviceCode) {
  jit::add_source("tests/tuned_a.cuh", "int a();");
  jit::add_source("tests/tuned_b.cuh", "int b();");
  const auto version = [](std::string_view file) {
    return version_of(std::vector<VariantInfo>{{"v", {}, {}, {}, DeviceType::cuda, file}});
  };
  EXPECT_EQ(version("tests/tuned_a.cuh"), version("tests/tuned_a.cuh"));
  EXPECT_NE(version("tests/tuned_a.cuh"), version("tests/tuned_b.cuh"));
  EXPECT_EQ(version("tests/tuned_a.cuh").size(), 16u);
}

TEST_F(Tuned, AScopeWithoutItSeesTheModelAlone) {
  set_tuned(host(), "toy", two_variants(), "a", {"fast", "", 1, 1});
  {
    const WithoutTuned scope;
    EXPECT_FALSE(has_tuned(host(), "toy"));
  }
  EXPECT_TRUE(has_tuned(host(), "toy"));
}

TEST_F(Tuned, HistoryIsHowNearTheModelCame) {
  set_tuned(host(), "toy", two_variants(), "a", {"fast", "", 5, 10});
  set_tuned(host(), "toy", two_variants(), "b", {"fast", "", 9, 9});
  EXPECT_EQ(tuning_history(host(), "toy"), 0.75);
}

TEST_F(Tuned, GainIsOfTheTime) {
  EXPECT_EQ(gain_text({"v", "", 100, 103}), "3 % over the model");
  EXPECT_EQ(gain_text({"v", "", 100, 100}), "0 % over the model");
  EXPECT_EQ(gain_text({"v", "", 0, 0}), "0 % over the model");
}

TEST_F(Tuned, TensorsAreTextWithoutTheirAddresses) {
  float memory[8] = {};
  const TensorView whole(memory, DType::float32, {2, 4}, Device::cpu());
  const TensorView turned = whole.transpose(0, 1);
  const TensorView single(memory + 1, DType::float32, Dims{}, Device::cpu());
  NamedTensors inputs, outputs;
  inputs.add("a", whole);
  inputs.add("b", turned);
  outputs.add("out", single);
  EXPECT_EQ(tensors_text(outputs, inputs), "a=float32[2,4] b=float32[4,2]/1,4 out=float32[]");
}

}  // namespace
}  // namespace tensorcraft::op
