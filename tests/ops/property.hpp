// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/op/definition.hpp"
#include "tensorcraft/ops/all.hpp"
#include "tensorcraft/simt/instrumentation.hpp"
#include "tests/support/tensors.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <random>
#include <set>
#include <string>
#include <vector>

// Properties that hold for any input, each tried on random ones on the CPU, the emulator and a GPU.
namespace tensorcraft::test {

using Random = std::mt19937;

inline int64_t between(Random& random, int64_t low, int64_t high) {
  return std::uniform_int_distribution<int64_t>(low, high)(random);
}
inline float real_between(Random& random, float low, float high) {
  return std::uniform_real_distribution<float>(low, high)(random);
}

// A new one, or with TC_TEST_SEED=N that of the run that printed N.
inline unsigned printed_seed() {
  const char* given = std::getenv("TC_TEST_SEED");
  const unsigned seed = given ? unsigned(std::stoul(given)) : std::random_device()();
  std::cout << "[ SEED     ] " << seed << std::endl;
  return seed;
}

// Runs a check on a hundred random cases, and stops at the first that fails.
template <class Check>
void for_many_cases(Check&& check) {
  constexpr int kCases = 100;
  const unsigned seed = printed_seed();
  SCOPED_TRACE(join("TC_TEST_SEED=", seed));
  Random random(seed);
  int cases = 0;
  for (; cases < kCases && !::testing::Test::HasFatalFailure(); ++cases) check(random);
  ASSERT_EQ(cases, kCases) << "the last one failed";
}

// A place, one row of every table there, and the row that plain operators are compared by.
struct Rows {
  Device device;
  std::string_view variant, reference;
};

inline std::vector<Device> devices_of_properties() {
  std::vector<Device> all = places();
  all.push_back(Device::cuda(0));
  return all;
}
inline std::vector<Rows> rows_of_properties() {
  std::vector<Rows> all;
  for (const Device d : devices_of_properties()) {
    const bool is_host = d == Device::cpu();
    all.push_back({d, is_host ? "cpu" : "", is_host ? "reference" : "naive"});
    all.push_back({d, all.back().reference, all.back().reference});
  }
  return all;
}
inline std::string name_of_place(Device d) {
  return d.is_cuda() ? "gpu" : std::string(to_string(d.type));
}

inline std::vector<std::byte> bytes_of(const Tensor& t) {
  std::vector<std::byte> bytes(t.nbytes());
  t.copy_to_host(bytes.data(), bytes.size());
  return bytes;
}

// A test on one device, which is skipped where there is no such GPU.
template <class Param>
class OnDevice : public ::testing::TestWithParam<Param> {
 protected:
  explicit OnDevice(Device device) : device_(device) {}
  void SetUp() override {
    if (device_.is_cuda() && cuda_device_count() == 0) GTEST_SKIP() << "there is no GPU";
  }
  Tensor normal_tensor(const Dims& shape, Random& random, float deviation = 1,
                       float mean = 0) const {
    return test::normal_tensor(shape, random, mean, deviation).to(device_);
  }
  // One of float32 and the 16-bit floats that the device has kernels of.
  DType any_float(Random& random) const {
    const DType all[] = {DType::float32, DType::float16, DType::bfloat16};
    for (;;)
      if (const DType one = all[random() % 3]; has_kernels_of(one)) return one;
  }
  bool has_kernels_of(DType dtype) const {
    return device_ != Device::simt() || simt::compiles(dtype);
  }
  const Device device_;
};

// One variant of each operator.
class Property : public OnDevice<Rows> {
 protected:
  Property() : OnDevice(GetParam().device) {}
};

inline std::string name_of_rows(const ::testing::TestParamInfo<Rows>& info) {
  const Rows& r = info.param;
  return join(r.variant.empty() ? "best" : r.variant, "_on_", name_of_place(r.device));
}

// All variants of an operator. On the emulator they take random calls only in a full run, which
// compiles their kernels one by one; each run has the drawn cases of conformance_test.cpp.
class PropertyOfVariants : public OnDevice<Device> {
 protected:
  PropertyOfVariants() : OnDevice(GetParam()) {}
  void SetUp() override {
    OnDevice::SetUp();
    if (device_ == Device::simt() && !std::getenv("TC_TEST_FULL"))
      GTEST_SKIP() << "random calls on the emulator are part of a full run: set TC_TEST_FULL";
  }
  // call(variant) for every variant of the device that takes the call; their names come into ran_.
  template <class Call>
  void for_each_variant(std::string_view op, Call&& call) {
    for (const op::VariantInfo& row : find_operator(op).description().variants) {
      if (op::runs_kernels(row.device) != (device_ != Device::cpu())) continue;
      try {
        call(row.name);
        ran_.insert(row.name);
      } catch (const Error& e) {
        if (e.kind() != ErrorKind::unsupported) throw;
      }
    }
  }
  std::set<std::string_view> ran_;
};

}  // namespace tensorcraft::test
