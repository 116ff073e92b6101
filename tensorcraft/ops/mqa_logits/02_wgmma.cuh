// SPDX-License-Identifier: Apache-2.0
#pragma once
// What changed: keys come by the copy engine, a warp that does nothing else runs a ring of tiles
// ahead, and a warpgroup multiplies a tile of 64 keys with all heads of the block's queries in one
// product of wgmma.
//   tensor_core:  32 keys of a warp in registers, heads from shared memory for each of them
//   here:         both operands stay in shared memory, and float8 is multiplied as it is
// relu, weights and sums over heads happen in registers while the other warpgroups of the
// multiprocessor multiply: two of this block, two of the next one. Codes of float8 have sums of
// about 14 bits. Demands: sm_90, 16-byte boundaries, at most 128 heads, blocks of 8 keys or more.
#include "tensorcraft/device/activation.cuh"
#include "tensorcraft/device/ptx/tma.cuh"
#include "tensorcraft/device/reduce.cuh"
#include "tensorcraft/device/shared.cuh"
#include "tensorcraft/device/tile/consumers.cuh"
#include "tensorcraft/device/tile/pipeline.cuh"
#include "tensorcraft/device/tile/stage_cursor.cuh"
#include "tensorcraft/device/tile/warpgroup_sums.cuh"
#include "tensorcraft/ops/mqa_logits/keys.cuh"

namespace tensorcraft::kernel::mqa_logits {

// Shared memory of a block: its queries, head after head, and a ring of tiles of keys.
template <class T, Config C>
struct alignas(1024) KeyRing {
  static constexpr int of_box = kBoxChunks * kVectorSize<T>;  // elements of a line of a box
  static constexpr int length = line_bytes(C.head_dim, sizeof(T)) / int(sizeof(T));
  static constexpr int boxes = length / of_box;  // side by side
  using Queries = BoxedTile<T, C.queries * C.heads, length>;
  using Keys = BoxedTile<T, kGroupRows, length>;
  Queries q[C.products];
  Keys k[C.stages];
  uint64_t q_full;
  Barriers<C.stages> keys;
  KeyRange seen[rows_of(C)];  // none of queries that are not there
  // Those that a lane has of 16 columns of a product, by lane % 4; 0 of heads that are not there.
  Vec4<float> weights[C.products][div_ceil(C.queries * C.heads, 16)][4];

  TC_DEVICE void start(const WgmmaParams& p) {
    begin_with_barriers([&] {
      ptx::prefetch_tensormap(&p.q_map);
      ptx::prefetch_tensormap(&p.k_map);
      ptx::mbarrier_init(&q_full, 1);
      keys.init(kWarpgroup / kWarpSize);
    });
  }
  TC_DEVICE float& weight(int product, int column) {
    return weights[product][column / 16][column % 8 / 2][column % 16 / 8 * 2 + column % 2];
  }
  template <class F>
  TC_DEVICE bool any(const F& f) const {
    bool is = false;
#pragma unroll
    for (const KeyRange& range : seen) is |= f(range);
    return is;
  }
};

// Queries of a request and a slice of its keys.
struct Slice {
  int b, first_row, rows, begin, end;

