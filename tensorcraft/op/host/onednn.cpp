// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/host/onednn.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/hash.hpp"
#include "tensorcraft/op/host/onednn_parts.hpp"
#include "tensorcraft/op/host/parallel.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstring>
#include <memory>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace tensorcraft::host::onednn {
#ifdef TENSORCRAFT_ONEDNN

dnnl_data_type_t data_type(DType dtype) {
  switch (dtype) {
    case DType::float32:
      return dnnl_f32;
    case DType::float16:
      return dnnl_f16;
    case DType::bfloat16:
      return dnnl_bf16;
    case DType::int8:
      return dnnl_s8;
    case DType::int32:
      return dnnl_s32;
    default:
      return dnnl_data_type_undef;
  }
}

dnnl_stream_t stream_of_thread(const Library& lib) {
  thread_local Handle<dnnl_stream_t> stream(lib.stream_destroy);
  if (!stream.value &&
      lib.stream_create(&stream.value, lib.engine, dnnl_stream_default_flags) != dnnl_success)
    fail(ErrorKind::internal, "oneDNN could not create a stream");
  return stream.value;
}

bool has_fast_code(const Library& lib, const_dnnl_primitive_desc_t primitive_desc) {
  const char* implementation = nullptr;
  return lib.primitive_desc_query(primitive_desc, dnnl_query_impl_info_str, 0, &implementation) ==
             dnnl_success &&
         std::strncmp(implementation, "ref", 3) != 0;
}

namespace {

// All that a primitive depends on; addresses are given to each run.
struct Key {
  std::array<int64_t, 18> values;
  friend bool operator==(const Key&, const Key&) = default;
};

struct KeyHash {
  size_t operator()(const Key& key) const {
    return hash_words(
        std::bit_cast<std::array<uint64_t, std::tuple_size_v<decltype(Key::values)>>>(key.values));
  }
};

bool has_c(const GemmProblem& g) { return g.beta != 0.0f; }
bool has_bias(const GemmProblem& g) { return g.bias.data != nullptr; }

Key key_of(const GemmProblem& g) {
  const int64_t dtypes = int64_t(g.a.dtype) | int64_t(g.b.dtype) << 8 | int64_t(g.d.dtype) << 16 |
                         int64_t(has_bias(g) ? g.bias.dtype : DType::bool_) << 24 |
                         int64_t(g.activation) << 32;
  uint32_t alpha, beta;
  std::memcpy(&alpha, &g.alpha, sizeof alpha);
  std::memcpy(&beta, &g.beta, sizeof beta);
  return {{g.m, g.n, g.k, g.batch, dtypes, int64_t(alpha), int64_t(beta), g.a.row, g.a.column,
           g.a.batch, g.b.row, g.b.column, g.b.batch, g.d.row, g.d.column, g.d.batch,
           has_bias(g) ? g.bias.column : 0, has_bias(g) ? g.bias.batch : 0}};
}

enum Operand { kA, kB, kBias, kD, kNumOperands };
constexpr int kArguments[kNumOperands] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_BIAS,
                                          DNNL_ARG_DST};

// A primitive with its memory objects. It belongs to the thread that made it, so its scratch memory
// and the addresses in it need no lock. `primitive` is null if oneDNN has none for the problem.
struct Prepared {
  explicit Prepared(const Library& lib) : primitive(lib.primitive_destroy) {
    for (auto& m : memory) m = std::make_unique<Handle<dnnl_memory_t>>(lib.memory_destroy);
  }
  Handle<dnnl_primitive_t> primitive;
  std::unique_ptr<Handle<dnnl_memory_t>> memory[kNumOperands];
};

bool describe(const Library& lib, Desc& desc, const ConstMatrix& m, int64_t batch, int64_t rows,
              int64_t columns) {
  const dnnl_dims_t dims = {m.batch == 0 ? 1 : batch, rows, columns};
  const dnnl_dims_t strides = {m.batch == 0 ? rows * columns : m.batch, m.row, m.column};
  const int skip = batch == 1 ? 1 : 0;
  return lib.memory_desc_create_with_strides(&desc.value, 3 - skip, dims + skip, data_type(m.dtype),
                                             strides + skip) == dnnl_success;
}

