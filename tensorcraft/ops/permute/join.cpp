// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/permute/join.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/op/checks/check.hpp"
#include "tensorcraft/op/definition.hpp"
#include "tensorcraft/ops/permute/permute.hpp"

#include <algorithm>
#include <string>

namespace tensorcraft {
namespace {

using Views = std::vector<TensorView>;

std::string name_of(size_t i) { return join("arrays[", i, ']'); }

const TensorView& first_of(const char* op, std::span<const TensorView> arrays) {
  if (arrays.empty()) fail(ErrorKind::value, op, ": arrays: expected at least one");
  return arrays[0];
}

// Checks what all arrays share; returns the shape they make.
Dims joined_shape(const char* op, std::span<const TensorView> arrays, int axis) {
  Dims shape = arrays[0].shape();
  shape[axis] = 0;
  for (size_t i = 0; i < arrays.size(); ++i) {
    Dims own = shape;
    own[axis] = arrays[i].rank() > axis ? arrays[i].shape(axis) : 0;
    op::check_like(op, name_of(i), arrays[i], arrays[0].dtype(), own);
    if (arrays[i].device() != arrays[0].device())
      fail(ErrorKind::value, op, ": ", name_of(i), ": Device mismatch: expected ",
           arrays[0].device(), " but got ", arrays[i].device(), "; move it with .to(\"",
           arrays[0].device(), "\")");
  }
  for (const TensorView& t : arrays) shape[axis] += t.shape(axis);
  return shape;
}

int concat_axis(std::span<const TensorView> arrays, int64_t axis) {
  const int rank = first_of("concat", arrays).rank();
  if (rank == 0)
    fail(ErrorKind::axis, "concat: arrays[0]: expected at least 1 dimension; stack() adds one");
  return normalize_axis(axis, rank, "concat");
}

// Every array with the new axis.
Views expanded(std::span<const TensorView> arrays, int64_t axis) {
  const TensorView& first = first_of("stack", arrays);
  const int at = normalize_axis(axis, first.rank() + 1, "stack");
  Views all;
  for (size_t i = 0; i < arrays.size(); ++i) {
    op::check_like("stack", name_of(i), arrays[i], first.dtype(), first.shape());
    all.push_back(arrays[i].expand_dims(at));
  }
  return all;
}

void join_into(const char* op, const TensorView& out, std::span<const TensorView> arrays, int axis,
               const JoinOptions& options) {
  op::check_like(op, "out", out, arrays[0].dtype(), joined_shape(op, arrays, axis));
  for (size_t i = 0; i < arrays.size(); ++i) op::check_apart(op, "out", out, name_of(i), arrays[i]);
  int64_t at = 0;
  for (const TensorView& t : arrays) {
    const int64_t end = at + t.shape(axis);
    copy(out.slice(axis, at, end), t,
         {.variant = options.variant, .stream = options.stream, .where = options.where});
    at = end;
  }
}

Tensor joined(const char* op, std::span<const TensorView> arrays, int axis,
              const JoinOptions& options) {
  const op::OutputSpec spec{"out", arrays[0].dtype(), joined_shape(op, arrays, axis)};
  op::check_sizes(op, {&spec, 1});
  const Device device = arrays[0].device();
  Tensor out(spec.dtype, spec.shape, device, op::resolve_stream(options.stream, device));
  join_into(op, out, arrays, axis, options);
  return out;
}

}  // namespace

void concat(const TensorView& out, std::span<const TensorView> arrays, const JoinOptions& options) {
  at_line(options.where,
          [&] { join_into("concat", out, arrays, concat_axis(arrays, options.axis), options); });
}
Tensor concat(std::span<const TensorView> arrays, const JoinOptions& options) {
  return at_line(options.where, [&] {
    return joined("concat", arrays, concat_axis(arrays, options.axis), options);
  });
}

void stack(const TensorView& out, std::span<const TensorView> arrays, const JoinOptions& options) {
  at_line(options.where, [&] {
    const Views all = expanded(arrays, options.axis);
    join_into("stack", out, all, normalize_axis(options.axis, all[0].rank(), "stack"), options);
  });
}
Tensor stack(std::span<const TensorView> arrays, const JoinOptions& options) {
  return at_line(options.where, [&] {
    const Views all = expanded(arrays, options.axis);
    return joined("stack", all, normalize_axis(options.axis, all[0].rank(), "stack"), options);
  });
}

std::vector<TensorView> split(const TensorView& x, int64_t sections, int64_t axis,
                              std::source_location where) {
  const int a = normalize_axis(axis, x.rank(), "split", where);
  if (sections < 1 || x.shape(a) % sections)
    fail({ErrorKind::value, where}, "split: sections must divide axis ", a, " with size ",
         x.shape(a), ", got ", sections);
  const int64_t size = x.shape(a) / sections;
  Views parts;
  for (int64_t i = 0; i < sections; ++i) parts.push_back(x.slice(a, i * size, (i + 1) * size));
  return parts;
}

std::vector<TensorView> split(const TensorView& x, std::span<const int64_t> indices, int64_t axis,
                              std::source_location where) {
  const int a = normalize_axis(axis, x.rank(), "split", where);
  const int64_t size = x.shape(a);
  Views parts;
  int64_t begin = 0;
  for (size_t i = 0; i <= indices.size(); ++i) {
    int64_t end = i == indices.size() ? size : indices[i];
    end = std::clamp(end < 0 ? end + size : end, int64_t(0), size);
    parts.push_back(x.slice(a, std::min(begin, end), end));
    begin = end;
  }
  return parts;
}

}  // namespace tensorcraft
