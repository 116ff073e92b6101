// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/dtype.hpp"
#include "tensorcraft/device/attention/request.cuh"
#include "tensorcraft/device/tree_mask.h"

#include <cstddef>
#include <cstdint>

// Attention of many queries on the host: tiles of scores, by the micro kernel of products.
namespace tensorcraft::host {

// Where the rows of keys or values of a head are.
class AttentionRows {
 public:
  // Row `row` as floats, in place or in `buffer`.
  virtual const float* read(int64_t row, float* buffer) const = 0;

 protected:
  ~AttentionRows() = default;
};

// Rows that lie `stride` elements apart, the elements of each `step`.
struct StridedRows final : AttentionRows {
  const std::byte* data;
  DType dtype;
  int64_t stride, step, length;

  StridedRows(const void* of, DType type, int64_t offset, int64_t row_stride, int64_t row_step,
              int64_t row_length);
  const float* read(int64_t row, float* buffer) const override;
};

// Queries of one head, and the request whose keys they see.
struct AttentionTask {
  int batch, head;
  kernel::attention_tiles::Request request;
  int first, count;  // rows of q
};

// A task reads and writes these.
struct AttentionOperands {
  StridedRows q, out;                  // from the task's first row on
  const AttentionRows &keys, &values;  // from the request's first key on
  float* lse = nullptr;                // of the first row; null: not wanted
  int64_t lse_step = 1;
  TreeMask tree = {};  // rows of `tree` are those of q in Params
};

// It reads sizes, scales, softcap, mask and sinks of Params.
void attend(const kernel::attention_tiles::Params& p, const AttentionTask& task,
            const AttentionOperands& operands);

// Rows of q that a task should have if there are `rows` rows of all heads: few enough each for four
// tasks a thread, and whole panels, so that no row's result depends on the choice.
int attention_task_rows(int64_t rows);

}  // namespace tensorcraft::host
