// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/scatter/scatter.hpp"

#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/device/float16.cuh"
#include "tensorcraft/ops/scatter/plan.h"
#include "tests/support/expect_error.hpp"
#include "tests/support/tensors.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace tensorcraft {
namespace {

using test::expect_error;
using test::values;

template <class T>
Tensor tensor(DType dtype, const Dims& shape, const std::vector<T>& values,
              Device device = Device::cpu()) {
  Tensor t(dtype, shape, device);
  for (int64_t i = 0; i < t.size(); ++i) t.data_as<T>()[i] = values[size_t(i) % values.size()];
  return t;
}
Tensor floats(const Dims& shape, const std::vector<float>& values, Device device = Device::cpu()) {
  return tensor(DType::float32, shape, values, device);
}
Tensor indices(const Dims& shape, const std::vector<int64_t>& values,
               Device device = Device::cpu()) {
  return tensor(DType::int64, shape, values, device);
}

using Floats = std::vector<float>;

TEST(Scatter, WritesWhatTakeAlongAxisReads) {
  const Tensor x = floats({2, 3}, {0});
  const Tensor ids = indices({2, 2}, {2, 0, -1, 1}), updates = floats({2, 2}, {1, 2, 3, 4});
  for (const char* variant : {"cpu", "reference"}) {
    EXPECT_EQ(values(scatter(x, ids, updates, {.variant = variant})), (Floats{2, 0, 1, 0, 4, 3}));
    const Tensor columns = indices({1, 3}, {1, 0, -1});
    EXPECT_EQ(
        values(scatter(x, columns, floats({1, 3}, {7, 8, 9}), {.axis = 0, .variant = variant})),
        (Floats{0, 8, 0, 7, 0, 9}));
  }
}

TEST(Scatter, TheLastOfSeveralUpdatesStaysAndAReductionTakesAll) {
  const Tensor x = floats({3}, {10, 20, 30}), ids = indices({4}, {1, 1, 0, 1}),
               updates = floats({4}, {2, -5, 3, 4});
  using R = ScatterReduction;
  for (const char* variant : {"cpu", "reference"}) {
    const auto result = [&](R reduction) {
      return values(scatter(x, ids, updates, {.reduction = reduction, .variant = variant}));
    };
    EXPECT_EQ(result(R::none), (Floats{3, 4, 30}));
    EXPECT_EQ(result(R::add), (Floats{13, 21, 30}));
    EXPECT_EQ(result(R::multiply), (Floats{30, -800, 30}));
    EXPECT_EQ(result(R::max), (Floats{10, 20, 30}));
    EXPECT_EQ(result(R::min), (Floats{3, -5, 30}));
  }
}

TEST(Scatter, SumsOfSmallFloatsAreRoundedOnce) {
  Tensor x(DType::bfloat16, {1});
  *x.data_as<bf16>() = bf16(256.0f);
  const Tensor ids = indices({8}, {0});
  Tensor one(DType::bfloat16, {1});
  *one.data_as<bf16>() = bf16(0.5f);
  const Tensor y = scatter(x, ids, one, {.reduction = ScatterReduction::add});
  EXPECT_EQ(float(*y.data_as<bf16>()), 260.0f) << "256 + 0.5 rounds to 256 in bfloat16";
}

TEST(Scatter, IntegersWrap) {
  const Tensor x = tensor<int32_t>(DType::int32, {1}, {INT32_MAX});
  const Tensor one = tensor<int32_t>(DType::int32, {1}, {1}), ids = indices({1}, {0});
  for (const char* variant : {"cpu", "reference"}) {
    const Tensor y = scatter(x, ids, one, {.reduction = ScatterReduction::add, .variant = variant});
    EXPECT_EQ(*y.data_as<int32_t>(), INT32_MIN);
  }
}

TEST(Scatter, IntoXItselfWritesThePlacesNamed) {
  for (const char* variant : {"cpu", "reference"}) {
    Tensor x = floats({2, 3}, {0, 1, 2, 3, 4, 5});
    scatter(x, x, indices({2, 1}, {1, 2}), floats({1}, {9}), {.variant = variant});
    EXPECT_EQ(values(x), (Floats{0, 9, 2, 3, 4, 9}));
    scatter(x, x, indices({2, 1}, {1, 2}), floats({1}, {1}),
            {.reduction = ScatterReduction::add, .variant = variant});
    EXPECT_EQ(values(x), (Floats{0, 10, 2, 3, 4, 10}));
  }
}

TEST(Scatter, RefusesAnIndexOutsideTheAxisBeforeItWrites) {
  Tensor x = floats({3, 2}, {0, 1, 2, 3, 4, 5});
  const Floats before = values(x);
  for (const char* variant : {"cpu", "reference"})
    expect_error(
        ErrorKind::index,
        [&] {
          scatter(x, x, indices({2, 2}, {0, 1, -3, -4}), floats({1}, {9}),
                  {.axis = 0, .variant = variant});
        },
        "scatter: indices: element 3 is -4, expected [-3, 3), the axis of x");
  EXPECT_EQ(values(x), before);
}

TEST(Scatter, RefusesWhatDoesNotFit) {
  Tensor x = floats({3, 2}, {0});
  const Tensor ids = indices({3, 1}, {0}), update = floats({3, 1}, {1});
  expect_error(
      ErrorKind::axis, [&] { scatter(floats({}, {0}), indices({}, {0}), floats({}, {0})); },
      "scatter: x: expected at least 1 dimension");
  expect_error(
      ErrorKind::type, [&] { scatter(x, update, update); },
      "scatter: indices: Dtype value [float32] not in the allowed options: [int32, int64]"
      "; tc.astype(indices, tc.int32) converts it");
  expect_error(
      ErrorKind::type, [&] { scatter(x, ids, ids); },
      "scatter: updates: expected the dtype of x, float32, but got int64; convert it with astype");
  expect_error(
      ErrorKind::value, [&] { scatter(x, ids, floats({2, 1}, {1})); },
      "scatter: updates: expected the shape of indices, [3, 1], or one that broadcasts to it, got "
      "[2, 1]");
  EXPECT_THROW(scatter(x, indices({2, 1}, {0}), update), Error);
  EXPECT_THROW(scatter(x, indices({1}, {0}), update), Error);
  const Tensor all = indices({3, 2}, {0});
  expect_error(
      ErrorKind::value, [&] { scatter(x, floats({3, 2}, {1}), all, x); },
      "scatter: out overlaps the memory of updates; it must be x or have memory of its own");
  const Tensor nothing(DType::float32, {3, 0});
  expect_error(
      ErrorKind::index, [&] { scatter(nothing, ids, update); },
      "scatter: indices: axis 1 of x, shape [3, 0], must have at least one place for an index to "
      "name");
  EXPECT_EQ(scatter(nothing, Tensor(DType::int64, {3, 0}), nothing).size(), 0);
  Tensor bytes(DType::int8, {2});
  EXPECT_THROW(scatter(bytes, indices({1}, {0}), bytes.view().slice(0, 0, 1),
                       {.reduction = ScatterReduction::max}),
               Error);
}

class ScatterKernels : public ::testing::Test {
 protected:
  void SetUp() override {
    if (devices().back() != Device::simt()) GTEST_SKIP() << "built without the emulator";
  }
  const Device simt_ = Device::simt();
};

TEST_F(ScatterKernels, LeaveOutAnUpdateWhoseIndexIsOutside) {
  const Tensor x = floats({4, 4}, {0, 1, 2, 3}, simt_), update = floats({4, 1}, {9}, simt_);
  const Tensor ids = indices({4, 1}, {-5, 4, INT64_MIN, INT64_MAX}, simt_);
  for (const auto reduction : {ScatterReduction::none, ScatterReduction::add})
    for (const char* variant : {"naive", "claimed", "panels"}) {
      if (variant == std::string_view("panels") && reduction != ScatterReduction::none) continue;
      EXPECT_EQ(values(scatter(x, ids, update, {.reduction = reduction, .variant = variant})),
                values(x))
          << variant;
    }
}

TEST_F(ScatterKernels, WriteIntoXItself) {
  for (const int64_t axis : {0, 1})
    for (const auto reduction : {ScatterReduction::none, ScatterReduction::max})
      for (const char* variant : {"naive", "claimed", "panels"}) {
        if (variant == std::string_view("panels") && reduction != ScatterReduction::none) continue;
        Tensor x = floats({8, 8}, {1, 2, 3}, simt_);
        const Tensor ids = indices(axis ? Dims{8, 2} : Dims{2, 8}, {3, 5, 3}, simt_);
        const Tensor updates = floats(ids.shape(), {4, 0, 7, 5, 1}, simt_);
        const ScatterOptions options{.axis = axis, .reduction = reduction, .variant = variant};
        const Tensor wanted = scatter(x, ids, updates, options);
        scatter(x, x, ids, updates, options);
        EXPECT_EQ(values(x), values(wanted)) << variant << axis;
      }
}

// Sums of numbers of very different size say in which order they were taken.
TEST_F(ScatterKernels, SumInTheOrderOfTheUpdates) {
  std::mt19937 random(1);
  Floats numbers;
  std::vector<int64_t> places;
  for (int i = 0; i < 600; ++i) {
    numbers.push_back(std::ldexp(float(int(random() % 2001) - 1000), int(random() % 30)));
    places.push_back(int64_t(random() % 7));
  }
  const auto sum = [&](Device device, const char* variant) {
    return values(scatter(floats({7}, {0.1f}, device), indices({600}, places, device),
                          floats({600}, numbers, device),
                          {.reduction = ScatterReduction::add, .variant = variant}));
  };
  const Floats wanted = sum(Device::cpu(), "cpu");
  for (const char* variant : {"naive", "claimed"}) EXPECT_EQ(sum(simt_, variant), wanted);
}

// More panels than there are claims in memory, lines of several axes, updates beyond one chunk.
TEST_F(ScatterKernels, PanelsFollowOneAnother) {
  for (const Dims& shape : {Dims{2, 300, 3, 640}, Dims{2, 3, 640, 300}}) {
    const int64_t axis = shape[1] == 300 ? 1 : 3;
    Dims some = shape;
    some[int(axis)] = 450;
    std::mt19937 random(2);
    Floats numbers;
    std::vector<int64_t> places;
    for (int i = 0; i < 2 * 3 * 640 * 450; ++i) {
      numbers.push_back(float(i));
      places.push_back(int64_t(random() % 700) - 350);  // some outside
    }
    const Tensor ids = indices(some, places, simt_), updates = floats(some, numbers, simt_);
    Tensor x = floats(shape, {-1, -2, -3}, simt_);
    const auto scattered = [&](const char* variant) {
      return values(scatter(x, ids, updates, {.axis = axis, .variant = variant}));
    };
    EXPECT_EQ(scattered("panels"), scattered("claimed"));
  }
}

TEST(ScatterPlan, PanelsCoverEveryPlaceAndEveryUpdate) {
  namespace s = kernel::scatter;
  for (const int64_t outer : {1, 3, 700})
    for (const int64_t size : {1, 31, 65536, 1 << 20})
      for (const int64_t inner : {1, 7, 128})
        for (const int64_t count : {0, 1, 5000}) {
          auto p = s::contiguous_params(nullptr, nullptr, nullptr, nullptr, 4, s::Operation::none,
                                        outer, size, inner, count);
          const s::Given given{.element_bytes = 4, .has_workspace = true};
          const auto start = s::panels(p, given, {.num_sms = 132}).start;
          s::choose_panels(p, given, {.num_sms = 132});
          const int64_t lines = int64_t(1) << p.log2_lines;
          EXPECT_GE(int64_t(p.panels) * lines, p.num_lines);
          EXPECT_GE(int64_t(1) << p.log2_places, size);
          EXPECT_GE(int64_t(p.claiming_blocks) * start.config.threads * s::kUpdatesOfThread,
                    count * (p.is_axis_inner ? 1 : lines));
          EXPECT_GE(int64_t(p.writing_blocks) * start.config.threads * s::kUnitsOfThread *
                        start.config.vector,
                    lines * size);
          EXPECT_EQ(start.blocks, int64_t(p.panels) * (p.claiming_blocks + p.writing_blocks));
          EXPECT_GE(int64_t(s::workspace_bytes(p)),
                    s::claims_at(p.panels) + s::kPanelsAtOnce * (lines << p.log2_places) * 4);
        }
}

TEST(ScatterPlan, TilesCoverEveryPlaceOfEveryLine) {
  namespace s = kernel::scatter;
  for (const auto operation : {s::Operation::none, s::Operation::add})
    for (const int64_t outer : {1, 3, 70000})
      for (const int64_t size : {1, 31, 4096, 200000})
        for (const int64_t inner : {1, 7, 128}) {
          const auto p = s::contiguous_params(nullptr, nullptr, nullptr, nullptr, 4, operation,
                                              outer, size, inner, 5);
          EXPECT_EQ(p.num_lines, outer * inner);
          EXPECT_TRUE(size == 1 || (p.is_axis_inner != 0) == (inner == 1));
          for (const int sms : {1, 132}) {
            const s::Given given{.element_bytes = 4};
            auto tile = p;
            s::choose_tile(tile, given, {.num_sms = sms});
            const auto start = s::claimed(p, given, {.num_sms = sms}).start;
            EXPECT_LE(int64_t(1) << (tile.log2_lines + tile.log2_places), start.config.entries);
            EXPECT_GE(int64_t(tile.axis_tiles) << tile.log2_places, size);
            EXPECT_GE(start.blocks / tile.axis_tiles << tile.log2_lines, p.num_lines);
            EXPECT_LT((int64_t(1) << tile.log2_lines), 2 * p.num_lines);
          }
        }
}

}  // namespace
}  // namespace tensorcraft