bool append_post_ops(const Library& lib, dnnl_post_ops_t ops, const GemmProblem& g) {
  bool ok = true;
  const auto eltwise = [&](dnnl_alg_kind_t kind, float alpha) {
    ok = ok && lib.post_ops_append_eltwise(ops, kind, alpha, 0.0f) == dnnl_success;
  };
  if (g.alpha != 1.0f) eltwise(dnnl_eltwise_linear, g.alpha);
  if (has_c(g))
    ok = ok && lib.post_ops_append_sum(ops, g.beta, 0, dnnl_data_type_undef) == dnnl_success;
  if (g.activation == Activation::relu) eltwise(dnnl_eltwise_relu, 0.0f);
  if (g.activation == Activation::gelu) eltwise(dnnl_eltwise_gelu_erf, 0.0f);
  if (g.activation == Activation::gelu_tanh) eltwise(dnnl_eltwise_gelu_tanh, 0.0f);
  if (g.activation == Activation::silu) eltwise(dnnl_eltwise_swish, 1.0f);
  return ok;
}

// Leaves `prepared` without a primitive if oneDNN has no implementation.
void prepare(const Library& lib, const GemmProblem& g, Prepared& prepared) {
  Desc descs[kNumOperands] = {Desc(lib.memory_desc_destroy), Desc(lib.memory_desc_destroy),
                              Desc(lib.memory_desc_destroy), Desc(lib.memory_desc_destroy)};
  bool ok = describe(lib, descs[kA], g.a, g.batch, g.m, g.k) &&
            describe(lib, descs[kB], g.b, g.batch, g.k, g.n) &&
            describe(lib, descs[kD], g.d, g.batch, g.m, g.n);
  if (has_bias(g)) {
    ConstMatrix bias = g.bias;
    bias.row = g.n;
    ok = ok && describe(lib, descs[kBias], bias, g.batch, 1, g.n);
  }
  Handle<dnnl_post_ops_t> ops(lib.post_ops_destroy);
  Handle<dnnl_primitive_attr_t> attributes(lib.primitive_attr_destroy);
  Handle<dnnl_primitive_desc_t> primitive_desc(lib.primitive_desc_destroy);
  ok = ok && lib.post_ops_create(&ops.value) == dnnl_success &&
       append_post_ops(lib, ops.value, g) &&
       lib.primitive_attr_create(&attributes.value) == dnnl_success &&
       lib.primitive_attr_set_fpmath_mode(attributes.value, dnnl_fpmath_mode_strict) ==
           dnnl_success &&
       lib.primitive_attr_set_post_ops(attributes.value, ops.value) == dnnl_success &&
       lib.matmul_primitive_desc_create(&primitive_desc.value, lib.engine, descs[kA].value,
                                        descs[kB].value, descs[kBias].value, descs[kD].value,
                                        attributes.value) == dnnl_success;
  ok = ok && has_fast_code(lib, primitive_desc.value);
  for (int i = 0; ok && i < kNumOperands; ++i)
    if (descs[i].value)
      ok = lib.memory_create(&prepared.memory[i]->value, descs[i].value, lib.engine,
                             DNNL_MEMORY_NONE) == dnnl_success;
  if (ok && lib.primitive_create(&prepared.primitive.value, primitive_desc.value) != dnnl_success)
    prepared.primitive.value = nullptr;
}

