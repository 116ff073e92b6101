// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/ptx/atomic.cuh"
#include "tensorcraft/device/ptx/bulk.cuh"
#include "tensorcraft/device/reduce.cuh"
#include "tensorcraft/device/shared.cuh"
#include "tensorcraft/device/tile/boxed_tile.cuh"
#include "tensorcraft/device/tile/consumers.cuh"
#include "tensorcraft/device/tile/pipeline.cuh"
#include "tensorcraft/device/tile/stage_cursor.cuh"
#include "tensorcraft/device/attention/logits.cuh"
#include "tensorcraft/device/attention/request.cuh"
#include "tensorcraft/device/attention/row_fold.cuh"
#include "tensorcraft/device/attention/value_tiles.cuh"

// The parts of the rungs on wgmma: the work of a block, rings of tiles of keys and of values, the
// Producer that fills them, and in consumer.cuh the warpgroups that multiply. Each rung is a
// schedule of them.
namespace tensorcraft::kernel::attention_tiles {

inline constexpr int kNoWork = -1;
inline constexpr int kWarpsOfGroup = kWarpgroup / kWarpSize;

// The last part of the keys, which consumers go through first, and the tiles of a whole one.
template <int kParts>
struct PartOfWork {
  int part, part_tiles;
};
template <>
struct PartOfWork<0> {};

// Queries of one head, or of packed ones, and the keys that they see.
template <Config C>
struct Work : QueryTile, PartOfWork<C.parts> {
  int number, batch, head;  // the first head of packed ones
  int tiles;                // of keys, up to the last one that a query sees

  // Work number n of all. The heads of a section follow each other for the same queries. The last
  // queries, which see the most keys under a causal limit, come first.
  TC_DEVICE Work(const HopperParams& p, int n) : number(n) {
    constexpr int packed = packed_heads(C);
    int run = 0;
    if constexpr (C.parts == kWritten) {
      run = n % runs_of_parts(p);
      n /= runs_of_parts(p);
    }
    const int blocks = query_tiles(p, queries_of(C)), of_batch = p.heads / packed;
    const int all = p.batch * of_batch;
    const int start = n / (p.section * blocks) * p.section, within = n - start * blocks;
    const int heads = all - start < p.section ? all - start : p.section;
    const int of_all = start + within % heads;
    batch = of_all / of_batch;
    head = (of_all - batch * of_batch) * packed;
    static_cast<QueryTile&>(*this) = query_tile<C>(p, batch, blocks - 1 - within / heads);
    tiles = div_ceil(end(), C.block_n);
    if constexpr (C.parts > 0) find_part(run, runs_of_parts(p));
  }
  // That of lane 0, so that the compiler knows it to be the same for all threads of a warp.
  TC_DEVICE Work of_warp() const {
    constexpr int count = sizeof(Work) / sizeof(int32_t);
    int32_t words[count];
    memcpy(words, this, sizeof(words));
#pragma unroll
    for (int i = 0; i < count; ++i) words[i] = __shfl_sync(kFullWarp, words[i], 0);
    Work w = *this;
    memcpy(&w, words, sizeof(words));
    return w;
  }

