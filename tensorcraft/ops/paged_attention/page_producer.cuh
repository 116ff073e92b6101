// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/attention/persist.cuh"
#include "tensorcraft/device/code_words.cuh"
#include "tensorcraft/ops/paged_attention/params.h"
#include "tensorcraft/ops/paged_attention/pages.cuh"

namespace tensorcraft::kernel::paged_attention {

// Two tiles of codes behind the ring for each warpgroup that copies, and a barrier for each tile.
// Codes come there by the copy engine, and the threads make them tiles of T while the next ones
// come.
template <class Code, Config C, class Work>
struct CodeTiles {
  alignas(128) Code at[producers_of(C)][2][C.block_n * C.head_dim];
  uint64_t full[producers_of(C)][2];
  Work work[producers_of(C)];  // whose keys or values come
};

// Codes are multiplied as float16, which holds them all at the fewest instructions, and so
// are queries beside them.
template <class T, class Code>
using Multiplied = Select<sizeof(Code) == 1, f16, T>;
template <class T, class Code, Config C>
inline constexpr auto kTiles = tile_config(C, sizeof(Code) == 1 && kAreSame<T, bf16>);

// Brings tiles of keys and values whose rows lie in blocks of the cache: a thread of a warpgroup
// looks up a block and starts one box of its rows. Blocks that no query of the tile sees are looked
// up nowhere: their rows are zeros, and so are those of a block that the cache lacks.
template <class T, class Code, Config C, attention_tiles::Config kOfTiles>
struct PageProducer : attention_tiles::Producer<T, kOfTiles> {
  using Producer = attention_tiles::Producer<T, kOfTiles>;
  using Ring = attention_tiles::Ring<T, kOfTiles>;
  using Work = attention_tiles::Work<kOfTiles>;
  using Tile = typename Ring::Keys;
  static constexpr bool kHasCodes = sizeof(Code) == 1;
  static constexpr int threads = kWarpgroup, kWarps = threads / kWarpSize;
  static constexpr int kParts = producers_of(C);
  static constexpr int kBoxes = C.block_n / C.box_rows;
  static_assert(C.block_n % C.box_rows == 0 && C.box_rows % 8 == 0);
  const Params& pages;
  const int part;  // of kParts 2: 0 brings keys, 1 values
  int thread = int(threadIdx.x) % threads;
  // Looked up ahead of a copy. Codes: the tile, of which operand is `part`, and its block.
  // 16 bits: the block of the next keys, of the last ones, and of those before, whose values come
  // next.
  int looked_up = kNoTile, block = -1, block_of_keys = -1, block_of_values = -1;
  // Codes alone: tiles whose copies have started, tiles that are in the ring, and where the one
  // goes that is not: values (1) of stage (2) with parity (0).
  uint32_t started = 0, converted = 0;
  int goal = 0;

  TC_DEVICE PageProducer(Ring& ring, const HopperParams& p, int number)
      : Producer(ring, p.attention), pages(p.pages), part(number) {}
  // Before the block's first barrier.
  TC_DEVICE static void start(Ring& ring) {
    if (!kHasCodes || threadIdx.x > 0) return;
    for (auto& of_part : codes_of(ring).full)
      for (uint64_t& full : of_part) ptx::mbarrier_init(&full, 1);
  }

  TC_DEVICE void claim(uint32_t works) {
    if (part == 0 && thread == 0) Producer::claim(works);
  }
  TC_DEVICE uint32_t claimed() {
    if constexpr (kParts == 2) convert_last();  // the other part waits for it here
    meet_all();
    if (part == 0 && thread == 0) this->ring.claimed = Producer::claimed();
    meet_all();
    return this->ring.claimed;
  }
  TC_DEVICE void load_queries(const Work& w) {
    if constexpr (kParts == 1) convert_last();
    if (w.request >= 0) length_of(pages, w.request);  // so that the emulator refuses a wrong one
    if (thread == 0) {
      if constexpr (kHasCodes) codes_of(this->ring).work[own()] = w;
      if (part == kParts - 1) Producer::load_queries(w);  // keys need not wait for their room
    }
    meet();
    looked_up = kNoTile;
    if constexpr (!kHasCodes) block = box_of<1>(w.tiles - 1).block;
  }
  TC_DEVICE void finish() {
    convert_last();
    if (part == kParts - 1 && thread == 0) Producer::finish();
  }
  TC_DEVICE void load_keys(const Work&, int tile) {
    if (kParts == 1 || part == 0) load<false>(this->keys, tile);
  }
  TC_DEVICE void load_values(const Work&, int tile) {
    if constexpr (attention_tiles::values_are_keys(kOfTiles)) return;
    if (kParts == 1 || part == 1) load<true>(this->values, tile);
  }