// Returns what the calling thread has prepared for the product. A full cache starts again: shapes
// that come back are few.
Prepared& prepared_for(const Library& lib, const GemmProblem& g) {
  constexpr size_t kMaxPrepared = 256;
  thread_local std::unordered_map<Key, std::unique_ptr<Prepared>, KeyHash> cache;
  const Key key = key_of(g);
  if (const auto found = cache.find(key); found != cache.end()) return *found->second;
  const auto making = making_primitives();
  if (cache.size() >= kMaxPrepared) cache.clear();
  auto made = std::make_unique<Prepared>(lib);
  prepare(lib, g, *made);
  return *cache.emplace(key, std::move(made)).first->second;
}

void execute(const Library& lib, const GemmProblem& g) {
  const OneThread one_thread(lib);
  Prepared& prepared = prepared_for(lib, g);
  if (!prepared.primitive.value)
    fail(ErrorKind::unsupported, "gemm: oneDNN has no primitive for a slice of this problem");
  const void* data[kNumOperands] = {g.a.data, g.b.data, g.bias.data, g.d.data};
  dnnl_exec_arg_t arguments[kNumOperands];
  int count = 0;
  for (int i = 0; i < kNumOperands; ++i) {
    dnnl_memory_t memory = prepared.memory[i]->value;
    if (!memory) continue;
    lib.memory_set_data_handle(memory, const_cast<void*>(data[i]));
    arguments[count++] = {kArguments[i], memory};
  }
  dnnl_stream_t stream = stream_of_thread(lib);
  const dnnl_status_t status =
      lib.primitive_execute(prepared.primitive.value, stream, count, arguments);
  if (status != dnnl_success || lib.stream_wait(stream) != dnnl_success)
    fail(ErrorKind::internal, "gemm: oneDNN failed to run its matmul, status ", int(status));
}

template <class M>
void move_by(M& m, int64_t elements) {
  if (!m.data) return;
  m.data =
      static_cast<decltype(m.data)>(const_cast<std::byte*>(static_cast<const std::byte*>(m.data)) +
                                    elements * int64_t(dtype_bytes(m.dtype)));
}

enum class Split { batch, rows, columns };

struct Slices {
  Split split;
  int64_t count, size;  // `size` of each but the last
};

// One slice a thread: smaller ones would make oneDNN pack the shared operand again and again.
Slices slices_of(const GemmProblem& g) {
  constexpr int64_t kProductsPerThread = int64_t(1) << 20;
  const double products = double(g.m) * double(g.n) * double(g.k) * double(g.batch);
  const auto threads =
      int64_t(std::clamp(products / double(kProductsPerThread), 1.0, double(num_threads())));
  const auto cut = [&](Split split, int64_t extent, int64_t unit) {
    const int64_t units = extent / unit + (extent % unit != 0);
    const int64_t size = (units / threads + (units % threads != 0)) * unit;
    return Slices{split, extent / size + (extent % size != 0), size};
  };
  if (g.batch >= threads && g.batch > 1) return cut(Split::batch, g.batch, 1);
  if (g.m >= 32 * threads) return cut(Split::rows, g.m, 16);
  return cut(Split::columns, g.n, 64);
}

GemmProblem slice_of(const GemmProblem& g, const Slices& slices, int64_t index) {
  GemmProblem part = g;
  const int64_t first = index * slices.size;
  if (slices.split == Split::batch) {
    part.batch = std::min(slices.size, g.batch - first);
    move_by(part.a, first * g.a.batch);
    move_by(part.b, first * g.b.batch);
    move_by(part.d, first * g.d.batch);
    move_by(part.bias, first * g.bias.batch);
  } else if (slices.split == Split::rows) {
    part.m = std::min(slices.size, g.m - first);
    move_by(part.a, first * g.a.row);
    move_by(part.d, first * g.d.row);
  } else {
    part.n = std::min(slices.size, g.n - first);
    move_by(part.b, first * g.b.column);
    move_by(part.d, first * g.d.column);
    move_by(part.bias, first * g.bias.column);
  }
  return part;
}

// One direction is contiguous and lines do not overlap: what oneDNN has fast code for.
bool is_plain(const ConstMatrix& m, int64_t rows, int64_t columns) {
  if (m.batch < 0) return false;
  if (m.column == 1 && m.row >= columns) return true;
  return m.row == 1 && m.column >= rows;
}