 private:
  // Parts are counted from the first key of the request, which is row 0. Those that are written are
  // divided among `runs` works.
  TC_DEVICE void find_part(int run, int runs) {
    const int length = folded_part_keys(first_key + keys, long_part(C));
    const int behind = first_key + end();
    int64_t begin = 0, stop = behind;
    if constexpr (C.parts == kWritten) {
      const int64_t parts = div_ceil(behind, length);
      begin = run * parts / runs * length;
      const int64_t end_of_run = (run + 1) * parts / runs * length;
      stop = end_of_run < behind ? end_of_run : behind;
    }
    const int skipped = begin > first_key && begin < stop ? int(begin) - first_key : 0;
    first_key += skipped;
    keys -= skipped;
    at -= skipped;
    const int rest = begin < stop ? int(stop) - first_key : 0;
    tiles = rest > 0 ? div_ceil(rest, C.block_n) : 0;
    this->part = rest > 0 ? int(stop - 1) / length : 0;
    this->part_tiles = length / C.block_n;
  }
};

// A tile of values as wgmma wants them.
template <class T, Config C>
struct ValuesOf {
  using Tile = BoxedTile<T, C.block_n, boxed_values(C)>;
};
template <Config C>
struct ValuesOf<e4m3, C> : ValueTiles<C.head_dim, C.block_n> {};

template <class T, Config C>
using KeysOf = BoxedTile<T, C.block_n, boxed_dim(C)>;

// The tiles of values of a ring.
template <class T, Config C, bool kAreKeys = values_are_keys(C)>
struct ValueStages {
  using Values = typename ValuesOf<T, C>::Tile;
  Values v[C.stages];
  TC_DEVICE Values& values_of(KeysOf<T, C> (&)[C.stages], int stage) { return v[stage]; }
};

// Values are keys: what the consumer of the scores tells the other two of each row.
template <class T, Config C>
struct ValueStages<T, C, true> {
  using Values = KeysOf<T, C>;
  using Weights = BoxedTile<T, C.block_m, C.block_n>;
  float keep[C.stages][C.block_m];  // beside the weights of a stage
  RowFold::Factors
      factors[2][C.block_m];  // of the part that ended in front of a tile, of the last one
  float inverse[C.block_m];   // of the work
  // The columns of the first half of the values have come; those behind come first, of which
  // Ring::keys speaks.
  uint64_t front_full[C.stages];
  uint64_t inverse_full;
  TC_DEVICE Values& values_of(KeysOf<T, C> (&keys)[C.stages], int stage) { return keys[stage]; }
  // They lie in place of what only scores need of the keys.
  TC_DEVICE Weights& weights_of(KeysOf<T, C> (&keys)[C.stages], int stage) {
    constexpr int units = int(sizeof(Values) / Values::length * dim_of_values(C) / kVectorBytes);
    static_assert(sizeof(Values) - units * kVectorBytes >= sizeof(Weights));
    return *reinterpret_cast<Weights*>(keys[stage].at + units);
  }
};

template <class T, Config C>
struct alignas(1024) Ring {
  using Queries = BoxedTile<T, C.block_m, boxed_dim(C)>;
  using Keys = KeysOf<T, C>;
  using Values = typename ValueStages<T, C>::Values;
  using Outputs = BoxedTile<Output<T, C>, C.block_m, boxed_values(C)>;
  static constexpr int out_tiles = C.out_tile * int(div_ceil(sizeof(Outputs), sizeof(Queries)));
  static_assert(C.out_tile || sizeof(Outputs) <= sizeof(Queries));
  Queries q[1 + out_tiles];  // the output leaves from q[C.out_tile] on
  Keys k[C.stages];
  ValueStages<T, C> v;
  // Full: the bytes have come, or if values are keys the weights of a tile. Empty: no warp reads
  // them any more.
  uint64_t q_full, q_empty;
  Work<C> work;                     // whose queries come; number kNoWork: none do any more
  uint32_t claimed;                 // of producers that are several threads
  Barriers<C.stages> keys, values;  // of k and v

  TC_DEVICE Values& values_of(int stage) { return v.values_of(k, stage); }

  // `readers`: warps that read each tile, `writers`: threads that say that it has come. Each lane
  // lets go of the queries, and of the work, which all lanes read.
  TC_DEVICE void start(const HopperParams& p, int readers, int writers = 1) {
    begin_with_barriers([&] {
      ptx::prefetch_tensormap(&p.q_map);
      if (p.seq_k > 0) {  // else there are no maps
        ptx::prefetch_tensormap(&p.k_map);
        if (sizeof(T) == 2 && !values_are_keys(C)) ptx::prefetch_tensormap(&p.v_map);
      }
      ptx::mbarrier_init(&q_full, 1);
      ptx::mbarrier_init(&q_empty, uint32_t(readers * kWarpSize));
      keys.init(readers, writers);
      values.init(readers, values_are_keys(C) ? kWarpsOfGroup : writers);
      if constexpr (values_are_keys(C)) {
        ptx::mbarrier_init(&v.inverse_full, kWarpsOfGroup);
        for (uint64_t& full : v.front_full) ptx::mbarrier_init(&full, 1);
      }
    });
    __syncthreads();
  }
};

// Starts the copies of the block, by `threads` of its warpgroup.
template <class T, Config C>
struct Producer {
  Ring<T, C>& ring;
  const HopperParams& p;
  static constexpr int threads = 1;
  uint32_t queries_parity = 1;
  StageCursor<C.stages> keys{0, 1}, values{0, 1};

