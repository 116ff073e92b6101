# SPDX-License-Identifier: Apache-2.0
"""4. Banks: a column of the tile lies in one bank. Spread it, without a byte more of shared memory."""

import numpy as np
from course import passes, run, say, wrong

# the exercise
TEXT = """
#include "tensorcraft/device/shared.cuh"

struct Tile {
  float words[32 * 32];
};
// The word that holds an element of the tile: word w lies in bank w mod 32. Change it, so that
// neither a row nor a column has two words in one bank.
TC_DEVICE int word(int row, int column) { return row * 32 + column; }

__global__ void transpose(float* out, const float* x, int* by_rows, int* by_columns) {
  auto& tile = static_shared<Tile>();
  const int column = threadIdx.x, row = threadIdx.y;
  tile.words[word(row, column)] = x[row * 32 + column];
  __syncthreads();
  out[row * 32 + column] = tile.words[word(column, row)];
  by_rows[row * 32 + column] = word(row, column);
  by_columns[row * 32 + column] = word(column, row);
}
"""
# end
x = np.arange(1024, dtype=np.float32).reshape(32, 32)
out, by_rows, by_columns = np.empty_like(x), np.empty(1024, np.int32), np.empty(1024, np.int32)
signature = "transpose(float* out, const float* x, int32* by_rows, int32* by_columns)"
fault = run(TEXT, signature, 1, (32, 32), out, x, by_rows, by_columns)
found, rows, columns = wrong(out, x.T), passes(by_rows), passes(by_columns)
inside = set(by_rows.tolist()) == set(range(1024))
say(fault or f"{found} of 1024 are wrong, a row takes {rows} passes, a column {columns}",
    inside and found == 0 and rows == columns == 1)  # fmt: skip
