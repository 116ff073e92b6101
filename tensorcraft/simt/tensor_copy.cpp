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

Box box_at(const TensorMap* map, const int32_t* at, int rank, const void* shared,
           const Issue& issue) {
  const auto decoded = decode_tiled(*map);
  if (!decoded) issue.fault("the tensor map was not encoded for the SIMT device");
  if (decoded->rank != rank)
    issue.fault(join("the tensor map has rank ", decoded->rank, ", the copy ", rank));
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
  if (box.at[0] * int64_t(box.element) % 16 != 0)
    issue.fault(join("the first coordinate, element ", box.at[0], " of ", box.element,
                     " bytes, is not at a multiple of 16 bytes; a GPU takes it for an illegal "
                     "instruction"));
  const uint32_t span = swizzle_span(Swizzle(int(box.tensor.swizzle)));
  if (span > 16 && uint32_t(box.extent[0]) * box.element != span)
    issue.fault(join("the inner box must fill the swizzle's ", span, " bytes on the SIMT device"));
  if (!shared) return box;
  const Block& block = block_of(shared, box.bytes, "the box in shared memory", issue);
  box.address = uint32_t(static_cast<const std::byte*>(shared) - block.shared);
  if (box.address % 128 != 0)
    issue.fault(join("shared memory at byte ", box.address, " is not a multiple of 128 bytes"));
  return box;
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

// What elements outside the tensor become: 0, or on an H200 the NaN 0x7ff7 in each 16 bits.
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

// What an H200 does not do as the copy that loads a box does: it takes a negative coordinate for an
// illegal instruction, and at the end of dimension 0 it writes whole 16-byte units.
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

}  // namespace

void tensor_load(void* to, const TensorMap* map, const int32_t* at, int rank, uint64_t* barrier,
                 uint16_t mask, const SourceLine& line) {
  const Issue issue = issued("cp.async.bulk.tensor.shared::cluster.global", line);
  const Box box = box_at(map, at, rank, to, issue);
  BulkCopy copy{.issue = issue, .bytes = box.bytes};
  copy.gather = [box](std::byte* image) {
    each_run(box, [&](size_t offset, const std::byte* from, size_t bytes) {
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