  // The last queries, which see the most keys under a causal limit, come first.
  TC_DEVICE explicit Slice(const Params& p) {
    const int tiles = p.batch * p.row_tiles, at = int(blockIdx.x) % tiles;  // no more than blocks
    b = at / p.row_tiles;
    first_row = (p.row_tiles - 1 - at % p.row_tiles) * p.rows_of_block;
    rows = p.queries - first_row < p.rows_of_block ? p.queries - first_row : p.rows_of_block;
    begin = int(blockIdx.x) / tiles * p.keys_of_block;
    end = p.keys - begin < p.keys_of_block ? p.keys : begin + p.keys_of_block;
  }
  // Its tiles from the first key that a query sees to the last, as keys; none: begin == end.
  template <class Ring>
  TC_DEVICE KeyRange hull(const Ring& ring) const {
    int first = end, last = begin;
    for (const KeyRange& seen : ring.seen) {
      if (seen.begin >= seen.end) continue;
      first = seen.begin < first ? seen.begin : first;
      last = seen.end > last ? seen.end : last;
    }
    first = first < begin ? begin : first / kGroupRows * kGroupRows;
    last = last > end ? end : last;
    if (first >= last) return {begin, begin};
    return {first, first + (last - first + kGroupRows - 1) / kGroupRows * kGroupRows};
  }
};

// The warp that starts all copies.
template <class T, Config C>
struct KeyProducer {
  using Ring = KeyRing<T, C>;
  using Keys = typename Ring::Keys;
  Ring& ring;
  const WgmmaParams& p;
  const Slice& slice;
  const int lane = int(threadIdx.x % kWarpSize);

  TC_DEVICE void run(const KeyRange& hull) const {
    if (lane == 0) load_queries();
    const int rows = p.box_rows, row_boxes = kGroupRows / rows;
    const int row = lane % row_boxes * rows, column = lane / row_boxes;
    const bool copies = column < Ring::boxes;
    Vec4<uint32_t>* const to = ring.k[0].at + (column * kGroupRows + row) * kBoxChunks;
    StageCursor<C.stages> cursor{0, 1};
    Box next = box_of(hull.begin + row, copies && hull.begin < hull.end);
    for (int key = hull.begin; key < hull.end; key += kGroupRows) {
      const Box box = next;  // its place comes while the tile before it has yet to be read
      next = box_of(key + kGroupRows + row, copies && key + kGroupRows < hull.end);
      uint64_t* const full = &ring.keys.full[cursor.stage];
      ptx::mbarrier_wait_parity(&ring.keys.empty[cursor.stage], cursor.parity);
      if (lane == 0) ptx::mbarrier_arrive_expect_tx(full, sizeof(Keys));
      __syncwarp();
      const int32_t at[4] = {column * Ring::of_box, box.row, box.block, 0};
      if (copies)
        ptx::tma_load(to + cursor.stage * int(sizeof(Keys) / kVectorBytes), &p.k_map, at, full);
      cursor.advance();
    }
  }

 private:
  struct Box {
    int block, row;
  };
  // Finds the box at a key: no block, which is zeros, if no query sees it or k lacks it.
  TC_DEVICE Box box_of(int key, bool is_read) const {
    if (!is_read ||
        !ring.any([&](const KeyRange& seen) { return meets(seen, key, key + p.box_rows); }))
      return {-1, 0};
    const KeyPlace place = place_of(p.call, slice.b, key);
    return {is_there(p.call, place) ? int(place.block) : -1, int(place.row)};
  }
  TC_DEVICE void load_queries() const {
    ptx::mbarrier_arrive_expect_tx(&ring.q_full, sizeof(ring.q));
#pragma unroll
    for (int i = 0; i < C.products * Ring::boxes; ++i) {
      const int product = i / Ring::boxes, box = i % Ring::boxes;
      const int32_t at[4] = {box * Ring::of_box, 0, slice.first_row + product * C.queries, slice.b};
      ptx::tma_load(ring.q[product].at + box * C.queries * C.heads * kBoxChunks, &p.q_map, at,
                    &ring.q_full);
    }
  }
};

// A warpgroup that multiplies every kConsumers-th tile.
template <class T, Config C>
struct KeyConsumer {
  using Ring = KeyRing<T, C>;
  using Sums = WarpgroupSums<kGroupRows, C.queries * C.heads>;
  static constexpr int kEights = C.heads / 8;                      // of a query
  static constexpr int kOwn = C.queries == 1 ? 1 : C.queries / 2;  // logits of a lane
  static constexpr int kStep = kConsumers * kGroupRows;
  // Tiles may come in another order than they were asked for, and a barrier's parity tells only
  // neighbouring phases apart: so no two consumers read the same stage.
  static_assert(C.stages % kConsumers == 0);
  Ring& ring;
  const Params& p;
  const Slice& slice;
  const int group;
  const int lane = int(threadIdx.x % kWarpSize);

