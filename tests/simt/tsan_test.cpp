// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/device/shared.cuh"
#include "tensorcraft/simt/launch.hpp"
#include "tensorcraft/simt/shadow.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <string>

namespace tensorcraft::simt {
namespace {

using tensorcraft::static_shared;

template <class T>
struct One {
  alignas(16) T value, other;
};
struct alignas(16) Sixteen {
  uint64_t parts[2];
};

class SimtAccess : public ::testing::Test {
  void SetUp() override {
    if (!kRaceBuild) GTEST_SKIP() << "accesses are seen in the race build";
  }
};

std::string fault_of(Body body) {
  try {
    launch({.name = "k", .block = {2}}, body, nullptr);
  } catch (const Error& e) {
    return e.what();
  }
  return "no fault";
}

template <class T>
void race(const void*) {
  auto& s = static_shared<One<T>>();
  if (threadIdx.x == 0) s.value = T{};
  if (threadIdx.x == 1) s.value = T{};
}

template <class T>
void expect_race() {
  EXPECT_NE(fault_of(race<T>).find("race: this thread writes"), std::string::npos) << sizeof(T);
}

TEST_F(SimtAccess, EverySizeIsSeen) {
  expect_race<uint8_t>();
  expect_race<uint16_t>();
  expect_race<uint32_t>();
  expect_race<uint64_t>();
  expect_race<Sixteen>();
}

template <class T>
void add(const void*) {
  auto& s = static_shared<One<T>>();
  if (threadIdx.x == 0) s.value = 5;
  __syncthreads();
  std::atomic_ref<T>(s.value).fetch_add(T(threadIdx.x + 1));
  T expected = 0;
  std::atomic_ref<T>(s.value).compare_exchange_strong(expected, 1);
  __syncthreads();
  EXPECT_EQ(s.value, 8);
}

TEST_F(SimtAccess, AtomicsWorkAndDoNotRaceWithEachOther) {
  EXPECT_EQ(fault_of(add<int>), "no fault");
  EXPECT_EQ(fault_of(add<uint64_t>), "no fault");
  EXPECT_EQ(fault_of(add<uint16_t>), "no fault");
  EXPECT_EQ(fault_of(add<uint8_t>), "no fault");
}

TEST_F(SimtAccess, AnAtomicRacesWithAPlainAccess) {
  EXPECT_NE(fault_of([](const void*) {
              auto& s = static_shared<One<int>>();
              if (threadIdx.x == 0) s.value = 0;
              if (threadIdx.x == 1) std::atomic_ref<int>(s.value).fetch_add(1);
            }).find("race: this thread updates atomically"),
            std::string::npos);
}

TEST_F(SimtAccess, AMisalignedAccessIsReported) {
  EXPECT_NE(fault_of([](const void*) {
              auto& s = static_shared<One<uint64_t>>();
              auto* odd = reinterpret_cast<char*>(&s) + 4;
              asm("" : "+r"(odd));  // the compiler must not see through it
              *reinterpret_cast<volatile uint32_t*>(odd) = 1;
              *reinterpret_cast<uint64_t*>(odd) = 1;
            }).find("misaligned access: 8 bytes"),
            std::string::npos);
}

}  // namespace
}  // namespace tensorcraft::simt
