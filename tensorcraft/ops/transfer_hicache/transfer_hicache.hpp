// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/source_location.hpp"
#include "tensorcraft/op/value.hpp"
#include "tensorcraft/runtime/memory/tensor.hpp"

#include <array>
#include <optional>
#include <string_view>

namespace tensorcraft {

// The order of the dimensions of a cache that holds all layers in one tensor: layers, tokens, then
// the element (layer_first); tokens, layers (page_first); or pages, layers, tokens of a page
// (page_first_direct).
enum class HicacheLayout : int { layer_first, page_first, page_first_direct };

// Arguments of transfer_hicache_one_layer() besides the arrays that it needs.
struct TransferHicacheOneLayerOptions {
  std::optional<int64_t> element_dim = {};   // what k_dst.shape[-1] must be
  std::optional<int64_t> unroll = {};        // elements of a warp: 1, 2 or 4; none: by their size
  std::optional<int64_t> block_quota = {};   // the most blocks; none: 256
  std::optional<TensorView> v_dst_out = {};  // none: v_dst itself
  std::string_view variant = {};             // by name; empty: the best that accepts
  std::optional<StreamRef> stream = {};      // none: the thread's current one of the device
  std::source_location where = std::source_location::current();  // the line that errors name
};

// Arguments of transfer_hicache_all_layer() besides the arrays that it needs.
struct TransferHicacheAllLayerOptions {
  // Bytes from a token to the next where a table gives the layers; none: those of an element.
  std::optional<int64_t> kv_dst_stride = {}, kv_src_stride = {};
  std::optional<int64_t> element_size = {};               // bytes; needed if tables give both sides
  HicacheLayout dst_layout = HicacheLayout::layer_first;  // of k_dst and v_dst, if they are tensors
  HicacheLayout src_layout = HicacheLayout::layer_first;  // likewise
  std::optional<int64_t> unroll = {};        // elements of a warp: 1, 2 or 4; none: by their size
  std::optional<int64_t> block_quota = {};   // the most blocks; none: 256
  std::optional<TensorView> v_dst_out = {};  // none: v_ptr_dst itself
  std::string_view variant = {};             // by name; empty: the best that accepts
  std::optional<StreamRef> stream = {};      // none: the thread's current one of the device
  std::source_location where = std::source_location::current();  // the line that errors name
};

// k_dst[idx_dst[i]] = k_src[idx_src[i]] and the same of v, bit by bit: one layer of a cache of keys
// and values. Caches: (tokens, ...), any dtype, the same elements of all four without gaps; k and v
// of a side have one stride of tokens. Indices: int32 or int64, (n). The device is that of the
// indices; a cache may lie on the host beside a GPU. Page-locked memory must stay until the stream
// has run the transfer. What is pageable, keys and values of a side together, goes through the
// host: the call waits for the stream, reads and writes that memory before it returns, and is
// refused while a graph is recorded. Tokens that are written must differ, and none of them may be
// read. A token outside a cache is an error of kind index on a host device and with pageable
// memory, before anything is written; else a GPU leaves its element out. k_dst_out: k_dst, or
// memory that becomes a copy of it first.
void transfer_hicache_one_layer(const TensorView& k_dst_out, const TensorView& k_dst,
                                const TensorView& v_dst, const TensorView& idx_dst,
                                const TensorView& k_src, const TensorView& v_src,
                                const TensorView& idx_src,
                                const TransferHicacheOneLayerOptions& options = {});
// Copies likewise, but in place.
void transfer_hicache_one_layer(const TensorView& k_dst, const TensorView& v_dst,
                                const TensorView& idx_dst, const TensorView& k_src,
                                const TensorView& v_src, const TensorView& idx_src,
                                const TransferHicacheOneLayerOptions& options = {});

// Copies all layers likewise in one launch. A cache is a tensor of all layers in the order that a
// layout says, or a table: int64 (num_layers), the address of each layer, which is a multiple of 16
// and as the device sees it. Nobody can check what a table points to.
void transfer_hicache_all_layer(const TensorView& k_dst_out, const TensorView& k_ptr_dst,
                                const TensorView& v_ptr_dst, const TensorView& idx_dst,
                                const TensorView& k_ptr_src, const TensorView& v_ptr_src,
                                const TensorView& idx_src,
                                const TransferHicacheAllLayerOptions& options = {});
// Copies likewise, but in place.
void transfer_hicache_all_layer(const TensorView& k_ptr_dst, const TensorView& v_ptr_dst,
                                const TensorView& idx_dst, const TensorView& k_ptr_src,
                                const TensorView& v_ptr_src, const TensorView& idx_src,
                                const TransferHicacheAllLayerOptions& options = {});

}  // namespace tensorcraft

template <>
struct tensorcraft::op::EnumNames<tensorcraft::HicacheLayout> {
  static constexpr std::array<std::string_view, 3> names = {"layer_first", "page_first",
                                                            "page_first_direct"};
};
