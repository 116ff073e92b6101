// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/cuda/wait_value.hpp"

#include "tensorcraft/cuda/memory.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/fake_driver.hpp"
#include "tests/support/flag_words.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace tensorcraft {
namespace {

using test::expect_error, test::FakeDriver, test::flag_at, test::Words;

TEST(WaitValue, SaysWhatItTakes) {
  int32_t word = 0;
  float number = 0;
  expect_error(
      ErrorKind::value, [&] { stream_wait_value({&word, DType::int32, {0}}, 1); },
      "stream_wait_value: wait_flag expects a non-empty tensor. It has shape [0]");
  expect_error(
      ErrorKind::type, [&] { stream_wait_value({&number, DType::float32, {1}}, 1); },
      "stream_wait_value: flag: Dtype value [float32] not in the allowed options: [int32]; "
      "tc.astype(flag, tc.int32) converts it");
  expect_error(
      ErrorKind::value, [&] { stream_wait_value({&word, DType::int32, {1, 1}}, 1); },
      "stream_wait_value: flag: Tensor dimension mismatch: expected 1 but got 2; flag is [1, 1]");
  const TensorView constant = flag_at(&word).as_read_only();
  expect_error(
      ErrorKind::buffer, [&] { stream_write_value(constant, 1); },
      "stream_write_value: flag: the tensor is read-only; give writable memory");
  FakeDriver fake({{}}, 13000, {{"cuStreamWriteValue32", 801}});
  const Stream stream;
  expect_error(
      ErrorKind::value, [&] { stream_wait_value(flag_at(&word), 1, {.stream = stream}); },
      "stream_wait_value: flag: cuda:0 cannot reach the memory of the host where it lies: it is "
      "not page-locked; make it with tc.memory.pinned(), or on the GPU");
  const Words words;
  expect_error(
      ErrorKind::unsupported, [&] { stream_write_value(words.flag(), 1, stream.ref()); },
      "stream_write_value: the driver cannot write a value in the order of a stream; write the "
      "flag by a copy or a kernel");
  fake.failing["cuStreamWaitValue32"] = 900;
  expect_error(
      ErrorKind::unsupported, [&] { stream_wait_value(words.flag(), 1, {.stream = stream}); },
      "stream_wait_value: the driver cannot record a wait of a value into a graph; enqueue it "
      "before the graph's launch, or use a newer driver");
}

}  // namespace
}  // namespace tensorcraft
