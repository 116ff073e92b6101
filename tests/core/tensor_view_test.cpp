// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/tensor_view.hpp"

#include "tests/support/expect_error.hpp"
#include "tests/support/expect_line.hpp"

#include <array>
#include <limits>
#include <type_traits>

#include <gtest/gtest.h>

namespace tensorcraft {
namespace {

static_assert(!std::is_default_constructible_v<TensorView>);

class TensorViewTest : public testing::Test {
 protected:
  float data[24] = {};
  TensorView view{data, DType::float32, {2, 3, 4}};
  static int64_t offset(const TensorView& from, const TensorView& to) {
    return to.data_as<const float>() - from.data_as<const float>();
  }
};

TEST_F(TensorViewTest, BorrowsWhatDlpackDescribes) {
  int64_t shape[] = {2, 4}, strides[] = {12, 1};
  const dlpack::DLTensor t = {
      data, {dlpack::kDLCUDA, 1}, 2, {dlpack::kDLFloat, 32, 1}, shape, strides, 8};
  const TensorView v = TensorView::from_dlpack(t, Access::read_only);
  EXPECT_EQ(v.data(), data + 2);
  EXPECT_EQ(v.shape(), (Dims{2, 4}));
  EXPECT_EQ(v.strides(), (Dims{12, 1}));
  EXPECT_EQ(v.dtype(), DType::float32);
  EXPECT_EQ(v.device(), Device::cuda(1));
  EXPECT_TRUE(v.read_only());
  EXPECT_FALSE(v.is_contiguous());
}

TEST_F(TensorViewTest, TakesNullStridesOfDlpackAsRowMajor) {
  int64_t shape[] = {2, 3};
  dlpack::DLTensor t = {data, {dlpack::kDLCPU, 0}, 2, {dlpack::kDLFloat, 32, 1}, shape, nullptr, 0};
  EXPECT_TRUE(TensorView::from_dlpack(t).is_contiguous());
  EXPECT_EQ(TensorView::from_dlpack(t).strides(), (Dims{3, 1}));
  t.dtype.bits = 64;
  test::expect_error(
      ErrorKind::type, [&] { TensorView::from_dlpack(t); },
      "dtype float64 is not supported; convert it first, for example to float32");
  t.dtype.code = dlpack::kDLUInt;
  test::expect_error(
      ErrorKind::type, [&] { TensorView::from_dlpack(t); },
      "dtype uint64 is not supported; convert it first, for example to int64");
}

TEST_F(TensorViewTest, RefusesDlpackWithoutAShape) {
  dlpack::DLTensor t = {data, {dlpack::kDLCPU, 0}, 2, {dlpack::kDLFloat, 32, 1}, nullptr, nullptr,
                        0};
  test::expect_error(
      ErrorKind::value, [&] { TensorView::from_dlpack(t); },
      "a DLPack tensor of rank 2 must have a shape, got null");
  t.ndim = 0;
  EXPECT_EQ(TensorView::from_dlpack(t).size(), 1);
}

TEST_F(TensorViewTest, KeepsNullWhateverTheOffset) {
  int64_t shape[] = {0, 3};
  const dlpack::DLTensor t = {
      nullptr, {dlpack::kDLCPU, 0}, 2, {dlpack::kDLFloat, 32, 1}, shape, nullptr, 64};
  EXPECT_EQ(TensorView::from_dlpack(t).data(), nullptr);
}

TEST_F(TensorViewTest, RefusesStridesOfAnotherRank) {
  EXPECT_THROW(TensorView(data, DType::float32, {2, 3}, {1}, Device::cpu()), Error);
  EXPECT_THROW(TensorView(data, DType::float32, {-1}), Error);
}

TEST_F(TensorViewTest, RefusesWhatNoMemoryHolds) {
  constexpr int64_t most = std::numeric_limits<int64_t>::max(), least = -most - 1;
  test::expect_error(
      ErrorKind::value, [&] { TensorView(data, DType::float32, {2, 3}, {most, 1}, Device::cpu()); },
      "shape [2, 3] with strides [9223372036854775807, 1] of float32 spans 2^60 bytes or more; "
      "less is accepted");
  for (const Dims& strides : {Dims{least, 1}, Dims{1, least}, Dims{1, int64_t(1) << 57}})
    EXPECT_THROW(TensorView(data, DType::float32, {2, 3}, strides, Device::cpu()), Error);
  EXPECT_THROW(TensorView(data, DType::int64, {int64_t(1) << 61}, {0}, Device::cpu()), Error);
  EXPECT_THROW(TensorView(data, DType::int64, {int64_t(1) << 58}), Error);
  // Strides that lead nowhere do not matter.
  EXPECT_EQ(TensorView(data, DType::float32, {1, 3}, {least, 1}, Device::cpu()).size(), 3);
  const TensorView empty(data, DType::float32, {0, 3}, {most, most}, Device::cpu());
  EXPECT_EQ(empty.size(), 0);
  EXPECT_EQ(empty.strides(), (Dims{0, 0}));
  EXPECT_EQ(TensorView(data, DType::uint8, {int64_t(1) << 59}).nbytes(), size_t(1) << 59);
}

TEST_F(TensorViewTest, IgnoresStridesOfSizeOneAndOfEmptyTensors) {
  EXPECT_TRUE(TensorView(data, DType::int8, {1, 4}, {99, 1}, Device::cpu()).is_contiguous());
  EXPECT_TRUE(TensorView(data, DType::int8, {0, 4}, {7, 9}, Device::cpu()).is_contiguous());
  EXPECT_FALSE(TensorView(data, DType::int8, {2, 4}, {5, 1}, Device::cpu()).is_contiguous());
}

TEST_F(TensorViewTest, PrintsItself) {
  const TensorView t(data, DType::float32, {32, 128}, Device::cuda(0));
  EXPECT_EQ(join(t), "Tensor<32, 128>[strides=<128, 1>, dtype=float32, device=cuda:0]");
}

TEST_F(TensorViewTest, SaysWhichSizeOfAShapeIsWrong) {
  const auto wrong = [](const TensorView& t, Dims shape, const std::string& text) {
    test::expect_error(ErrorKind::value, [&] { t.reshape(shape); }, "reshape: shape " + text);
  };
  wrong(view, {-1, -1}, "[-1, -1] has more than one -1");
  wrong(view, {-2}, "[-2]: -2 is no size; -1 is inferred, others are at least 0");
  wrong(view, {-1, 0}, "[-1, 0]: the size for -1 is not determined beside a 0; write it");
  const TensorView empty(data, DType::float32, {0, 3});
  wrong(empty, {0, -1}, "[0, -1]: the size for -1 is not determined beside a 0; write it");
  EXPECT_EQ(empty.reshape({-1, 3}).shape(), (Dims{0, 3}));
}

TEST_F(TensorViewTest, ViewsTheSameMemoryInOtherShapes) {
  EXPECT_EQ(view.reshape({6, -1}).shape(), (Dims{6, 4}));
  EXPECT_THROW(view.reshape({5, -1}), Error);
  EXPECT_THROW(view.reshape({-1, -1}), Error);
  const TensorView t = view.transpose(0, -1);
  EXPECT_EQ(t.shape(), (Dims{4, 3, 2}));
  EXPECT_EQ(t.strides(), (Dims{1, 4, 12}));
  EXPECT_THROW(t.reshape({24}), Error);
  const std::array<int, 3> axes = {1, 2, 0}, twice = {0, 0, 1};
  EXPECT_EQ(view.permute(axes).shape(), (Dims{3, 4, 2}));
  EXPECT_EQ(view.permute({1, -1, 0}).strides(), (Dims{4, 1, 12}));
  EXPECT_THROW(view.permute(twice), Error);
  EXPECT_EQ(view.expand_dims(-1).shape(), (Dims{2, 3, 4, 1}));
  EXPECT_EQ(view.expand_dims(0).squeeze(0).strides(), view.strides());
  EXPECT_THROW(view.squeeze(0), Error);
  EXPECT_EQ(view.select(1, 0).broadcast_to({3, 2, 4}).strides(), (Dims{0, 12, 1}));
  EXPECT_TRUE(view.as_read_only().reshape({24}).read_only());
}

TEST_F(TensorViewTest, ErrorsNameTheCallersLine) {
  using test::expect_line;
  const TensorView t = view.transpose(0, 1);
  expect_line([&] { view.reshape({5}); });
  expect_line([&] { view.reshape({-1, -1}); });
  expect_line([&] { view.reshape({-2}); });
  expect_line([&] { view.reshape({-1, 0}); });
  expect_line([&] { view.reshape({int64_t(1) << 40, int64_t(1) << 40}); });
  expect_line([&] { t.reshape({24}); });
  expect_line([&] { view.permute({0, 1}); });
  expect_line([&] { view.permute({0, 1, 3}); });
  expect_line([&] { view.permute({0, 0, 1}); });
  expect_line([&] { view.transpose(0, 3); });
  expect_line([&] { view.select(3, 0); });
  expect_line([&] { view.select(0, 2); });
  expect_line([&] { view.slice(3, 0, 1); });
  expect_line([&] { view.slice(0, 0, 1, 0); });
  expect_line([&] { view.expand_dims(4); });
  expect_line([&] { view.squeeze(-4); });
  expect_line([&] { view.squeeze(0); });
  expect_line([&] { view.broadcast_to({5}); });
  expect_line([&] { view.broadcast_to({1, 3, 4}); });
}

TEST_F(TensorViewTest, SelectsAndSlicesFromEitherEnd) {
  EXPECT_EQ(offset(view, view.select(1, -1)), 8);
  EXPECT_THROW(view.select(1, 3), Error);
  const TensorView s = view.slice(2, 1, -1, 2);
  EXPECT_EQ(s.shape(), (Dims{2, 3, 1}));
  EXPECT_EQ(offset(view, s), 1);
  EXPECT_EQ(view.slice(2, 0, 100, 3).shape(), (Dims{2, 3, 2}));
  EXPECT_EQ(view.slice(0, 2, 1).size(), 0);
  EXPECT_THROW(view.slice(0, 0, 1, 0), Error);
}

TEST_F(TensorViewTest, FlipsAnAxis) {
  const TensorView flipped = view.as_read_only().flip(-2);
  EXPECT_EQ(offset(view, flipped), 8);
  EXPECT_EQ(flipped.strides(), (Dims{12, -4, 1}));
  EXPECT_EQ(flipped.shape(), view.shape());
  EXPECT_TRUE(flipped.read_only());
  EXPECT_EQ(offset(view, flipped.flip(1)), 0);
  const TensorView none(data, DType::float32, {0, 3});
  EXPECT_EQ(offset(none, none.flip(1)), 0);
  EXPECT_THROW(view.flip(3), Error);
}

TEST_F(TensorViewTest, ReadsBitsAsAnotherDtypeOfTheirWidth) {
  const TensorView bits = view.as_read_only().bits_as(DType::int32);
  EXPECT_EQ(bits.dtype(), DType::int32);
  EXPECT_EQ(bits.data(), view.data());
  EXPECT_EQ(bits.strides(), view.strides());
  EXPECT_TRUE(bits.read_only());
  test::expect_error(
      ErrorKind::value, [&] { view.bits_as(DType::float16); },
      "elements of float32 and float16 differ in their bytes");
}

TEST_F(TensorViewTest, GivesNoAddressToWriteToOfWhatIsReadOnly) {
  static_assert(std::is_same_v<decltype(view.data()), const void*>);
  const TensorView weights = view.as_read_only();
  EXPECT_EQ(weights.data(), data);
  EXPECT_EQ(weights.data_as<const float>(), data);
  EXPECT_EQ(view.writable_data(), data);
  EXPECT_EQ(view.data_as<float>(), data);
  EXPECT_EQ(view.at(data + 1, {2}, {3}).data_as<float>(), data + 1);
  const auto refused = [](auto&& call) {
    test::expect_error(ErrorKind::buffer, call,
                       "the memory of a read-only tensor is not written; copy the tensor");
  };
  refused([&] { weights.writable_data(); });
  refused([&] { weights.data_as<float>(); });
  refused([&] { weights.slice(0, 0, 1).writable_data(); });
  refused([&] { weights.at(data + 1, {2}, {3}).data_as<float>(); });
  refused([&] { weights.at(data, Device::simt()).writable_data(); });
}

TEST_F(TensorViewTest, FindsOverlapsByTheBytesItCanTouch) {
  const TensorView first = view.select(0, 0), second = view.select(0, 1);
  EXPECT_FALSE(may_overlap(first, second));
  EXPECT_TRUE(may_overlap(view, second));
  EXPECT_FALSE(may_overlap(view, view.slice(0, 0, 0)));
  const TensorView nowhere(nullptr, DType::float32, {4});
  EXPECT_FALSE(may_overlap(nowhere, nowhere));
  const TensorView reversed(data + 11, DType::float32, {12}, {-1}, Device::cpu());
  EXPECT_TRUE(may_overlap(reversed, first));
  EXPECT_FALSE(may_overlap(reversed, second));
}

TEST_F(TensorViewTest, OverlapsItselfWhereTwoIndicesNameOneElement) {
  const auto strided = [this](const Dims& shape, const Dims& strides) {
    return TensorView(data, DType::float32, shape, strides, Device::cpu());
  };
  EXPECT_TRUE(overlaps_itself(strided({3, 4}, {0, 1})));
  EXPECT_TRUE(overlaps_itself(strided({3, 4}, {2, 1})));
  EXPECT_TRUE(overlaps_itself(strided({2, 2}, {1, -1})));
  EXPECT_FALSE(overlaps_itself(view.transpose(0, 2)));
  EXPECT_FALSE(overlaps_itself(view.slice(2, 0, 4, 3)));
  EXPECT_FALSE(overlaps_itself(strided({2, 3}, {-3, -1})));
  EXPECT_FALSE(overlaps_itself(strided({1, 4}, {0, 1})));
  EXPECT_FALSE(overlaps_itself(strided({0, 4}, {0, 0})));
}

TEST_F(TensorViewTest, ALongStepTakesTheFirstElementAlone) {
  const TensorView first = view.slice(0, 0, 2, int64_t(1) << 62);
  EXPECT_EQ(first.shape(0), 1);
  EXPECT_TRUE(first.is_contiguous());
}

}  // namespace
}  // namespace tensorcraft
