// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/device/ptx/cvt.cuh"
#include "tensorcraft/device/swizzle.cuh"
#include "tensorcraft/simt/bulk.hpp"
#include "tensorcraft/simt/tensor_map.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace tensorcraft::simt {
namespace {

// A box of a tensor at a place, and how shared memory holds it: densely, its 16-byte units moved by
// the swizzle, which looks at the address there.
struct Box {
  TiledTensor tensor;
  std::array<int64_t, 5> at{};
  std::array<int64_t, 5> extent{};  // elements that move
  std::array<int64_t, 5> step{};    // between them in the tensor
  size_t element = 0;
  size_t bytes = 0;
  uint32_t address = 0;  // in shared memory
};

int rank_of(const TiledTensor& tensor) { return tensor.rank; }
int rank_of(const Im2colTensor& tensor) { return tensor.images.rank; }

template <class Tensor>
void check_decoded(const std::optional<Tensor>& decoded, bool is_of_other_mode, int rank,
                   const Issue& issue) {
  if (is_of_other_mode)
    issue.fault("the tensor map is of the other mode: boxes, or windows over images");
  if (!decoded) issue.fault("the tensor map was not encoded for the emulator");
  if (rank_of(*decoded) != rank)
    issue.fault(join("the tensor map has rank ", rank_of(*decoded), ", the copy ", rank));
}

void check_first_coordinate(int32_t at, size_t element, const Issue& issue) {
  if (at * int64_t(element) % 16 != 0)
    issue.fault(join("the first coordinate, element ", at, " of ", element,
                     " bytes, is not at a multiple of 16 bytes; a GPU takes it for an illegal "
                     "instruction"));
}

// Where shared memory holds a box; `line` bytes are side by side there.
uint32_t shared_address(const TiledTensor& tensor, size_t line, const void* shared, size_t bytes,
                        const Issue& issue) {
  const uint32_t span = swizzle_span(Swizzle(int(tensor.swizzle)));
  if (span > 16 && line != span)
    issue.fault(join("the inner box must fill the swizzle's ", span, " bytes on the emulator"));
  if (!shared) return 0;
  const Block& block = block_of(shared, bytes, "the box in shared memory", issue);
  const auto address = uint32_t(static_cast<const std::byte*>(shared) - block.shared);
  if (address % 128 != 0)
    issue.fault(join("shared memory at byte ", address, " is not a multiple of 128 bytes"));
  return address;
}

Box box_at(const TensorMap* map, const int32_t* at, int rank, const void* shared,
           const Issue& issue) {
  const auto decoded = decode_tiled(*map);
  check_decoded(decoded, decode_im2col(*map).has_value(), rank, issue);
  Box box{.tensor = *decoded, .element = dtype_bytes(decoded->dtype)};
  box.bytes = box.element;
  for (size_t i = 0; i < 5; ++i) {
    const bool has = i < size_t(rank);
    box.at[i] = has ? at[i] : 0;
    box.step[i] = has && i > 0 ? box.tensor.element_strides[i] : 1;
    box.extent[i] = has ? (int64_t(box.tensor.box[i]) + box.step[i] - 1) / box.step[i] : 1;
    if (!has) box.tensor.dims[i] = 1;
    box.bytes *= size_t(box.extent[i]);
  }
  check_first_coordinate(at[0], box.element, issue);
  box.address =
      shared_address(box.tensor, size_t(box.extent[0]) * box.element, shared, box.bytes, issue);
  return box;
}

// The windows of a copy: a box of channels by places, and how the places follow one another.
struct Windows {
  Im2colTensor map;
  Box box;
  std::array<int64_t, 3> number{};  // of the first window, along each axis
  std::array<int64_t, 3> offset{};

