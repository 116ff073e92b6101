// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/check.hpp"
#include "tensorcraft/core/tensor_matcher.hpp"

#include <cstdlib>
#include <new>

#include <gtest/gtest.h>

namespace {
thread_local bool allocation_fails = false;

struct NoAllocation {
  NoAllocation() { allocation_fails = true; }
  ~NoAllocation() { allocation_fails = false; }
};
}  // namespace

// With a sanitizer one of the two below is inlined and the other is not, which GCC takes for a
// mistake.
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"
void* operator new(std::size_t bytes) {
  void* memory = allocation_fails ? nullptr : std::malloc(bytes ? bytes : 1);
  if (!memory) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace tensorcraft {
namespace {

TEST(Allocation, TheFailingOperatorNewIsInUse) {
  bool failed = false;
  {
    const NoAllocation guard;
    try {
      ::operator delete(::operator new(sizeof(int)));
    } catch (const std::bad_alloc&) {
      failed = true;
    }
  }
  EXPECT_TRUE(failed);
}

TEST(Allocation, ACheckThatHoldsAllocatesNothing) {
  const NoAllocation guard;
  RuntimeCheck(true, "a text of more characters than fit into a small string ", 42);
}

TEST(Allocation, AMatchThatHoldsAllocatesNothing) {
  float x = 0;
  const TensorView a(&x, DType::float32, {8, 64}), b(&x, DType::float32, {64, 8});
  const NoAllocation guard;
  SymbolicSize m("m"), n("n"), k("k");
  SymbolicDType dtype({DType::float32, DType::bfloat16});
  SymbolicDevice device;
  TensorMatcher({m, k}).with_dtype(dtype).with_device(device).verify(a, "gemm", "a");
  TensorMatcher({k, n}).with_dtype(dtype).with_device(device).verify(b, "gemm", "b");
}

}  // namespace
}  // namespace tensorcraft