  TC_DEVICE void run(const KeyRange& hull) const {
    fill(slice.begin, hull.begin);
    fill(hull.end, slice.end);
    ptx::mbarrier_wait_parity(&ring.q_full, 0);
    StageCursor<C.stages> cursor;
    cursor.advance(uint32_t(group));
    const int first = hull.begin + group * kGroupRows + own_row();
    Place place = place_at(first, hull.end), next = place_at(first + kStep, hull.end);
    float scale = scale_at(place);
    // Both ends of the hull are ends of tiles, so all lanes stop at once.
    for (int own = first; own < hull.end; own += kStep, cursor.advance(kConsumers)) {
      ptx::mbarrier_wait_parity(&ring.keys.full[cursor.stage], cursor.parity);
      float next_scale = 0;
      Place after{};
#pragma unroll 1
      for (int product = 0; product < C.products; ++product) {
        Sums sums;
        sums.template add_tiles<T, C.head_dim, true, true>(ring.k[cursor.stage], 0, ring.q[product],
                                                           false);
        if (product == 0) {  // what the next tiles need comes while this one is multiplied
          next_scale = scale_at(next);
          after = place_at(own + 2 * kStep, hull.end);
        }
        sums.land();
        if (product == C.products - 1 && lane == 0)
          ptx::mbarrier_arrive(&ring.keys.empty[cursor.stage]);
        float logits[kOwn];
        add_up(sums, product, logits);
        store(logits, product, own, place.block >= 0, scale);
      }
      place = next;
      next = after;
      scale = next_scale;
    }
  }

 private:
  // The row of a tile whose logits a lane stores, and the query of its m-th one.
  TC_DEVICE int own_row() const {
    return int(threadIdx.x) % kWarpgroup / kWarpSize * 16 + lane % 2 * 8 + lane / 4;
  }
  TC_DEVICE int own_query(int m) const { return C.queries == 1 ? 0 : 2 * m + lane / 2 % 2; }

  // A block and a row of it; block -1: not there.
  struct Place {
    int block, row;
  };
  TC_DEVICE Place place_at(int key, int end) const {
    if (key >= end || key >= p.keys) return {-1, 0};
    const KeyPlace place = place_of(p, slice.b, key);
    return {uint64_t(place.block) < uint64_t(p.blocks) ? int(place.block) : -1, int(place.row)};
  }
  TC_DEVICE float scale_at(const Place& place) const {
    return place.block < 0 ? 0.f : scale_of(p, {place.block, place.row});
  }

  // Keys that no query sees.
  TC_DEVICE void fill(int begin, int end) const {
    for (int i = 0; i < slice.rows; ++i) {
      float* const out = p.out + offset(p.out_strides, slice.b, slice.first_row + i);
#pragma unroll 4
      for (int j = begin + int(threadIdx.x); j < end; j += kConsumers * kWarpgroup)
        out[j * p.out_strides.step] = -kInfinity;
    }
  }