  int num_axes() const { return map.num_axes(); }
};

Windows windows_at(const TensorMap* map, const int32_t* at, const uint16_t* offsets, int rank,
                   const void* shared, const Issue& issue) {
  const auto decoded = decode_im2col(*map);
  check_decoded(decoded, decode_tiled(*map).has_value(), rank, issue);
  Windows w{.map = *decoded,
            .box = {.tensor = decoded->images, .element = dtype_bytes(decoded->images.dtype)}};
  w.box.at = {at[0], 0, 0, 0, at[rank - 1]};
  w.box.extent = {w.box.tensor.box[0], w.box.tensor.box[1], 1, 1, 1};
  w.box.bytes = size_t(w.box.extent[0] * w.box.extent[1]) * w.box.element;
  check_first_coordinate(at[0], w.box.element, issue);
  for (size_t i = 0; i < size_t(w.num_axes()); ++i) {
    const int64_t from = at[i + 1] - w.map.lower[i], step = w.box.tensor.element_strides[i + 1];
    if (from < 0 || from % step != 0 || from / step >= w.map.num_windows(int(i)))
      issue.fault(join("coordinate ", i + 1, " is ", at[i + 1],
                       ", where no window begins: ", w.map.num_windows(int(i)), " do from ",
                       w.map.lower[i], " on, ", step, " apart"));
    if (offsets[i] >= im2col_offset_end(w.num_axes()))
      issue.fault(join("offset ", i, " is ", offsets[i], ", but must be below ",
                       im2col_offset_end(w.num_axes())));
    w.number[i] = from / step;
    w.offset[i] = offsets[i];
  }
  w.box.address = shared_address(w.box.tensor, size_t(w.box.extent[0]) * w.box.element, shared,
                                 w.box.bytes, issue);
  return w;
}

// The offset of byte i of the plain box from the start of the box.
size_t place(const Box& box, size_t i) {
  const uint32_t plain = box.address + uint32_t(i);
  return swizzled(Swizzle(int(box.tensor.swizzle)), plain) - box.address;
}

// Calls run(offset in the plain box, address in the tensor, bytes, inside) for each run of elements
// that are neighbours in both and all inside the tensor or all outside; at most 16 bytes, as a
// swizzle moves those together.
template <class F>
void row_runs(const Box& box, std::byte* row, size_t offset, bool inside, const F& run) {
  const int64_t unit = int64_t(16 / box.element);
  const int64_t dim = int64_t(box.tensor.dims[0]);
  for (int64_t i = 0; i < box.extent[0];) {
    const int64_t first = box.at[0] + i;
    const bool in = inside && first >= 0 && first < dim;
    int64_t end = std::min(box.extent[0], (i / unit + 1) * unit);
    if (in) end = std::min(end, i + dim - first);
    if (!in && first < 0) end = std::min(end, i - first);
    run(offset + size_t(i) * box.element, in ? row + first * int64_t(box.element) : nullptr,
        size_t(end - i) * box.element);
    i = end;
  }
}

template <class F>
void each_run(const Box& box, const F& run) {
  size_t offset = 0;
  std::array<int64_t, 5> i{};
  for (i[4] = 0; i[4] < box.extent[4]; ++i[4])
    for (i[3] = 0; i[3] < box.extent[3]; ++i[3])
      for (i[2] = 0; i[2] < box.extent[2]; ++i[2])
        for (i[1] = 0; i[1] < box.extent[1]; ++i[1]) {
          auto* row = static_cast<std::byte*>(box.tensor.address);
          bool inside = true;
          for (size_t d = 1; d < 5; ++d) {
            const int64_t index = box.at[d] + i[d] * box.step[d];
            inside &= index >= 0 && index < int64_t(box.tensor.dims[d]);
            if (inside) row += index * int64_t(box.tensor.strides[d - 1]);
          }
          row_runs(box, row, offset, inside, run);
          offset += size_t(box.extent[0]) * box.element;
        }
}

// Likewise for the places of windows, one line after the other.
template <class F>
void each_run(const Windows& w, const F& run) {
  std::array<int64_t, 3> number = w.number;
  const TiledTensor& images = w.box.tensor;
  const auto last = size_t(images.rank) - 1;
  int64_t image = w.box.at[4];
  size_t offset = 0;
  for (int64_t place = 0; place < w.box.extent[1]; ++place) {
    bool inside = image >= 0 && image < int64_t(images.dims[last]);
    auto* row = static_cast<std::byte*>(images.address);
    if (inside) row += image * int64_t(images.strides[last - 1]);
    for (size_t i = 0; i < size_t(w.num_axes()); ++i) {
      const int64_t at =
          w.map.lower[i] + number[i] * int64_t(images.element_strides[i + 1]) + w.offset[i];
      inside &= at >= 0 && at < int64_t(images.dims[i + 1]);
      if (inside) row += at * int64_t(images.strides[i]);
    }
    row_runs(w.box, row, offset, inside, run);
    offset += size_t(w.box.extent[0]) * w.box.element;
    size_t axis = 0;
    while (axis < size_t(w.num_axes()) && ++number[axis] == w.map.num_windows(int(axis)))
      number[axis++] = 0;
    image += axis == size_t(w.num_axes());
  }
}

// Fills elements outside the tensor: with 0, or on an H200 the NaN 0x7ff7 in each 16 bits.
void fill(const Box& box, std::byte* to, size_t bytes) {
  std::memset(to, 0, bytes);
  if (!box.tensor.nan_fill) return;
  for (size_t i = 0; i < bytes; ++i) to[i] = std::byte(i % 2 ? 0x7f : 0xf7);
}

// Copies elements into shared memory as the map wants them.
void load(const Box& box, std::byte* to, const std::byte* from, size_t bytes) {
  if (!box.tensor.rounds_to_tf32) {
    std::memcpy(to, from, bytes);
    return;
  }
  for (size_t i = 0; i < bytes; i += sizeof(float)) {
    float x = 0;
    std::memcpy(&x, from + i, sizeof(x));
    const uint32_t rounded = ptx::cvt_rna_tf32_f32(x);
    std::memcpy(to + i, &rounded, sizeof(rounded));
  }
}

ReduceType reduce_type(DType dtype, const Issue& issue) {
  switch (dtype) {
    case DType::float32:
      return ReduceType::f32;
    case DType::float16:
      return ReduceType::f16;
    case DType::bfloat16:
      return ReduceType::bf16;
    case DType::int32:
      return ReduceType::s32;
    case DType::int64:
      return ReduceType::s64;
    default:
      issue.fault(join("no reduction has dtype ", dtype));
  }
}

// An H200 does not store a box as it loads one: it takes a negative coordinate for an illegal
// instruction, and at the end of dimension 0 it writes whole 16-byte units.
void check_written(const Issue& issue, const Box& box) {
  for (size_t d = 0; d < size_t(box.tensor.rank); ++d)
    if (box.at[d] < 0)
      issue.fault(join("coordinate ", d, " is ", box.at[d],
                       ": a box that is written begins inside the tensor"));
  const auto dim = int64_t(box.tensor.dims[0]);
  if (box.at[0] + box.extent[0] > dim && size_t(dim) * box.element % 16 != 0)
    issue.fault(join("the box passes the end of dimension 0, which is ", dim, " elements of ",
                     box.element, " bytes: a GPU writes up to the next multiple of 16 bytes"));
}

void start_store(const Issue& issue, const Box& box, const void* from,
                 const std::function<void(void*, const void*, size_t)>& write) {
  check_written(issue, box);
  BulkCopy copy{.issue = issue, .bytes = box.bytes, .from = static_cast<const std::byte*>(from)};
  copy.scatter = [box, write](const std::byte* image) {
    each_run(box, [&](size_t offset, std::byte* to, size_t bytes) {
      if (to) write(to, image + place(box, offset), bytes);
    });
  };
  async().start(std::move(copy));
}

// Starts a load of a box or of windows whose lines are those of `box`.
template <class Lines>
void start_load(const Issue& issue, const Lines& lines, const Box& box, void* to, uint64_t* barrier,
                uint16_t mask) {
  BulkCopy copy{.issue = issue, .bytes = box.bytes};
  copy.gather = [lines, box](std::byte* image) {
    each_run(lines, [&](size_t offset, const std::byte* from, size_t bytes) {
      std::byte* const here = image + place(box, offset);
      if (from)
        load(box, here, from, bytes);
      else
        fill(box, here, bytes);
    });
  };
  copy.targets = targets_of(to, box.bytes, barrier, mask, issue);
  async().start(std::move(copy));
}

}  // namespace

