// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/host/attention.hpp"

#include "tests/support/tensors.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace tensorcraft::host {
namespace {

namespace tiles = kernel::attention_tiles;

constexpr int kQueries = 45, kKeys = 500, kDim = 6, kValues = 3;

// A head of a request and what its queries see.
struct Head {
  std::vector<double> q = test::doubles(test::normal_tensor({kQueries, kDim}, DType::float32, 1)),
                      k = test::doubles(test::normal_tensor({kKeys, kDim}, DType::float32, 2)),
                      v = test::doubles(test::normal_tensor({kKeys, kValues}, DType::float32, 3));
  Window window = window_of(400, -1, true);

  KeyRange seen(int i) const { return keys_of(window, kKeys, place_of_query(kQueries, kKeys, i)); }
  // Does a tree of which query i sees the newest key m if m divides i hide no key?
  static bool tree_sees(int i, int m) { return m == 0 || i % m == 0; }

  // Values and, as the last one, the logarithm of the sum.
  std::vector<double> result(int i, bool has_tree) const {
    std::vector<double> found(kValues + 1);
    double sum = 0;
    for (int j = seen(i).begin; j < seen(i).end; ++j) {
      const int m = j - (kKeys - kQueries);
      if (has_tree && m >= 0 && !tree_sees(i, m)) continue;
      double s = 0;
      for (int d = 0; d < kDim; ++d) s += q[size_t(i * kDim + d)] * k[size_t(j * kDim + d)];
      const double weight = std::exp(s / 2);
      sum += weight;
      for (int d = 0; d < kValues; ++d) found[size_t(d)] += weight * v[size_t(j * kValues + d)];
    }
    for (int d = 0; d < kValues; ++d) found[size_t(d)] /= sum;
    found[kValues] = std::log(sum);
    return found;
  }
};

// Counts from which row on keys are read.
struct ScatteredRows final : AttentionRows {
  const std::vector<double>& values;
  const int length;
  mutable int64_t first = kKeys;

  ScatteredRows(const std::vector<double>& of, int row_length) : values(of), length(row_length) {}
  const float* read(int64_t row, float* buffer) const override {
    first = std::min(first, row);
    for (int d = 0; d < length; ++d) buffer[d] = float(values[size_t(row * length + d)]);
    return buffer;
  }
};

TEST(HostAttention, TakesRowsFromAnywhereAndHidesWhatWindowsAndTreesHide) {
  const Head head;
  // Elements of queries two apart, of outputs three.
  std::vector<float> q(kQueries * kDim * 2, NAN), out(kQueries * kValues * 3, NAN),
      lse(kQueries * 5, NAN);
  for (size_t n = 0; n < head.q.size(); ++n) q[2 * n] = float(head.q[n]);
  std::vector<uint8_t> tree;
  for (int i = 0; i < kQueries; ++i)
    for (int m = 0; m < kQueries; ++m) tree.push_back(Head::tree_sees(i, m));
  const ScatteredRows keys(head.k, kDim), values(head.v, kValues);
  tiles::Params p{};
  p.batch = p.heads = p.group = 1;
  p.seq_q = kQueries;
  p.head_dim = kDim;
  p.v_dim = kValues;
  p.scale = 0.5f;
  for (const bool has_tree : {false, true})
    for (const int step : {kQueries, 16}) {  // rows of a task: the bits are the same
      for (int first = 0; first < kQueries; first += step) {
        const AttentionTask task{
            0, 0, {0, 0, kQueries, 0, kKeys, head.window}, first, std::min(step, kQueries - first)};
        attend(p, task,
               {.q = {q.data(), DType::float32, first * kDim * 2, kDim * 2, 2, kDim},
                .out = {out.data(), DType::float32, first * kValues * 3, kValues * 3, 3, kValues},
                .keys = keys,
                .values = values,
                .lse = lse.data() + first * 5,
                .lse_step = 5,
                .tree = {has_tree ? tree.data() : nullptr, 0, kQueries, 1, 0}});
      }
      for (int i = 0; i < kQueries; ++i) {
        const std::vector<double> want = head.result(i, has_tree);
        for (int d = 0; d < kValues; ++d)
          ASSERT_NEAR(out[size_t(i * kValues + d) * 3], want[size_t(d)], 1e-5) << i;
        ASSERT_NEAR(lse[size_t(i) * 5], want[kValues], 1e-5) << i;
      }
      EXPECT_TRUE(std::isnan(out[1]) && std::isnan(out[2]) && std::isnan(lse[1]));
    }
  EXPECT_GT(keys.first + 192, head.seen(0).begin);  // a tile of keys in front of them at most
}

TEST(HostAttention, TasksAreWholePanels) {
  EXPECT_EQ(attention_task_rows(1) % 8, 0);
  EXPECT_EQ(attention_task_rows(1 << 20) % 8, 0);
  EXPECT_LE(attention_task_rows(1 << 20), 256);
}

}  // namespace
}  // namespace tensorcraft::host
