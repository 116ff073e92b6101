// SPDX-License-Identifier: Apache-2.0
#include "tests/wrappers/cases.hpp"
#include "tests/wrappers/kernels/tma.cuh"
#include "tests/wrappers/reductions.hpp"

#include <cstring>

namespace tensorcraft::test {
namespace {

using Swizzle = TiledTensor::Swizzle;
constexpr size_t kDims = 5;
constexpr int kBlocks = 12;  // each is a launch

// A tensor, its box and their layouts in memory.
struct Boxed {
  TiledTensor t;
  size_t element() const { return dtype_bytes(t.dtype); }
  size_t tensor_words() const {
    size_t bytes = size_t(t.dims[0]) * element();
    for (size_t d = 1; d < size_t(t.rank); ++d) bytes = t.strides[d - 1] * t.dims[d];
    return (bytes + 15) / 16 * 4;
  }
  size_t extent(size_t d) const {
    if (d >= size_t(t.rank)) return 1;
    return d == 0 ? t.box[0] : (t.box[d] + t.element_strides[d] - 1) / t.element_strides[d];
  }
  size_t box_elements() const {
    size_t count = 1;
    for (size_t d = 0; d < kDims; ++d) count *= extent(d);
    return count;
  }
  size_t box_words() const { return box_elements() * element() / 4; }

