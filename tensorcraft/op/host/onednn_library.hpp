// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef TENSORCRAFT_ONEDNN
#include <oneapi/dnnl/dnnl.h>

#include <shared_mutex>
#include <string>

namespace tensorcraft::host::onednn {

// The functions used, under their own names without the prefix.
#define TC_ONEDNN_FUNCTIONS(X)                 \
  X(version)                                   \
  X(get_effective_cpu_isa)                     \
  X(engine_create)                             \
  X(stream_create)                             \
  X(stream_destroy)                            \
  X(stream_wait)                               \
  X(memory_desc_create_with_strides)           \
  X(memory_desc_create_with_tag)               \
  X(memory_desc_clone)                         \
  X(memory_desc_equal)                         \
  X(memory_desc_get_size)                      \
  X(memory_desc_destroy)                       \
  X(memory_create)                             \
  X(memory_destroy)                            \
  X(memory_set_data_handle)                    \
  X(primitive_attr_create)                     \
  X(primitive_attr_destroy)                    \
  X(primitive_attr_set_fpmath_mode)            \
  X(primitive_attr_set_post_ops)               \
  X(post_ops_create)                           \
  X(post_ops_destroy)                          \
  X(post_ops_append_eltwise)                   \
  X(post_ops_append_sum)                       \
  X(matmul_primitive_desc_create)              \
  X(convolution_forward_primitive_desc_create) \
  X(reorder_primitive_desc_create)             \
  X(primitive_desc_query_md)                   \
  X(primitive_desc_destroy)                    \
  X(primitive_desc_query)                      \
  X(primitive_create)                          \
  X(primitive_destroy)                         \
  X(primitive_execute)

struct Library {
#define TC_MEMBER(name) decltype(&dnnl_##name) name = nullptr;
  TC_ONEDNN_FUNCTIONS(TC_MEMBER)
#undef TC_MEMBER
  // These belong to the OpenMP runtime the library was built with; null if it has another.
  void (*omp_set_num_threads)(int) = nullptr;
  int (*omp_get_max_threads)() = nullptr;
  dnnl_engine_t engine = nullptr;
  std::string version_text;
  std::string unavailable_reason;  // empty: every member above is set
};

// Opened once, by the first call.
const Library& library();

// Held while primitives are made and destroyed, by any number of threads: oneDNN keeps them behind
// locks of its own, which stay locked in the child of a fork that did not wait.
std::shared_lock<std::shared_mutex> making_primitives();

}  // namespace tensorcraft::host::onednn
#endif
