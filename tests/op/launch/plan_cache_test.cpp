// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/launch/plan_cache.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <tuple>

namespace tensorcraft::op {
namespace {

struct Params {
  const void *x, *bias;
  void* out;
  int64_t rows;
};

TensorView at(uint64_t address, Dims shape = {4, 8}, Access access = Access::read_write) {
  return {reinterpret_cast<void*>(address), DType::float32,  shape,
          contiguous_strides(shape),        Device::cuda(0), access};
}

CallKey key_of(const TensorView& out, const TensorView& x) {
  CallKey key;
  key.add_tensor(out);
  key.add_tensor(x);
  return key;
}

const jit::Rung kRung{"op", "rung", "header", "function"};

// The bias is inside x, after its first row.
Plan plan_of(const TensorView& out, const TensorView& x) {
  const Params params{x.data(), x.data_as<const std::byte>() + 32, out.writable_data(),
                      out.shape(0)};
  Step step;
  step.kernel.rung = &kRung;
  Plan plan;
  plan.add(step, params);
  return plan;
}

RememberedCall remembered(const TensorView& out, const TensorView& x) {
  const CallKey key = key_of(out, x);
  RememberedCall call(key, 1, "variant", plan_of(out, x));
  call.find_values(key, plan_of(shifted(key, 0), shifted(key, 1)));
  return call;
}

TEST(PlanCache, PutsOtherAddressesIntoThePlan) {
  RememberedCall call = remembered(at(0x10000), at(0x20000));
  for (const uint64_t x : {0x30000, 0x70000, 0x20000}) {
    const TensorView out = at(0x50000), in = at(x);
    const Plan* plan = call.plan_for(key_of(out, in));
    ASSERT_NE(plan, nullptr);
    EXPECT_EQ(std::memcmp(plan->bytes().data(), plan_of(out, in).bytes().data(), sizeof(Params)),
              0);
  }
}

// A call with two numbers that only its kernel looks at.
struct SeededParams {
  const void* x;
  int64_t seed, offset;
};
Plan seeded_plan(const TensorView& x, int64_t seed, int64_t offset) {
  Step step;
  step.kernel.rung = &kRung;
  Plan plan;
  plan.add(step, SeededParams{x.data(), seed, offset});
  return plan;
}
CallKey seeded_key(const TensorView& x, int64_t seed, int64_t offset) {
  CallKey key;
  key.add_free(seed);
  key.add_free(offset);
  key.add_tensor(x);
  return key;
}

TEST(PlanCache, PutsOtherFreeNumbersIntoThePlan) {
  const TensorView x = at(0x10000), y = at(0x40000);
  const CallKey key = seeded_key(x, 7, 7);
  RememberedCall call(key, 0, "variant", seeded_plan(x, 7, 7));
  call.find_values(key,
                   seeded_plan(shifted(key, 0), shifted_number(key, 0), shifted_number(key, 1)));
  for (const auto& [in, seed, offset] :
       {std::tuple(x, int64_t(7), int64_t(8)), {x, -1, 8}, {y, INT64_MIN, INT64_MAX}, {y, 7, 7}}) {
    const CallKey other = seeded_key(in, seed, offset);
    EXPECT_TRUE(call.is_like(other));
    const Plan* plan = call.plan_for(other);
    ASSERT_NE(plan, nullptr);
    EXPECT_EQ(std::memcmp(plan->bytes().data(), seeded_plan(in, seed, offset).bytes().data(),
                          sizeof(SeededParams)),
              0);
  }
  CallKey many;
  for (size_t i = 0; i <= CallKey::kMaxNumbers; ++i) many.add_free(0);
  EXPECT_FALSE(many.is_complete());
}

TEST(PlanCache, LeavesOverlapsToTheChecks) {
  RememberedCall call = remembered(at(0x10000), at(0x20000));
  EXPECT_EQ(call.plan_for(key_of(at(0x30000), at(0x30040))), nullptr);
  EXPECT_EQ(call.plan_for(key_of(at(0x30040), at(0x30000))), nullptr);
  EXPECT_NE(call.plan_for(key_of(at(0x30080), at(0x30000))), nullptr);  // one after the other
}

// The checks took slices of one buffer that lie across each other: they may lie so again.
TEST(PlanCache, RepeatsSlicesThatLieAsFarApartAsTheyWereChecked) {
  const auto slice = [](uint64_t address) {
    return TensorView(reinterpret_cast<void*>(address), DType::float32, {4, 8}, {24, 1},
                      Device::cuda(0));
  };
  RememberedCall call = remembered(slice(0x10000), slice(0x10020));
  EXPECT_NE(call.plan_for(key_of(slice(0x10000), slice(0x10020))), nullptr);
  const TensorView out = slice(0x30000), in = slice(0x30020);
  const Plan* plan = call.plan_for(key_of(out, in));
  ASSERT_NE(plan, nullptr);
  EXPECT_EQ(std::memcmp(plan->bytes().data(), plan_of(out, in).bytes().data(), sizeof(Params)), 0);
  EXPECT_EQ(call.plan_for(key_of(slice(0x40000), slice(0x40010))), nullptr);
  EXPECT_NE(call.plan_for(key_of(slice(0x40000), slice(0x50020))), nullptr);
  EXPECT_NE(call.plan_for(key_of(slice(0x60000), slice(0x60020))), nullptr);
}

TEST(PlanCache, KeysDifferInWhatDecidesAPlan) {
  const auto differs = [](const TensorView& out, const TensorView& x) {
    return key_of(at(0x10000), at(0x20000)).words() != key_of(out, x).words();
  };
  EXPECT_FALSE(differs(at(0x30000), at(0x40000)));
  EXPECT_TRUE(differs(at(0x30000), at(0x30000)));  // in place
  EXPECT_TRUE(differs(at(0x30000), at(0x40008)));  // another alignment
  EXPECT_TRUE(differs(at(0x30000), at(0x40000, {8, 4})));
  EXPECT_TRUE(differs(at(0x30000), at(0x40000).transpose(0, 1)));
  EXPECT_TRUE(differs(at(0x30000, {4, 8}, Access::read_only), at(0x40000)));
  CallKey with, without;
  with.add(std::string_view("async"));
  without.add(std::string_view("asynd"));
  EXPECT_NE(with.words(), without.words());
  CallKey one, two, tensor, none;
  one.add(NumberOrTensor(1));
  two.add(NumberOrTensor(2));
  tensor.add(NumberOrTensor(at(0x30000)));
  none.add(NumberOrTensor());
  for (const CallKey* other : {&two, &tensor, &none}) EXPECT_NE(one.words(), other->words());
  EXPECT_NE(tensor.words(), none.words());
}

TEST(PlanCache, DoesNotRememberWhatItCannotRepeat) {
  const TensorView out = at(0x10000), x = at(0x20000);
  const CallKey key = key_of(out, x);
  RememberedCall call(key, 1, "variant", plan_of(out, x));
  Plan odd = plan_of(shifted(key, 0), shifted(key, 1));
  odd.bytes()[offsetof(Params, rows)] = std::byte(9);  // depends on an address in another way
  call.find_values(key, odd);
  EXPECT_EQ(call.plan_for(key), nullptr);

  CallKey without_memory = key_of(out, at(0));
  EXPECT_FALSE(without_memory.is_complete());
  CallKey long_key;
  for (size_t i = 0; i <= CallKey::kMaxWords; ++i) long_key.add(i);
  EXPECT_FALSE(long_key.is_complete());
  EXPECT_FALSE(PlanCache::of_this_thread().wants(long_key));
}

TEST(PlanCache, WantsACallTheSecondTime) {
  PlanCache cache;
  const TensorView out = at(0x10000), x = at(0x20000);
  const CallKey key = key_of(out, x);
  EXPECT_EQ(cache.repeat(key).plan, nullptr);
  EXPECT_FALSE(cache.wants(key));
  EXPECT_TRUE(cache.wants(key));
  cache.remember(key, std::make_unique<RememberedCall>(remembered(out, x)));
  EXPECT_NE(cache.repeat(key).plan, nullptr);
  EXPECT_FALSE(cache.wants(key));
  EXPECT_EQ(cache.repeats(), 1);
}

}  // namespace
}  // namespace tensorcraft::op
