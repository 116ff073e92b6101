// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/gemm/groups/group_scales.hpp"

#include "tensorcraft/op/checks/check.hpp"

#include <string>

namespace tensorcraft::kernel::gemm {
namespace {

using Scale = std::optional<TensorView>;

bool has_shape(const Scale& t, const Dims& shape) { return t && t->shape() == shape; }
bool is_one_number(const Scale& t) { return t && t->size() == 1 && t->rank() <= 1; }
std::string shape_text(const Scale& t) { return t ? join("shape ", t->shape()) : "none"; }

void check_dtypes(const GroupedOperands& call, std::string_view name, const Scale& t) {
  if (!t) return;
  if (!is_float8(call.dtype))
    fail(ErrorKind::type, call.op, ": ", name, " is a factor of float8 operands, and a is ",
         call.dtype, "; leave it out");
  op::check_dtype(call.op, name, *t, {DType::float32});
}

// Scales may have these shapes: of rows of a, of columns or squares of b, along k one or as many as
// blocks.
struct Shapes {
  Dims rows, row_blocks, columns, lying_columns, column_blocks, squares;
};
Shapes shapes_of(const GroupedOperands& c) {
  const int64_t blocks = div_ceil(c.k, kScaleBlock), squares = div_ceil(c.columns, kScaleBlock);
  const auto of_rows = [&](int64_t count) {
    return c.are_apart ? Dims{c.groups, c.rows, count} : Dims{c.rows, count};
  };
  const auto of_b = [&](int64_t lines, int64_t count) {
    return c.transpose_b ? Dims{c.groups, lines, count} : Dims{c.groups, count, lines};
  };
  return {of_rows(1),         of_rows(blocks),         Dims{c.groups, c.columns},
          of_b(c.columns, 1), of_b(c.columns, blocks), of_b(squares, blocks)};
}

void check_blocks(const GroupedOperands& call, const Shapes& shapes, const Scale& a,
                  const Scale& b) {
  if (!has_shape(a, shapes.row_blocks))
    fail(ErrorKind::value, call.op, ": a_scale: expected one for 128 elements of a row of a, ",
         shapes.row_blocks, ", as b_scale is by block, got ", shape_text(a));
  if (!has_shape(b, shapes.column_blocks) && !has_shape(b, shapes.squares))
    fail(ErrorKind::value, call.op, ": b_scale: expected one for squares of 128 x 128 of b, ",
         shapes.squares, ", or one for 128 elements of a column, ", shapes.column_blocks,
         ", as a_scale is by block, got ", shape_text(b));
}

void check_lines(const GroupedOperands& call, const Shapes& shapes, const Scale& a,
                 const Scale& b) {
  if (a && !is_one_number(a) && !has_shape(a, shapes.rows))
    fail(ErrorKind::value, call.op, ": a_scale: expected one number, ", shapes.rows,
         ", or one for 128 elements of a row of a, ", shapes.row_blocks, ", got ", shape_text(a));
  if (b && !is_one_number(b) && !has_shape(b, {call.groups}) && !has_shape(b, shapes.columns))
    fail(ErrorKind::value, call.op, ": b_scale: expected one number, one a group, ",
         Dims{call.groups}, ", one a column, ", shapes.columns, " or ", shapes.lying_columns,
         ", or one for squares of 128 x 128 of b, ", shapes.squares, ", got ", shape_text(b));
}

// Scales of columns that lie as b does are (groups, columns) too. Of one block along k they are by
// block if those of a are.
Scale columns_as_rows(const GroupedOperands& call, const Shapes& shapes, const Scale& a,
                      const Scale& b) {
  const bool is_by_block =
      shapes.lying_columns == shapes.column_blocks && has_shape(a, shapes.row_blocks);
  if (!has_shape(b, shapes.lying_columns) || is_by_block) return b;
  return b->select(call.transpose_b ? 2 : 1, 0);
}

// A view of the same memory with other dimensions.
TensorView view_as(const TensorView& t, const Dims& shape, const Dims& strides) {
  return t.at(t.data(), shape, strides);
}

// Scales of rows for each group: those of all, unless the groups have matrices of their own.
Scale rows_of_each(const GroupedOperands& call, const Scale& a, bool by_block) {
  if (!a) return a;
  if (is_one_number(a) && !by_block) return view_as(*a, {call.groups}, {0});
  const int row = call.are_apart ? 1 : 0;
  const int64_t next_group = call.are_apart ? a->stride(0) : 0;
  if (!by_block) return view_as(*a, {call.groups, call.rows}, {next_group, a->stride(row)});
  return view_as(*a, {call.groups, call.rows, a->shape(row + 1)},
                 {next_group, a->stride(row), a->stride(row + 1)});
}

Scale columns_of_each(const GroupedOperands& call, const Scale& b, bool by_block) {
  if (!b || !by_block) return is_one_number(b) ? Scale(view_as(*b, {call.groups}, {0})) : b;
  return call.transpose_b ? b->transpose(1, 2) : *b;
}

}  // namespace

Scales group_scales(const GroupedOperands& call, const Scale& a, const Scale& given_b) {
  check_dtypes(call, "a_scale", a);
  check_dtypes(call, "b_scale", given_b);
  const Shapes shapes = shapes_of(call);
  const Scale b = columns_as_rows(call, shapes, a, given_b);
  const bool by_block =
      (b && b->rank() == 3) || (has_shape(a, shapes.row_blocks) && !has_shape(a, shapes.rows));
  by_block ? check_blocks(call, shapes, a, b) : check_lines(call, shapes, a, b);
  const Promotion promotion = !is_float8(call.dtype)               ? Promotion::none
                              : !by_block                          ? Promotion::plain
                              : has_shape(b, shapes.column_blocks) ? Promotion::by_column
                                                                   : Promotion::by_square;
  return {rows_of_each(call, a, by_block), columns_of_each(call, b, by_block), promotion};
}

}  // namespace tensorcraft::kernel::gemm
