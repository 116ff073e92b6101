// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/with_stack.hpp"

#include "tests/support/expect_error.hpp"

#include <functional>
#include <thread>
#include <utility>

#include <gtest/gtest.h>
#include <pthread.h>

namespace tensorcraft {
namespace {

constexpr size_t kSmall = 128 << 10;

// Runs the call on a thread with a stack of kSmall bytes.
void on_small_stack(std::function<void()> call) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kSmall);
  pthread_t thread;
  const auto run = [](void* of) -> void* {
    (*static_cast<std::function<void()>*>(of))();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, run, &call), 0);
  pthread_attr_destroy(&attributes);
  pthread_join(thread, nullptr);
}

TEST(WithStack, IsTheCallersOwnWhereThatIsLargeEnough) {
  std::thread([] {
    const auto caller = std::this_thread::get_id();
    EXPECT_GT(stack_left(), kAmpleStack);
    EXPECT_EQ(with_stack("work", kAmpleStack, [] { return std::this_thread::get_id(); }), caller);
  }).join();
}

TEST(WithStack, IsThatOfAnotherThreadWhereTheCallersIsSmall) {
  on_small_stack([] {
    EXPECT_LT(stack_left(), kSmall);
    const auto work = [] { return std::pair(std::this_thread::get_id(), stack_left()); };
    const auto [thread, left] = with_stack("work", kAmpleStack, work);
    EXPECT_NE(thread, std::this_thread::get_id());
    EXPECT_GE(left, kAmpleStack);
  });
}

TEST(WithStack, ThrowsWhatTheWorkThrows) {
  on_small_stack([] {
    test::expect_error(
        ErrorKind::value,
        [] { run_with_stack("work", kAmpleStack, [] { fail(ErrorKind::value, "no such row"); }); },
        "no such row");
  });
}

TEST(WithStack, SaysWhatIsMissingIfNoThreadHasIt) {
  on_small_stack([] {
    test::expect_error_with(ErrorKind::out_of_memory, "and the system starts no thread",
                            [] { run_with_stack("work", size_t(1) << 60, [] {}); });
  });
}

}  // namespace
}  // namespace tensorcraft