bool c_is_d(const GemmProblem& g) {
  return g.c.data == g.d.data && g.c.dtype == g.d.dtype && g.c.row == g.d.row &&
         g.c.column == g.d.column && g.c.batch == g.d.batch;
}

const char* reason_against(const GemmProblem& g) {
  if (g.m <= 0 || g.n <= 0 || g.k <= 0 || g.batch <= 0) return "an extent is 0";
  if (g.a.dtype != g.b.dtype) return "a and b differ in dtype";
  const bool is_int8 = g.a.dtype == DType::int8;
  if (is_int8 ? g.d.dtype != DType::int32 : g.d.dtype != g.a.dtype && g.d.dtype != DType::float32)
    return "the output's dtype";
  if (data_type(g.a.dtype) == dnnl_data_type_undef) return "the dtype of a and b";
  if (!is_plain(g.a, g.m, g.k) || !is_plain(g.b, g.k, g.n)) return "the strides of a or b";
  if (g.d.column != 1 || g.d.row < g.n || (g.batch > 1 && g.d.batch < 1))
    return "the strides of the output";
  if (has_c(g) && !c_is_d(g)) return "c is not the output itself";
  if (has_bias(g) && (g.alpha != 1.0f || has_c(g))) return "a bias beside alpha or c";
  if (has_bias(g) && (g.bias.column != 1 || g.bias.batch != 0)) return "the strides of the bias";
  if (has_bias(g) && g.bias.dtype != DType::float32 && g.bias.dtype != g.d.dtype)
    return "the dtype of the bias";
  return nullptr;
}

}  // namespace

bool available() { return library().unavailable_reason.empty(); }
std::string_view version() { return library().version_text; }
std::string_view unavailable_reason() { return library().unavailable_reason; }

namespace {

// Are products of int8 summed in 32 bits? A processor without VNNI adds them in pairs to 16 bits,
// where they saturate.
bool has_exact_int8([[maybe_unused]] const Library& lib) {
#if defined(__x86_64__)
  constexpr int kVnni = (dnnl_cpu_isa_avx2_vnni & ~dnnl_cpu_isa_avx2) |
                        (dnnl_cpu_isa_avx512_core_vnni & ~dnnl_cpu_isa_avx512_core);
  return lib.get_effective_cpu_isa() & kVnni;
#else
  return true;
#endif
}

}  // namespace

const char* declines(const GemmProblem& g) {
  const Library& lib = library();
  if (!available()) return "oneDNN is not available";
  if (const char* reason = reason_against(g)) return reason;
  if (g.a.dtype == DType::int8 && !has_exact_int8(lib))
    return "int8 without VNNI: sums of two products saturate at 16 bits";
  const OneThread one_thread(lib);
  const Slices slices = slices_of(g);
  for (const int64_t index : {int64_t(0), slices.count - 1})
    if (!prepared_for(lib, slice_of(g, slices, index)).primitive.value)
      return "oneDNN has no fast primitive for it on this machine";
  return nullptr;
}

void matmul(const GemmProblem& g) {
  if (const char* reason = declines(g))
    fail(ErrorKind::unsupported, "gemm: oneDNN does not take this problem: ", reason);
  const Library& lib = library();
  const Slices slices = slices_of(g);
  parallel_for(slices.count, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) execute(lib, slice_of(g, slices, i));
  });
}

#else

bool available() { return false; }
std::string_view version() { return {}; }
std::string_view unavailable_reason() {
  return "this build has no oneDNN: its headers were not found by CMake";
}
const char* declines(const GemmProblem&) { return "this build has no oneDNN"; }
void matmul(const GemmProblem&) { fail(ErrorKind::unsupported, "gemm: ", unavailable_reason()); }

#endif
}  // namespace tensorcraft::host::onednn