  // Sums over heads. A lane has parts of those of two rows for each query; the four lanes of the
  // rows exchange them, in an order that is the same for all, so that each gets those of its own.
  TC_DEVICE void add_up(const Sums& sums, int product, float (&logits)[kOwn]) const {
    const bool odd = lane % 2 != 0, upper = lane % 4 >= 2;
    float of_row[C.queries];
#pragma unroll
    for (int i = 0; i < C.queries; ++i) {
      float part[2];
      weigh(sums, product, i, part);
      of_row[i] =
          (odd ? part[1] : part[0]) + __shfl_xor_sync(kFullWarp, odd ? part[0] : part[1], 1);
    }
    if constexpr (C.queries == 1) {
      logits[0] = of_row[0] + __shfl_xor_sync(kFullWarp, of_row[0], 2);
    } else {
#pragma unroll
      for (int m = 0; m < kOwn; ++m) {
        const float low = of_row[2 * m], high = of_row[2 * m + 1];
        logits[m] = (upper ? high : low) + __shfl_xor_sync(kFullWarp, upper ? low : high, 2);
      }
    }
  }
  // The lane's columns of query i of a product, for both of its rows.
  TC_DEVICE void weigh(const Sums& sums, int product, int i, float (&part)[2]) const {
    float sum[2][2] = {};
#pragma unroll
    for (int j = 0; j < kEights; ++j) {
      const int eight = i * kEights + j;
      const Vec4<float> weights = ring.weights[product][eight / 2][lane % 4];
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        // Some of the last 16 heads alone may be missing.
        if (C.filled && j >= kEights - 2 && j * 8 + lane % 4 * 2 + e >= p.heads) continue;
#pragma unroll
        for (int half = 0; half < 2; ++half)
          sum[half][e] =
              fmaf(weights[eight % 2 * 2 + e], relu(sums.element(0, eight, half, e)), sum[half][e]);
      }
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) part[half] = sum[half][0] + sum[half][1];
  }

  TC_DEVICE void store(const float (&logits)[kOwn], int product, int own, bool is_there,
                       float scale) const {
    if (own >= slice.end) return;
#pragma unroll
    for (int m = 0; m < kOwn; ++m) {
      const int i = product * C.queries + own_query(m);
      if (i >= slice.rows || (C.queries == 1 && lane % 4 >= 2)) continue;
      const bool is_seen = is_there && meets(ring.seen[i], own, own + 1);
      p.out[offset(p.out_strides, slice.b, slice.first_row + i) + own * p.out_strides.step] =
          is_seen ? logits[m] * scale : -kInfinity;
    }
  }
};

struct Wgmma {
  static constexpr bool begins_itself = true;
  template <class T, Config C>
  TC_DEVICE static void run(const WgmmaParams& p) {
    using Ring = KeyRing<T, C>;
    static_assert(sizeof(Ring) <= ring_bytes(C, sizeof(T)));
    static_assert(C.threads == kConsumers * kWarpgroup + kWarpSize);
    auto& ring = dynamic_shared<Ring>();
    ring.start(p);
    const Slice slice(p.call);
    stage_rows(ring, p.call, slice);
    __syncthreads();
    const KeyRange hull = slice.hull(ring);
    const int group = warpgroup_number();
    if (group == kConsumers)
      KeyProducer<T, C>{ring, p, slice}.run(hull);
    else
      KeyConsumer<T, C>{ring, p.call, slice, group}.run(hull);
  }

 private:
  // Keeps what the block's queries see, and their weights.
  template <class T, Config C>
  TC_DEVICE static void stage_rows(KeyRing<T, C>& ring, const Params& p, const Slice& slice) {
    static_assert(rows_of(C) <= C.threads);
    if (threadIdx.x < rows_of(C)) {
      KeyRange seen{0, 0};
      if (int(threadIdx.x) < slice.rows)
        seen = checked_keys_of(p, slice.b, slice.first_row + int(threadIdx.x));
      ring.seen[threadIdx.x] = seen;
    }
    constexpr int kColumns = C.queries * C.heads, kWhole = round_up(kColumns, 16);
    for (int i = int(threadIdx.x); i < C.products * kWhole; i += C.threads) {
      const int product = i / kWhole, column = i % kWhole;
      const int row = product * C.queries + column / C.heads, head = column % C.heads;
      ring.weight(product, column) =
          column < kColumns && row < slice.rows && head < p.heads
              ? p.weights[offset(p.weights_strides, slice.b, slice.first_row + row) +
                          head * p.weights_strides.head]
              : 0.f;
    }
  }
};

}  // namespace tensorcraft::kernel::mqa_logits
