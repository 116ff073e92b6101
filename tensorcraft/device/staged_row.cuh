// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/cluster.cuh"
#include "tensorcraft/device/ptx/bulk.cuh"
#include "tensorcraft/device/ptx/fence.cuh"
#include "tensorcraft/device/ptx/mbarrier.cuh"
#include "tensorcraft/device/row_group.cuh"

// A row in shared memory, brought there by the copy engine (sm_90), for kernels that pass over it
// more than once: threads hold none of it in registers, so many blocks share a multiprocessor and
// one copies while another computes. The blocks of a cluster have a slice of the row each.
namespace tensorcraft {

// In the kernel's static shared struct. `Part` is what blocks tell each other of their slices.
template <class Part>
struct StagedShared {
  uint64_t arrived;               // mbarrier of the copies
  BlockReduce<float> scratch[2];  // one a reduction
  ClusterExchange<Part> parts;
};

// C is a Config with threads, vector (elements of 16 bytes), cluster, and has_residual if the row
// is the sum of two. A row is a multiple of 16 bytes long and starts at one.
template <class T, auto C, bool has_residual = false>
struct StagedRow {
  const T* x;  // this block's slice in shared memory, then that of the residual
  int first, cols;

  // Starts the copies; x and residual point to the whole row, one of `rows`. All threads of the
  // block call, once.
  template <class Part>
  TC_DEVICE StagedRow(StagedShared<Part>& shared, T* memory, const T* row, const T* residual,
                      int row_cols, int64_t rows)
      : x(memory) {
    const int slice = round_up(div_ceil(row_cols, C.cluster), C.vector);
    first = C.cluster > 1 ? int(ptx::cluster_ctarank()) * slice : 0;
    cols = row_cols - first < slice ? row_cols - first : slice;
    if (cols < 0) cols = 0;
    if (threadIdx.x == 0) {
      const uint32_t bytes = uint32_t(cols) * uint32_t(sizeof(T));
      ptx::mbarrier_init(&shared.arrived, 1);
      ptx::fence_mbarrier_init();
      ptx::mbarrier_arrive_expect_tx(&shared.arrived, has_residual ? 2 * bytes : bytes);
      if (bytes > 0) {
        const uint64_t policy = stream_policy(rows * row_cols * int64_t(sizeof(T)));
        ptx::cp_async_bulk_load_hint(memory, row + first, bytes, &shared.arrived, policy);
        if constexpr (has_residual)
          ptx::cp_async_bulk_load_hint(memory + slice, residual + first, bytes, &shared.arrived,
                                       policy);
      }
    }
    __syncthreads();
    if constexpr (C.cluster > 1) ptx::cluster_arrive();  // gather() waits until all blocks run
    ptx::mbarrier_wait_parity(&shared.arrived, 0);
    if constexpr (has_residual) second_ = slice;
  }

  // f(column of the row, C.vector values from there on) for the calling thread's part of the slice.
  template <int kUnroll = 4, class F>
  TC_DEVICE void each(const F& f) const {
#pragma unroll kUnroll
    for (int i = int(threadIdx.x) * C.vector; i < cols; i += C.threads * C.vector) {
      float h[C.vector];
      load_floats(h, x + i);
      if constexpr (has_residual) {
        float r[C.vector];
        load_floats(r, x + second_ + i);
        for (int e = 0; e < C.vector; ++e) h[e] += r[e];
      }
      f(first + i, h);
    }
  }

  // The sum of f(value) over the slice, the same in every thread of the block. `scratch` serves
  // this one sum of the kernel.
  template <class F>
  TC_DEVICE float sum(BlockReduce<float>& scratch, const F& f) const {
    float total = 0;
    each([&](int, const float(&h)[C.vector]) {
      float part = f(h[0]);
      for (int e = 1; e < C.vector; ++e) part += f(h[e]);
      total += part;
    });
    return group_reduce_once<C.threads>(scratch, total, Sum());
  }

  // The parts of all blocks of the cluster, in their order. All threads call, once.
  template <class Part>
  TC_DEVICE const Part* gather(StagedShared<Part>& shared, const Part& own) const {
    if constexpr (C.cluster == 1) {
      if (threadIdx.x == 0) shared.parts.values[0] = own;
      __syncthreads();
    } else {
      ptx::cluster_wait();
      if (threadIdx.x < C.cluster)
        ptx::mapa(&shared.parts, threadIdx.x)->values[ptx::cluster_ctarank()] = own;
      ptx::cluster_sync();
    }
    return shared.parts.values;
  }

 private:
  int second_ = 0;
};

}  // namespace tensorcraft
