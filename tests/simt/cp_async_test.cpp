// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/device/ptx/mbarrier.cuh"
#include "tensorcraft/device/shared.cuh"
#include "tests/simt/kernels.hpp"

#include <numeric>

namespace tensorcraft::simt {
namespace {

using tensorcraft::static_shared;

struct Shared {
  alignas(16) int values[2][32 * 4];
  uint64_t barrier;
};
struct Params {
  const int* in;
  int* out;
};

const Params& params(const void* p) { return *static_cast<const Params*>(p); }

struct Data {
  alignas(16) int in[256];
  std::vector<int> out = std::vector<int>(256, -2);
  Params p{in, out.data()};
  Data() { std::iota(std::begin(in), std::end(in), 100); }
};

void two_groups(const void* p) {
  Shared& s = static_shared<Shared>();
  const int i = int(threadIdx.x) * 4;
  cp_async(&s.values[0][i], params(p).in + i, 16, 16);
  cp_async_commit();
  cp_async(&s.values[1][i], params(p).in + 128 + i, 8, 8);
  cp_async(&s.values[1][i + 2], params(p).in + 130 + i, 4, 4);
  cp_async(&s.values[1][i + 3], nullptr, 4, 0);  // zeros: nothing is read
  cp_async_commit();
  cp_async_wait_group(1);
  __syncthreads();
  for (int j = 0; j < 4; ++j) params(p).out[i + j] = s.values[0][127 - i - j];
  cp_async_wait_group(0);
  __syncthreads();
  for (int j = 0; j < 4; ++j) params(p).out[128 + i + j] = s.values[1][i + j];
}

TEST(SimtCpAsync, LandsNoLaterThanTheWaitThatCoversItsGroup) {
  for (const Options& o : timings()) {
    Data d;
    run({.name = "two_groups", .block = {32}}, two_groups, &d.p, o);
    for (int i = 0; i < 128; ++i) {
      EXPECT_EQ(d.out[size_t(i)], 100 + 127 - i);
      EXPECT_EQ(d.out[size_t(128 + i)], i % 4 == 3 ? 0 : 228 + i);
    }
  }
}

TEST(SimtCpAsync, ShowsAMissingWaitOrCommit) {
  if (kRaceBuild) GTEST_SKIP() << kSooner;
  Data d;
  const auto first = [&](Body body) {
    run({.name = "k", .block = {1}}, body, &d.p, {});
    return d.out[0];
  };
  EXPECT_EQ(first([](const void* p) {
              Shared& s = static_shared<Shared>();
              cp_async(s.values[0], params(p).in, 4, 4);
              cp_async_commit();
              cp_async_wait_group(1);
              params(p).out[0] = s.values[0][0];
            }),
            -1);
  EXPECT_EQ(first([](const void* p) {
              Shared& s = static_shared<Shared>();
              cp_async(s.values[0], params(p).in, 4, 4);
              cp_async_wait_group(0);
              params(p).out[0] = s.values[0][0];
            }),
            -1);
  // A copy into what is still read: the old value is gone at once.
  EXPECT_EQ(first([](const void* p) {
              Shared& s = static_shared<Shared>();
              s.values[0][0] = 7;
              cp_async(s.values[0], params(p).in, 4, 4);
              cp_async_commit();
              params(p).out[0] = s.values[0][0];
              cp_async_wait_group(0);
            }),
            -1);
  EXPECT_EQ(first([](const void* p) {
              Shared& s = static_shared<Shared>();
              cp_async(s.values[0], params(p).in, 4, 4);
              cp_async_wait_all();
              params(p).out[0] = s.values[0][0];
            }),
            100);
}

void arrive_by_copies(const void* p) {
  Shared& s = static_shared<Shared>();
  const int i = int(threadIdx.x) * 4;
  if (i == 0) ptx::mbarrier_init(&s.barrier, 32);
  __syncthreads();
  cp_async(&s.values[0][i], params(p).in + i, 16, 16);
  ptx::cp_async_mbarrier_arrive_noinc(&s.barrier);
  ptx::mbarrier_wait_parity(&s.barrier, 0);
  for (int j = 0; j < 4; ++j) params(p).out[i + j] = s.values[0][127 - i - j];
  __syncthreads();
  // This form adds its arrival to those the phase waits for; each thread arrives once more.
  cp_async(&s.values[1][i], params(p).in + i, 16, 16);
  ptx::cp_async_mbarrier_arrive(&s.barrier);
  ptx::mbarrier_arrive(&s.barrier);
  ptx::mbarrier_wait_parity(&s.barrier, 1);
  for (int j = 0; j < 4; ++j) params(p).out[128 + i + j] = s.values[1][127 - i - j];
}

TEST(SimtCpAsync, ArrivesAtABarrierBehindItsCopies) {
  for (const Options& o : timings()) {
    Data d;
    run({.name = "arrive_by_copies", .block = {32}}, arrive_by_copies, &d.p, o);
    for (int i = 0; i < 256; ++i) EXPECT_EQ(d.out[size_t(i)], 100 + 127 - i % 128);
  }
}

TEST(SimtCpAsync, ReportsWhatTheHardwareCannotCopy) {
  Data d;
  const auto text = [&](Body body) { return fault_of({.block = {1}}, body, &d.p); };
  expect_fault(text([](const void* p) {
                 cp_async(static_shared<Shared>().values[0] + 1, params(p).in, 8, 8);
               }),
               "block (0, 0, 0), thread (0, 0, 0): cp.async: both addresses are multiples of 8");
  expect_fault(text([](const void* p) {
                 cp_async(static_shared<Shared>().values[0], params(p).in, 12, 12);
               }),
               "copies 4, 8 or 16 bytes, not 12");
  expect_fault(
      text([](const void* p) { cp_async(static_shared<Shared>().values[0], params(p).in, 4, 5); }),
      "reads 0 to 4 bytes, not 5");
  expect_fault(text([](const void* p) { cp_async(params(p).out, params(p).in, 4, 4); }),
               "the destination (4 bytes) is not in shared memory");
}

}  // namespace
}  // namespace tensorcraft::simt