void tensor_load(void* to, const TensorMap* map, const int32_t* at, int rank, uint64_t* barrier,
                 uint16_t mask, const SourceLine& line) {
  const Issue issue = issued("cp.async.bulk.tensor.shared::cluster.global", line);
  const Box box = box_at(map, at, rank, to, issue);
  start_load(issue, box, box, to, barrier, mask);
}

void tensor_load_im2col(void* to, const TensorMap* map, const int32_t* at, const uint16_t* offsets,
                        int rank, uint64_t* barrier, const SourceLine& line) {
  const Issue issue = issued("cp.async.bulk.tensor.shared::cluster.global.im2col", line);
  const Windows windows = windows_at(map, at, offsets, rank, to, issue);
  start_load(issue, windows, windows.box, to, barrier, 0);
}

void tensor_store(const TensorMap* map, const int32_t* at, int rank, const void* from,
                  const SourceLine& line) {
  const Issue issue = issued("cp.async.bulk.tensor.global.shared::cta", line);
  start_store(issue, box_at(map, at, rank, from, issue), from,
              [](void* to, const void* image, size_t bytes) { std::memcpy(to, image, bytes); });
}

void tensor_reduce(Reduce op, const TensorMap* map, const int32_t* at, int rank, const void* from,
                   const SourceLine& line) {
  const Issue issue = issued("cp.reduce.async.bulk.tensor", line);
  const Box box = box_at(map, at, rank, from, issue);
  const ReduceType type = reduce_type(box.tensor.dtype, issue);
  if (!can_reduce(op, type))
    issue.fault(join("has no such operation for dtype ", box.tensor.dtype));
  start_store(issue, box, from, [op, type](void* to, const void* image, size_t bytes) {
    reduce(op, type, to, image, bytes);
  });
}

void tensor_prefetch(const TensorMap* map, const int32_t* at, int rank, const SourceLine& line) {
  box_at(map, at, rank, nullptr, issued("cp.async.bulk.prefetch.tensor", line));
}

}  // namespace tensorcraft::simt