  // Elements of a line of a box; the boxes of a tile side by side, and the vectors of each.
  static constexpr int kOfBox = kBoxChunks * kVectorSize<T>;
  template <class Tile>
  static constexpr int boxes_of = Tile::length / kOfBox;
  template <class Tile>
  static constexpr int units_of = int(sizeof(Tile) / boxes_of<Tile> / kVectorBytes);

  TC_DEVICE Producer(Ring<T, C>& memory, const HopperParams& params) : ring(memory), p(params) {}

  // Claims one more work, which arrives while this one is produced: how many works blocks have
  // taken after their first, before the one that this block now takes.
  TC_DEVICE void claim(uint32_t works) { claimed_ = ptx::atom_inc_u32(p.taken, works - 1); }
  TC_DEVICE uint32_t claimed() const { return claimed_; }
  TC_DEVICE void load_queries(const Work<C>& w) {
    wait_for_consumers();
    ring.work = w;
    if constexpr (C.packed > 0)  // the map has heads inside of rows
      load_boxes(ring.q[0], &p.q_map, w.head, w.first, w.batch, &ring.q_full);
    else
      load(ring.q[0], &p.q_map, {w.first, w.head, w.batch}, p.q_strides, &ring.q_full);
  }
  // After the last work.
  TC_DEVICE void finish() {
    wait_for_consumers();
    ring.work.number = kNoWork;
    ptx::mbarrier_arrive(&ring.q_full);
  }
  TC_DEVICE void load_keys(const Work<C>& w, int tile) {
    ptx::mbarrier_wait_parity(&ring.keys.empty[keys.stage], keys.parity);
    load(ring.k[keys.stage], &p.k_map, place(w, tile), p.k_strides, &ring.keys.full[keys.stage]);
    keys.advance();
  }
  TC_DEVICE void load_values(const Work<C>& w, int tile) {
    ptx::mbarrier_wait_parity(&ring.values.empty[values.stage], values.parity);
    uint64_t* full = &ring.values.full[values.stage];
    auto& to = ring.values_of(values.stage);
    if constexpr (sizeof(T) == 1) {
      ptx::mbarrier_arrive_expect_tx(full, sizeof(to));
      const unsigned char* from =
          ValuesOf<T, C>::at(p, w.batch, w.head / p.group, w.first_key / C.block_n + tile);
      ptx::cp_async_bulk_load(to.at, from, sizeof(to), full);
    } else {
      load(to, &p.v_map, place(w, tile), p.v_strides, full);
    }
    values.advance();
  }

 private:
  uint32_t claimed_;
  // They have the last work and its queries. The arrival that follows shows them the next one.
  TC_DEVICE void wait_for_consumers() {
    ptx::mbarrier_wait_parity(&ring.q_empty, queries_parity);
    queries_parity ^= 1;
  }
  struct Place {
    int row, head, batch;
  };
  TC_DEVICE Place place(const Work<C>& w, int tile) const {
    return {w.first_key + tile * C.block_n, w.head / p.group, w.batch};
  }
  // The map has one head or batch if all share it.
  template <class Tile>
  TC_DEVICE void load(Tile& to, const TensorMap* map, const Place& from, const Strides& strides,
                      uint64_t* full) {
    const int head = strides.head ? from.head : 0, batch = strides.batch ? from.batch : 0;
    load_boxes(to, map, from.row, head, batch, full);
  }
  // A tile by its boxes, which begin at the coordinates after the first.
  template <class Tile>
  TC_DEVICE void load_boxes(Tile& to, const TensorMap* map, int at1, int at2, int at3,
                            uint64_t* full) {
    ptx::mbarrier_arrive_expect_tx(full, sizeof(Tile));
#pragma unroll
    for (int i = 0; i < boxes_of<Tile>; ++i) {
      const int32_t at[4] = {i * kOfBox, at1, at2, at3};
      ptx::tma_load(to.at + i * units_of<Tile>, map, at, full);
    }
  }
};

}  // namespace tensorcraft::kernel::attention_tiles