  // The place of byte i of the plain box: 16-byte units of a line of 128 bytes change places.
  size_t placed(size_t i) const {
    const size_t units = size_t(1) << int(t.swizzle), line = i / 128, unit = i / 16 % 8;
    return line * 128 + (unit / units * units + (unit % units ^ line % units)) * 16 + i % 16;
  }
  // The byte of the tensor that element i of the box at `at` begins at; none if that is outside.
  std::optional<size_t> source(Words at, size_t i) const {
    size_t byte = 0;
    for (size_t d = 0; d < size_t(t.rank); ++d) {
      const int64_t step = d == 0 ? 1 : t.element_strides[d];
      const int64_t index = int32_t(at[d]) + int64_t(i % extent(d)) * step;
      if (index < 0 || index >= int64_t(t.dims[d])) return std::nullopt;
      byte += size_t(index) * (d == 0 ? element() : size_t(t.strides[d - 1]));
      i /= extent(d);
    }
    return byte;
  }
  // A place from which the box reaches into the tensor; if it is written, one that begins there.
  void random_place(Random& random, int block, bool written, std::span<uint32_t> at) const {
    std::fill(at.begin(), at.begin() + kDims, 0);
    for (size_t d = 0; d < size_t(t.rank); ++d) {
      const auto unit = int64_t(d == 0 ? 16 / element() : 1), box = int64_t(t.box[d]);
      const int64_t first = written ? 0 : (1 - box) / unit, last = int64_t(t.dims[d] - 1) / unit;
      const int64_t inside = std::max(int64_t(0), (int64_t(t.dims[d]) - box) / unit);
      const auto pick = [&](int64_t low, int64_t high) {
        return low + int64_t(random() % uint64_t(high - low + 1));
      };
      // Wholly inside; anywhere; at either end.
      const int64_t place = block % 3 == 0   ? pick(0, inside)
                            : block % 3 == 1 ? pick(first, last)
                            : random() % 2   ? first
                                             : last;
      at[d] = uint32_t(place * unit);
    }
    at[kDims] = uint32_t(box_words());
  }
};

// The box that a load brings, 16-bit NaN or zeros outside.
std::vector<uint32_t> loaded(const Boxed& b, Words in) {
  std::vector<uint32_t> box(b.box_words());
  auto* to = reinterpret_cast<std::byte*>(box.data());
  const auto* tensor = reinterpret_cast<const std::byte*>(in.data() + kBoxHead);
  for (size_t i = 0; i < b.box_elements(); ++i) {
    const uint64_t nothing = b.t.nan_fill ? 0x7ff77ff7u : 0;
    const auto from = b.source(in, i);
    std::memcpy(to + b.placed(i * b.element()),
                from ? static_cast<const void*>(tensor + *from) : &nothing, b.element());
  }
  return box;
}

std::vector<Expected> exactly(const std::vector<uint32_t>& words) {
  std::vector<Expected> out;
  for (const uint32_t word : words) out.push_back({word});
  return out;
}

template <void (*kKernel)(const Params&)>
Case tma(const std::string& name, const Boxed& b, bool written) {
  Case c{.name = name, .header = "tma.cuh", .sm = 90, .simt = on_simt<kKernel>};
  c.blocks = kBlocks;
  c.shared_bytes = sizeof(BoxShared);
  c.tensor = CaseTensor{b.t, written, written ? size_t(0) : size_t(kBoxHead)};
  return c;
}

template <void (*kKernel)(const Params&)>
Case load(const std::string& name, const TiledTensor& tensor) {
  const Boxed b{tensor};
  Case c = tma<kKernel>(name, b, false);
  c.in_words = kBoxHead + int(b.tensor_words());
  c.out_words = int(b.box_words());
  c.fill = [b](Random& random, int block, std::span<uint32_t> in) {
    random_words(random, block, in);
    b.random_place(random, block, false, in);
  };
  c.expect = [b](Words in, int) { return exactly(loaded(b, in)); };
  return c;
}

template <void (*kKernel)(const Params&)>
Case multicast(const std::string& name, const TiledTensor& tensor) {
  const Boxed b{tensor};
  Case c = load<kKernel>(name, tensor);
  c.cluster = {kTmaBlocks};
  c.out_words = kTmaBlocks * 2 * int(b.box_words());
  c.fill = [fill = c.fill](Random& random, int block, std::span<uint32_t> in) {
    fill(random, block, in);
    in[6] = 1 + uint32_t(block % 3);
  };
  c.expect = [b](Words in, int) {
    const std::vector<uint32_t> box = loaded(b, in), nothing(box.size());
    std::vector<uint32_t> out;
    for (uint32_t rank = 0; rank < kTmaBlocks; ++rank) {
      const auto& first = in[6] >> rank & 1u ? box : nothing;
      const auto& second = rank == 1 ? box : nothing;
      out.insert(out.end(), first.begin(), first.end());
      out.insert(out.end(), second.begin(), second.end());
    }
    return exactly(out);
  };
  return c;
}

// Windows over images, which are numbered along columns, then rows, planes and images.
struct Windows {
  Im2colTensor t;
  Boxed boxed() const { return {t.images}; }
  size_t axes() const { return size_t(t.images.rank) - 2; }
  int64_t count(size_t axis) const { return t.num_windows(int(axis)); }
  size_t box_words() const { return t.images.box[0] * t.images.box[1] * boxed().element() / 4; }
  int64_t first(size_t axis, int64_t number) const {
    return t.lower[axis] + number * int64_t(t.images.element_strides[axis + 1]);
  }
  // The number of the window that begins at `at`.
  int64_t number(Words at) const {
    int64_t number = int32_t(at[axes() + 1]);
    for (size_t axis = axes(); axis-- > 0;)
      number = number * count(axis) + (int32_t(at[axis + 1]) - t.lower[axis]) /
                                          int64_t(t.images.element_strides[axis + 1]);
    return number;
  }
  // The byte of the tensor at which channel i of a window's place begins; none outside it.
  std::optional<size_t> source(Words in, int64_t number, size_t i) const {
    const int64_t channel = int32_t(in[0]) + int64_t(i);
    if (channel < 0 || channel >= int64_t(t.images.dims[0])) return std::nullopt;
    size_t byte = size_t(channel) * boxed().element();
    for (size_t axis = 0; axis < axes(); ++axis) {
      const int64_t offset = in[6 + axis / 2] >> axis % 2 * 16 & 0xffff;
      const int64_t at = first(axis, number % count(axis)) + offset;
      if (at < 0 || at >= int64_t(t.images.dims[axis + 1])) return std::nullopt;
      byte += size_t(at) * t.images.strides[axis];
      number /= count(axis);
    }
    if (number >= int64_t(t.images.dims[axes() + 1])) return std::nullopt;
    return byte + size_t(number) * t.images.strides[axes()];
  }
  void random_place(Random& random, int block, std::span<uint32_t> in) const {
    std::fill_n(in.begin(), kBoxHead, 0);
    const auto unit = int64_t(16 / boxed().element());
    // From the first window of all on, or from any.
    in[0] = block % 3 == 0 ? 0 : uint32_t(random() % (t.images.dims[0] / uint64_t(unit)) * unit);
    for (size_t axis = 0; axis < axes(); ++axis) {
      const int64_t number = block % 3 == 0 ? 0 : random() % count(axis);
      in[axis + 1] = uint32_t(int32_t(first(axis, number)));
      in[6 + axis / 2] |= random() % 4 << axis % 2 * 16;
    }
    in[axes() + 1] = uint32_t(block % 3 == 0 ? 0 : random() % t.images.dims[axes() + 1]);
    in[kDims] = uint32_t(box_words());
  }
};

std::vector<uint32_t> loaded(const Windows& w, Words in) {
  const Boxed b = w.boxed();
  std::vector<uint32_t> box(w.box_words());
  auto* to = reinterpret_cast<std::byte*>(box.data());
  const auto* tensor = reinterpret_cast<const std::byte*>(in.data() + kBoxHead);
  const size_t channels = w.t.images.box[0];
  for (size_t i = 0; i < channels * w.t.images.box[1]; ++i) {
    const uint64_t nothing = b.t.nan_fill ? 0x7ff77ff7u : 0;
    const auto from = w.source(in, w.number(in) + int64_t(i / channels), i % channels);
    std::memcpy(to + b.placed(i * b.element()),
                from ? static_cast<const void*>(tensor + *from) : &nothing, b.element());
  }
  return box;
}

template <void (*kKernel)(const Params&)>
Case load_windows(const std::string& name, const Im2colTensor& tensor) {
  const Windows w{tensor};
  Case c = tma<kKernel>(name, w.boxed(), false);
  c.tensor->windows = tensor;
  c.in_words = kBoxHead + int(w.boxed().tensor_words());
  c.out_words = int(w.box_words());
  c.fill = [w](Random& random, int block, std::span<uint32_t> in) {
    random_words(random, block, in);
    w.random_place(random, block, in);
  };
  c.expect = [w](Words in, int) { return exactly(loaded(w, in)); };
  return c;
}

using Op = Reduction::Op;
using Type = Reduction::Type;

// A store, and a reduction of the same box if there is one.
std::vector<Expected> expect_stored(const Boxed& b, const std::optional<Reduction>& r, Words in) {
  std::vector<uint32_t> tensor(b.tensor_words(), 0xdddddddd);
  auto* to = reinterpret_cast<std::byte*>(tensor.data());
  const auto* first = reinterpret_cast<const std::byte*>(in.data() + kBoxHead);
  const auto* second = first + b.box_words() * 4;
  for (size_t i = 0; i < b.box_elements(); ++i) {
    const auto at = b.source(in, i);
    if (!at) continue;
    const size_t place = b.placed(i * b.element());
    uint64_t old = 0, x = 0;
    std::memcpy(&old, first + place, b.element());
    std::memcpy(&x, second + place, b.element());
    if (r) old = r->reduce({uint32_t(old), 0}, {uint32_t(x), 0}).first;
    std::memcpy(to + *at, &old, b.element());
  }
  return exactly(tensor);
}

template <void (*kKernel)(const Params&)>
Case store(const std::string& name, const TiledTensor& tensor, std::optional<Reduction> r = {}) {
  const Boxed b{tensor};
  Case c = tma<kKernel>(name, b, true);
  c.in_words = kBoxHead + 2 * int(b.box_words());
  c.out_words = int(b.tensor_words());
  c.fill = [b, r](Random& random, int block, std::span<uint32_t> in) {
    for (uint32_t& word : in) word = r ? r->random_word(random, block % 3) : uint32_t(random());
    b.random_place(random, block, true, in);
  };
  c.expect = [b, r](Words in, int) { return expect_stored(b, r, in); };
  return c;
}

// 104 x 60 elements, rows of 512 bytes.
TiledTensor plane(DType dtype, uint32_t columns, uint32_t rows, Swizzle swizzle = Swizzle::none) {
  return {.dtype = dtype,
          .rank = 2,
          .dims = {104, 60},
          .strides = {512},
          .box = {columns, rows},
          .swizzle = swizzle};
}
TiledTensor with_nan(TiledTensor t) {
  t.nan_fill = true;
  return t;
}
// A second box after one of these begins at a multiple of 128 bytes too.
TiledTensor line() { return {.dtype = DType::float32, .rank = 1, .dims = {100}, .box = {32}}; }
TiledTensor solid(int rank) {
  return {.dtype = DType::float32,
          .rank = rank,
          .dims = {12, 9, 7, 5, 3},
          .strides = {64, 640, 4480, 22400},
          .box = {8, 8, 4, 3, 2}};
}
TiledTensor stepped() {
  TiledTensor t = solid(5);
  t.element_strides = {1, 2, 3, 1, 2};
  return t;
}

// Two images of 40 channels, 9 x 7 pixels; windows as of 3 x 3 taps with one of padding.
Im2colTensor images(DType dtype, uint32_t channels, uint32_t places, Swizzle swizzle,
                    uint32_t stride = 1) {
  const uint64_t pixel = 40 * dtype_bytes(dtype);
  return {.images = {.dtype = dtype,
                     .rank = 4,
                     .dims = {40, 9, 7, 2},
                     .strides = {pixel, 9 * pixel, 63 * pixel},
                     .box = {channels, places},
                     .element_strides = {1, stride, stride, 1, 1},
                     .swizzle = swizzle},
          .lower = {-1, -1},
          .upper = {-1, -1}};
}
Im2colTensor with_nan(Im2colTensor t) {
  t.images.nan_fill = true;
  return t;
}
// One axis, and three, with sides of their own.
Im2colTensor lines() {
  return {.images = {.dtype = DType::float32,
                     .rank = 3,
                     .dims = {12, 23, 3},
                     .strides = {48, 1104},
                     .box = {8, 40},
                     .element_strides = {1, 3, 1, 1, 1}},
          .lower = {-2},
          .upper = {-4}};
}
Im2colTensor volumes() {
  return {.images = {.dtype = DType::float16,
                     .rank = 5,
                     .dims = {16, 7, 5, 3, 2},
                     .strides = {32, 224, 1120, 3360},
                     .box = {16, 100},
                     .element_strides = {1, 2, 1, 1, 1}},
          .lower = {0, -2, -1},
          .upper = {-2, 0, 1}};
}

void add_windows(std::vector<Case>& cases) {
  using enum TiledTensor::Swizzle;
  cases.push_back(load_windows<tma_im2col_3>("tma_im2col_3", lines()));
  cases.push_back(load_windows<tma_im2col_4>("tma_im2col_4:bfloat16",
                                             images(DType::bfloat16, 64, 64, bytes_128)));
  cases.push_back(load_windows<tma_im2col_4>("tma_im2col_4:stride_2",
                                             images(DType::float16, 64, 24, bytes_128, 2)));
  cases.push_back(
      load_windows<tma_im2col_4>("tma_im2col_4:float32", images(DType::float32, 16, 80, bytes_64)));
  cases.push_back(load_windows<tma_im2col_4>("tma_im2col_4:nan",
                                             with_nan(images(DType::bfloat16, 32, 128, none, 3))));
  cases.push_back(load_windows<tma_im2col_5>("tma_im2col_5", volumes()));
}

void add_loads(std::vector<Case>& cases) {
  cases.push_back(load<tma_load_1>("tma_load_1", line()));
  cases.push_back(load<tma_load_2>("tma_load_2:float32", plane(DType::float32, 32, 16)));
  cases.push_back(load<tma_load_2>("tma_load_2:int8", plane(DType::int8, 64, 16)));
  cases.push_back(load<tma_load_2>("tma_load_2:int64", [] {
    TiledTensor t = plane(DType::int64, 16, 16);
    t.dims[0] = 62;
    return t;
  }()));
  const std::pair<const char*, Swizzle> swizzles[] = {
      {"32", Swizzle::bytes_32}, {"64", Swizzle::bytes_64}, {"128", Swizzle::bytes_128}};
  for (const auto& [name, swizzle] : swizzles) {
    const uint32_t bytes = 16u << int(swizzle);
    const std::string which = std::string("tma_load_2:swizzle_") + name;
    cases.push_back(
        load<tma_load_2>(which + "_bfloat16", plane(DType::bfloat16, bytes / 2, 40, swizzle)));
    cases.push_back(
        load<tma_load_2>(which + "_float32", plane(DType::float32, bytes / 4, 40, swizzle)));
    cases.push_back(load<tma_load_2>(which + "_int8", plane(DType::int8, bytes, 40, swizzle)));
  }
  for (const DType dtype : {DType::float32, DType::float16, DType::bfloat16})
    cases.push_back(load<tma_load_2>("tma_load_2:nan_" + std::string(to_string(dtype)),
                                     with_nan(plane(dtype, 32, 16))));
  cases.push_back(load<tma_load_3>("tma_load_3", solid(3)));
  cases.push_back(load<tma_load_4>("tma_load_4", solid(4)));
  cases.push_back(load<tma_load_5>("tma_load_5", solid(5)));
  cases.push_back(load<tma_load_5>("tma_load_5:steps", stepped()));
}

void add_multicasts(std::vector<Case>& cases) {
  cases.push_back(multicast<tma_multicast_1>("tma_multicast_1", line()));
  cases.push_back(multicast<tma_multicast_2>("tma_multicast_2:swizzle_128",
                                             plane(DType::bfloat16, 64, 24, Swizzle::bytes_128)));
  cases.push_back(multicast<tma_multicast_3>("tma_multicast_3", solid(3)));
  cases.push_back(multicast<tma_multicast_4>("tma_multicast_4", solid(4)));
  cases.push_back(multicast<tma_multicast_5>("tma_multicast_5", solid(5)));
}

void add_stores(std::vector<Case>& cases) {
  cases.push_back(store<tma_store_1>("tma_store_1", line()));
  cases.push_back(store<tma_store_2>("tma_store_2:float32", plane(DType::float32, 32, 16)));
  cases.push_back(store<tma_store_2>("tma_store_2:swizzle_32",
                                     plane(DType::bfloat16, 16, 40, Swizzle::bytes_32)));
  cases.push_back(store<tma_store_2>("tma_store_2:swizzle_64",
                                     plane(DType::float16, 32, 40, Swizzle::bytes_64)));
  cases.push_back(store<tma_store_2>("tma_store_2:swizzle_128",
                                     plane(DType::float32, 32, 40, Swizzle::bytes_128)));
  cases.push_back(store<tma_store_3>("tma_store_3", solid(3)));
  cases.push_back(store<tma_store_4>("tma_store_4", solid(4)));
  cases.push_back(store<tma_store_5>("tma_store_5", solid(5)));
  cases.push_back(store<tma_store_5>("tma_store_5:steps", stepped()));
}

void add_reductions(std::vector<Case>& cases) {
  const TiledTensor f32 = plane(DType::float32, 32, 16), s32 = plane(DType::int32, 32, 16);
  const TiledTensor f16 = plane(DType::float16, 64, 16);
  const TiledTensor bf16 = plane(DType::bfloat16, 64, 16, Swizzle::bytes_128);
  const Reduction add{Op::add, Type::f32};
  cases.push_back(store<tma_add_1>("tma_add_1", line(), add));
  cases.push_back(store<tma_add_2>("tma_add_2:float32", f32, add));
  cases.push_back(store<tma_add_2>("tma_add_2:float16", f16, Reduction{Op::add, Type::f16}));
  cases.push_back(store<tma_add_2>("tma_add_2:bfloat16", bf16, Reduction{Op::add, Type::bf16}));
  cases.push_back(store<tma_add_2>("tma_add_2:int32", s32, Reduction{Op::add, Type::s32}));
  cases.push_back(store<tma_add_3>("tma_add_3", solid(3), add));
  cases.push_back(store<tma_add_4>("tma_add_4", solid(4), add));
  cases.push_back(store<tma_add_5>("tma_add_5:steps", stepped(), add));
  // Numbers by themselves: what becomes of NaN is a second question.
  for (const bool nan : {false, true}) {
    const std::string end = nan ? "_nan" : "";
    cases.push_back(
        store<tma_min_2>("tma_min_2:float16" + end, f16, Reduction{Op::min, Type::f16, nan}));
    cases.push_back(
        store<tma_min_2>("tma_min_2:bfloat16" + end, bf16, Reduction{Op::min, Type::bf16, nan}));
    cases.push_back(
        store<tma_max_2>("tma_max_2:float16" + end, f16, Reduction{Op::max, Type::f16, nan}));
    cases.push_back(
        store<tma_max_2>("tma_max_2:bfloat16" + end, bf16, Reduction{Op::max, Type::bf16, nan}));
  }
  cases.push_back(store<tma_min_2>("tma_min_2:int32", s32, Reduction{Op::min, Type::s32}));
  cases.push_back(store<tma_max_2>("tma_max_2:int32", s32, Reduction{Op::max, Type::s32}));
  cases.push_back(store<tma_and_2>("tma_and_2:int32", s32, Reduction{Op::bit_and, Type::s32}));
  cases.push_back(store<tma_or_2>("tma_or_2:int32", s32, Reduction{Op::bit_or, Type::s32}));
  cases.push_back(store<tma_xor_2>("tma_xor_2:int32", s32, Reduction{Op::bit_xor, Type::s32}));
}

}  // namespace

std::vector<Case> tma_cases() {
  std::vector<Case> cases;
  add_loads(cases);
  add_windows(cases);
  add_multicasts(cases);
  add_stores(cases);
  add_reductions(cases);
  return cases;
}

}  // namespace tensorcraft::test