 private:
  static constexpr int kNoTile = -2;
  static constexpr int kAtOnce =
      kParts == 2 ? 4 : 1;  // chunks that a thread converts, as registers reach
  // The barriers after those of consumers: of all that copy, and of each part.
  static constexpr int kAll = kTurns + 3, kOnePart = kAll + 1;
  TC_DEVICE static void meet_all() { ptx::bar_sync(kAll, kParts * threads); }
  TC_DEVICE void meet() const {
    if (own() == 0)
      ptx::bar_sync(kOnePart, threads);
    else
      ptx::bar_sync(kOnePart + 1, threads);
  }
  TC_DEVICE int own() const { return kParts == 1 ? 0 : part; }
  TC_DEVICE static CodeTiles<Code, C, Work>& codes_of(Ring& ring) {
    return *reinterpret_cast<CodeTiles<Code, C, Work>*>(&ring + 1);
  }
  // Registers have gone to the consumers.
  TC_DEVICE const Work& work() const {
    if constexpr (kHasCodes)
      return codes_of(this->ring).work[own()];
    else
      return this->ring.work;
  }

  template <bool kValues, class Cursor>
  TC_DEVICE void load(Cursor& cursor, int tile) {
    const TensorMap* map = kValues ? &this->p.v_map : &this->p.k_map;
    if constexpr (kHasCodes) {
      start_codes(map, tile);
      convert_last<1>();
      goal = cursor.stage * 4 + int(kValues) * 2 + int(cursor.parity);
    } else {
      Ring& ring = this->ring;
      const int stage = cursor.stage;
      if constexpr (kValues) {
        copy(ring.values_of(stage), map, tile, tile == 0 ? block_of_keys : block_of_values,
             &ring.values.empty[stage], cursor.parity, &ring.values.full[stage]);
      } else {
        copy(ring.k[stage], map, tile, block, &ring.keys.empty[stage], cursor.parity,
             &ring.keys.full[stage], front_full(stage));
        block_of_values = block_of_keys;
        block_of_keys = block;
        block = box_of<1>(tile - 1).block;
      }
    }
    cursor.advance();
  }

  // A box of a tile: a line of 128 bytes, or of codes all of a key, of some rows, which do not
  // depend on the line.
  struct Box {
    int row, line, block, block_row;
  };
  template <int kLines>
  TC_DEVICE Box box_of(int tile, bool looks_up = true) const {
    static_assert(kBoxes * kLines <= threads);
    const Work& w = work();
    const int copy = thread % kWarpSize * kWarps + thread / kWarpSize;
    Box box{copy % kBoxes * C.box_rows, copy / kBoxes, -1, 0};
    const int key = w.first_key + tile * C.block_n + box.row;
    const int begin = w.first_key + w.seen(0).begin, end = w.first_key + w.end();
    if (looks_up && key < end && key + C.box_rows > begin)
      box.block = int(Pages(pages, w.request, 0).block_of(key));
    box.block_row = key % pages.block_size;
    return box;
  }
  TC_DEVICE int key_head() const { return work().head / pages.group; }

