// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef TENSORCRAFT_ONEDNN
#include "tensorcraft/core/dtype.hpp"
#include "tensorcraft/op/host/onednn_library.hpp"

// Products and convolutions by oneDNN share these.
namespace tensorcraft::host::onednn {

// oneDNN runs each call in one thread, and our pool makes the threads: OpenMP's own would spin on
// the cores that the pool needs next. The setting belongs to the calling thread and is put back.
class OneThread {
 public:
  explicit OneThread(const Library& lib) : lib_(lib) {
    if (!lib_.omp_set_num_threads || !lib_.omp_get_max_threads) return;
    before_ = lib_.omp_get_max_threads();
    lib_.omp_set_num_threads(1);
  }
  ~OneThread() {
    if (before_ > 0) lib_.omp_set_num_threads(before_);
  }
  OneThread(const OneThread&) = delete;

 private:
  const Library& lib_;
  int before_ = 0;
};

// Owns one handle of the C interface.
template <class T>
struct Handle {
  using Destroy = dnnl_status_t (*)(T);
  explicit Handle(Destroy d) : destroy(d) {}
  ~Handle() {
    if (value) destroy(value);
  }
  Handle(const Handle&) = delete;
  T value = nullptr;
  Destroy destroy;
};

using Desc = Handle<dnnl_memory_desc_t>;

// undef if oneDNN has no such type.
dnnl_data_type_t data_type(DType dtype);
// The calling thread's.
dnnl_stream_t stream_of_thread(const Library& lib);
// oneDNN's reference code is far slower than ours.
bool has_fast_code(const Library& lib, const_dnnl_primitive_desc_t primitive_desc);

}  // namespace tensorcraft::host::onednn
#endif
