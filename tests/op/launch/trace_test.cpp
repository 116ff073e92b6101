// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/launch/trace.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <thread>

namespace tensorcraft::op {
namespace {

void call(std::string_view op, std::string_view variant) {
  const Trace::Scope scope(Trace::active(), op, variant, Device::cpu(), {});
}

TEST(Trace, CountsCallsByOperatorAndVariant) {
  Trace trace;
  for (int i = 0; i < 3; ++i) call("add", "cpu");
  call("add", "reference");
  call("mul", "cpu");
  const auto rows = trace.rows();
  ASSERT_EQ(rows.size(), 3u);
  long calls = 0;
  for (const Trace::Row& row : rows) {
    calls += row.calls;
    EXPECT_GE(row.milliseconds, 0);
    EXPECT_EQ(row.calls, row.op == "add" && row.variant == "cpu" ? 3 : 1);
  }
  EXPECT_EQ(calls, 5);
  for (size_t i = 1; i < rows.size(); ++i)
    EXPECT_GE(rows[i - 1].milliseconds, rows[i].milliseconds);
}

TEST(Trace, TheInnerOneRecords) {
  Trace outer;
  {
    Trace inner;
    call("add", "cpu");
    EXPECT_EQ(inner.rows().size(), 1u);
  }
  call("mul", "cpu");
  ASSERT_EQ(outer.rows().size(), 1u);
  EXPECT_EQ(outer.rows()[0].op, "mul");
}

TEST(Trace, TracesMayEndInAnyOrder) {
  auto outer = std::make_unique<Trace>();
  auto inner = std::make_unique<Trace>();
  outer.reset();
  call("add", "cpu");
  EXPECT_EQ(inner->rows().size(), 1u);
  inner.reset();
  EXPECT_EQ(Trace::active(), nullptr);
  call("add", "cpu");
}

TEST(Trace, MayEndOnAnotherThread) {
  auto trace = std::make_unique<Trace>();
  std::thread([&] { trace.reset(); }).join();
  EXPECT_EQ(Trace::active(), nullptr);
  call("add", "cpu");
}

TEST(Trace, KeepsItsRowsOnceStopped) {
  Trace trace;
  call("add", "cpu");
  trace.stop();
  EXPECT_EQ(Trace::active(), nullptr);
  call("add", "cpu");
  EXPECT_EQ(trace.rows()[0].calls, 1);
}

}  // namespace
}  // namespace tensorcraft::op