  // If values are keys, what says that the columns of their first half have come.
  TC_DEVICE uint64_t* front_full(int stage) const {
    if constexpr (attention_tiles::values_are_keys(kOfTiles))
      return &this->ring.v.front_full[stage];
    else
      return nullptr;
  }
  // `front_full`: null, or of the first lines of the tile, which come last.
  template <class To>
  TC_DEVICE void copy(To& to, const TensorMap* map, int tile, int from, uint64_t* empty,
                      uint32_t parity, uint64_t* full, uint64_t* front_full = nullptr) const {
    constexpr int lines = Producer::template boxes_of<To>;
    constexpr bool has_front = attention_tiles::values_are_keys(kOfTiles);
    constexpr int front = has_front ? dim_of_values(kOfTiles) / 2 / Producer::kOfBox : 0;
    constexpr int front_bytes = int(sizeof(To)) / lines * front;
    Box box = box_of<lines>(tile, false);
    if (has_front && box.line < lines) box.line = (box.line + front) % lines;
    const int32_t at[4] = {box.line * Producer::kOfBox, box.block_row, key_head(), from};
    ptx::mbarrier_wait_parity(empty, parity);
    if (thread == 0) {
      ptx::mbarrier_arrive_expect_tx(full, uint32_t(sizeof(To) - front_bytes));
      if (has_front) ptx::mbarrier_arrive_expect_tx(front_full, uint32_t(front_bytes));
    }
    __syncwarp();
    if (box.line < lines)
      ptx::tma_load(to.at + box.line * Producer::template units_of<To> + box.row * kBoxChunks, map,
                    at, box.line < front ? front_full : full);
  }

  TC_DEVICE void start_codes(const TensorMap* map, int tile) {
    auto& codes = codes_of(this->ring);
    Box box = box_of<1>(tile, looked_up != tile);
    if (looked_up == tile) box.block = block;
    const int32_t at[4] = {0, box.block_row, key_head(), box.block};
    const int slot = int(started++ % 2);
    uint64_t* const full = &codes.full[own()][slot];
    if (thread == 0) ptx::mbarrier_arrive_expect_tx(full, sizeof(codes.at[own()][slot]));
    __syncwarp();
    if (box.line == 0) ptx::tma_load(codes.at[own()][slot] + box.row * C.head_dim, map, at, full);
    if constexpr (kParts == 2) {  // its place comes while this one is converted
      block = box_of<1>(tile - 1).block;
      looked_up = tile - 1;
    }
  }
  // Makes the next tile of codes one of the ring, if more than kLeft have come or are to come.
  template <int kLeft = 0>
  TC_DEVICE void convert_last() {
    if (!kHasCodes || started - converted <= kLeft) return;
    auto& codes = codes_of(this->ring);
    Ring& ring = this->ring;
    const int stage = goal / 4, slot = int(converted % 2);
    const bool is_values = goal & 2;
    ptx::mbarrier_wait_parity(&codes.full[own()][slot], converted++ / 2 % 2);
    ptx::mbarrier_wait_parity(is_values ? &ring.values.empty[stage] : &ring.keys.empty[stage],
                              goal & 1);
    auto* to =
        reinterpret_cast<unsigned char*>(is_values ? ring.values_of(stage).at : ring.k[stage].at);
    constexpr int chunks = C.head_dim / kVectorSize<T>;
#pragma unroll kAtOnce
    for (int i = thread; i < C.block_n * chunks; i += threads) {
      const auto words = load_words<T>(codes.at[own()][slot] + i * kVectorSize<T>);
      *reinterpret_cast<Vec4<uint32_t>*>(to + Tile::place(i / chunks, i % chunks)) = {
          {words[0], words[1], words[2], words[3]}};
    }
    ptx::fence_proxy_async();
    __syncwarp();
    if (thread % kWarpSize == 0)
      ptx::mbarrier_arrive(is_values ? &ring.values.full[stage] : &ring.keys.full[stage]);
    meet();  // then the next codes may come
  }
};

// The blocks of a rung whose tiles the copy engine brings from pages.
template <class T, class Code, Config C>
TC_DEVICE void attend_by_pages(const HopperParams& p) {
  constexpr auto tiles = kTiles<T, Code, C>;
  using Element = Multiplied<T, Code>;
  using Producer = PageProducer<Element, Code, C, tiles>;
  using Ring = typename Producer::Ring;
  static_assert(!Producer::kHasCodes ||
                (C.head_dim == C.value_dim &&
                 sizeof(CodeTiles<Code, C, typename Producer::Work>) <= staged_bytes(C)));
  Producer::start(dynamic_shared<Ring>());
  attention_tiles::persist<Element, tiles>(
      p.attention, [&](Ring& ring, int part) { return Producer(ring, p, part); },
      Producer::kHasCodes ? Producer::kWarps : 1);
}

}  // namespace tensorcraft::kernel::paged_attention
