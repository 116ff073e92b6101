// SPDX-License-Identifier: Apache-2.0
// The launchers against the library's JIT on one GPU: equal bits and equal time, for every
// operator, by the variant that the launcher names. Prints one JSON object; exit code 1 where bits
// differ, 77 without a GPU.
#include "tensorcraft/kernels/all.cuh"
#include "tensorcraft/tensorcraft.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <iostream>
#include <vector>

namespace {

using namespace tensorcraft;
namespace tk = tensorcraft::kernels;

const Device kGpu = Device::cuda(0);
constexpr int kRounds = 15;

DType dtype_of(float) { return DType::float32; }
DType dtype_of(bf16) { return DType::bfloat16; }
DType dtype_of(int32_t) { return DType::int32; }

// Values of a fixed pseudo-random sequence in [-2, 2), or indices.
template <class T>
Tensor filled(const Dims& shape, uint32_t seed) {
  Tensor t(dtype_of(T{}), shape, kGpu);
  std::vector<T> values(size_t(t.size()));
  uint32_t state = seed * 2654435761u + 1;
  for (T& x : values) {
    state = state * 1664525u + 1013904223u;
    if constexpr (std::is_integral_v<T>)
      x = T(state >> 20);
    else
      x = T(float(state >> 8) * 0x1p-22f - 2.0f);
  }
  t.copy_from_host(values.data(), t.nbytes());
  return t;
}

std::vector<char> bytes_of(const Tensor& t) {
  std::vector<char> bytes(t.nbytes());
  t.copy_to_host(bytes.data(), bytes.size());
  return bytes;
}

// GPU time between two events around what `enqueue` does.
double milliseconds(const std::function<void()>& enqueue, cudaStream_t stream) {
  cudaEvent_t begin{}, end{};
  TC_CUDA_CHECK(cudaEventCreate(&begin));
  TC_CUDA_CHECK(cudaEventCreate(&end));
  TC_CUDA_CHECK(cudaEventRecord(begin, stream));
  enqueue();
  TC_CUDA_CHECK(cudaEventRecord(end, stream));
  TC_CUDA_CHECK(cudaEventSynchronize(end));
  float ms = 0;
  TC_CUDA_CHECK(cudaEventElapsedTime(&ms, begin, end));
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  return double(ms);
}

// Calls recorded into a graph: a short kernel's time is the GPU's, not that of the host's launches.
class Recorded {
 public:
  Recorded(const std::function<void()>& call, cudaStream_t stream, int calls)
      : stream_(stream), calls_(calls) {
    cudaGraph_t graph{};
    TC_CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < calls; ++i) call();
    TC_CUDA_CHECK(cudaStreamEndCapture(stream, &graph));
    TC_CUDA_CHECK(cudaGraphInstantiate(&graph_, graph));
    TC_CUDA_CHECK(cudaGraphDestroy(graph));
  }
  ~Recorded() { cudaGraphExecDestroy(graph_); }
  Recorded(const Recorded&) = delete;
  Recorded& operator=(const Recorded&) = delete;

  // Microseconds of one call.
  double time() const {
    const auto replay = [&] { TC_CUDA_CHECK(cudaGraphLaunch(graph_, stream_)); };
    return milliseconds(replay, stream_) * 1e3 / calls_;
  }

 private:
  cudaStream_t stream_;
  int calls_;
  cudaGraphExec_t graph_{};
};

double median(std::vector<double> v) {
  std::nth_element(v.begin(), v.begin() + long(v.size() / 2), v.end());
  return v[v.size() / 2];
}

class Report {
 public:
  // `aot` returns the variant it launched; `jit` is given that name. Both write `out`.
  void compare(const char* name, const Tensor& out, const std::function<std::string_view()>& aot,
               const std::function<void(std::string_view)>& jit) {
    const std::vector<char> poison(out.nbytes(), char(0xff));
    Tensor& target = const_cast<Tensor&>(out);
    target.copy_from_host(poison.data(), poison.size());
    const std::string variant(aot());
    TC_CUDA_CHECK(cudaDeviceSynchronize());
    const auto ours = bytes_of(out);
    target.copy_from_host(poison.data(), poison.size());
    jit(variant);
    TC_CUDA_CHECK(cudaDeviceSynchronize());
    const bool equal = ours == bytes_of(out) && ours != poison;
    all_equal_ = all_equal_ && equal;
    const auto [aot_us, jit_us] = times([&] { aot(); }, [&] { jit(variant); });
    std::cout << (count_++ ? ",\n" : "") << "  {\"case\": \"" << name << "\", \"variant\": \""
              << variant << "\", \"bits_equal\": " << (equal ? "true" : "false")
              << ", \"aot_us\": " << aot_us << ", \"jit_us\": " << jit_us
              << ", \"ratio\": " << aot_us / jit_us << "}";
  }
  bool all_equal() const { return all_equal_; }

 private:
  // Medians of rounds that alternate, so that both see the same clocks.
  std::pair<double, double> times(const std::function<void()>& aot,
                                  const std::function<void()>& jit) {
    const cudaStream_t stream = current_stream(0).handle();
    const double once = milliseconds(jit, stream) * 1e3;
    const int calls = std::clamp(int(2000 / std::max(once, 1.0)), 5, 500);
    const Recorded ours(aot, stream, calls), theirs(jit, stream, calls);
    std::vector<double> a, j;
    for (int i = 0; i < kRounds; ++i) {
      a.push_back(ours.time());
      j.push_back(theirs.time());
    }
    return {median(a), median(j)};
  }
  int count_ = 0;
  bool all_equal_ = true;
};

template <class T>
T* data(const Tensor& t) {
  return t.view().data_as<T>();
}

template <class T>
void rows(Report& report, const char* type, int64_t n, int64_t cols) {
  const cudaStream_t stream = current_stream(0).handle();
  const Tensor x = filled<T>({n, cols}, 1), w = filled<T>({cols}, 2), b = filled<T>({cols}, 3);
  const Tensor r = filled<T>({n, cols}, 4), out = filled<T>({n, cols}, 5);
  const auto name = [&](const char* op) { return join(op, ' ', type, ' ', n, 'x', cols); };
  T *px = data<T>(x), *pw = data<T>(w), *pb = data<T>(b), *pr = data<T>(r), *po = data<T>(out);
  report.compare(
      name("softmax").c_str(), out, [&] { return tk::launch_softmax(px, po, n, cols, stream); },
      [&](std::string_view v) { softmax(out, x, {.variant = v}); });
  report.compare(
      name("l2_normalize").c_str(), out,
      [&] { return tk::launch_l2_normalize(px, po, n, cols, 1e-12f, stream); },
      [&](std::string_view v) { l2_normalize(out, x, {.variant = v}); });
  report.compare(
      name("rms_norm").c_str(), out,
      [&] { return tk::launch_rms_norm(px, pw, po, n, cols, 1e-6f, stream); },
      [&](std::string_view v) { rms_norm(out, x, {.weight = w, .variant = v}); });
  report.compare(
      name("rms_norm residual").c_str(), out,
      [&] {
        return tk::launch_rms_norm_residual(px, pr, pw, po, (T*)nullptr, n, cols, 1e-6f, stream);
      },
      [&](std::string_view v) { rms_norm(out, x, {.weight = w, .residual = r, .variant = v}); });
  report.compare(
      name("layer_norm").c_str(), out,
      [&] {
        return tk::launch_layer_norm(px, pw, pb, po, n, cols, 1e-5f, nullptr, nullptr, stream);
      },
      [&](std::string_view v) { layer_norm(out, x, {.weight = w, .bias = b, .variant = v}); });
}

// Norms that store codes, and each row's scale.
template <class T>
void codes(Report& report, const char* type, int64_t n, int64_t cols) {
  const cudaStream_t stream = current_stream(0).handle();
  const Tensor x = filled<T>({n, cols}, 1), w = filled<T>({cols}, 2), b = filled<T>({cols}, 3);
  const Tensor r = filled<T>({n, cols}, 4), out(DType::float8_e4m3fn, {n, cols}, kGpu);
  const Tensor scales(DType::float32, {n}, kGpu);
  const auto name = [&](const char* op) { return join(op, ' ', type, ' ', n, 'x', cols); };
  T *px = data<T>(x), *pw = data<T>(w), *pb = data<T>(b), *pr = data<T>(r);
  e4m3* const po = data<e4m3>(out);
  const auto rms_norm_aot = [&] {
    return tk::launch_rms_norm_quantized(px, pw, po, {.scales = data<float>(scales)}, n, cols,
                                         1e-6f, stream);
  };
  const auto rms_norm_jit = [&](std::string_view v) {
    rms_norm(out, x,
             {.weight = w,
              .out_dtype = DType::float8_e4m3fn,
              .per_token = true,
              .scales = scales,
              .variant = v});
  };
  report.compare(name("rms_norm codes").c_str(), out, rms_norm_aot, rms_norm_jit);
  report.compare(name("rms_norm scales").c_str(), scales, rms_norm_aot, rms_norm_jit);
  report.compare(
      name("layer_norm residual codes").c_str(), out,
      [&] {
        return tk::launch_layer_norm_residual_quantized(px, pr, pw, pb, po, (T*)nullptr,
                                                        {.scale = 0.0125f}, n, cols, 1e-5f, stream);
      },
      [&](std::string_view v) {
        layer_norm(out, x,
                   {.weight = w,
                    .bias = b,
                    .residual = r,
                    .out_dtype = DType::float8_e4m3fn,
                    .scale = 0.0125f,
                    .variant = v});
      });
}

template <class T>
void sums_and_largest(Report& report, const char* type, int64_t n, int64_t cols) {
  const cudaStream_t stream = current_stream(0).handle();
  const Tensor x = filled<T>({n, cols}, 25), out = filled<T>({n, cols}, 26);
  const auto name = [&](const char* op) { return join(op, ' ', type, ' ', n, 'x', cols); };
  const auto bytes = int64_t(tk::cumulative_sum_workspace_bytes(data<T>(x), n, cols));
  const Tensor workspace(DType::uint8, {std::max(bytes, int64_t(1))}, kGpu);
  report.compare(
      name("cumulative_sum").c_str(), out,
      [&] {
        return tk::launch_cumulative_sum(data<T>(x), data<T>(out), n, cols, workspace.view().data(),
                                         stream);
      },
      [&](std::string_view v) { cumulative_sum(out, x, {.axis = 1, .variant = v}); });
  constexpr int64_t k = 8;
  const Tensor largest = filled<T>({n, k}, 27), indices(DType::int64, {n, k}, kGpu);
  const auto aot = [&] {
    return tk::launch_topk(data<T>(x), data<T>(largest), data<int64_t>(indices), n, cols, k,
                           stream);
  };
  const auto jit = [&](std::string_view v) {
    topk(largest, x, {.k = k, .indices = indices, .variant = v});
  };
  report.compare(name("topk").c_str(), largest, aot, jit);
  report.compare(name("topk indices").c_str(), indices, aot, jit);
}

template <class T>
void products(Report& report, const char* type, tk::GemmVersion version, int64_t size) {
  const cudaStream_t stream = current_stream(0).handle();
  const Tensor a = filled<T>({size, size}, 6), b = filled<T>({size, size}, 7);
  const Tensor d = filled<T>({size, size}, 8);
  report.compare(
      join("gemm ", type, ' ', size).c_str(), d,
      [&] {
        return tk::launch_gemm(data<T>(a), data<T>(b), data<T>(d), size, size, size, 0.5f, 0.0f,
                               version, stream);
      },
      [&](std::string_view v) { gemm(d, a, b, {.alpha = 0.5f, .variant = v}); });
}

template <class T>
void interface(Report& report, const char* type, MemoryLayout layout, int64_t size) {
  const cudaStream_t stream = current_stream(0).handle();
  const Tensor a = filled<T>({size, size}, 6), b = filled<T>({size, size}, 7);
  const Tensor c = filled<T>({size, size}, 8), d = filled<T>({size, size}, 9);
  report.compare(
      join("GEMMInterface ", type, ' ', size, " layout ", int(layout)).c_str(), d,
      [&] {
        return tk::GEMMInterface<T>::execute(data<T>(a), data<T>(b), data<T>(c), data<T>(d), size,
                                             size, size, 0.5f, 2.0f, layout, stream);
      },
      [&](std::string_view v) {
        gemm(d, a, b, with_layout(layout, {.c = c, .alpha = 0.5f, .beta = 2.0f, .variant = v}));
      });
}

template <class T>
void attentions(Report& report, const char* type, int64_t seq, int64_t head_dim, bool causal) {
  const cudaStream_t stream = current_stream(0).handle();
  constexpr int64_t kHeads = 8;
  const Dims shape{2, kHeads, seq, head_dim};
  const Tensor q = filled<T>(shape, 10), k = filled<T>(shape, 11), v = filled<T>(shape, 12);
  const Tensor out = filled<T>(shape, 13);
  report.compare(
      join("attention ", type, ' ', seq, 'x', head_dim, causal ? " causal" : "").c_str(), out,
      [&] {
        return tk::launch_attention(data<T>(q), data<T>(k), data<T>(v), data<T>(out),
                                    {2, kHeads, kHeads, seq, seq, head_dim}, {.causal = causal},
                                    stream);
      },
      [&](std::string_view name) { attention(out, q, k, v, {.causal = causal, .variant = name}); });
}

template <class T>
void elements(Report& report, const char* type, int64_t n) {
  const cudaStream_t stream = current_stream(0).handle();
  const Tensor a = filled<T>({n}, 14), b = filled<T>({n}, 15), out = filled<T>({n}, 16);
  T *pa = data<T>(a), *pb = data<T>(b), *po = data<T>(out);
  using View = TensorView;
  const auto unary = [&](const char* name,
                         std::string_view (*aot)(const T*, T*, int64_t, cudaStream_t, DebugInfo),
                         void (*jit)(const View&, const View&, const ElementwiseOptions&)) {
    report.compare(
        join(name, ' ', type, ' ', n).c_str(), out, [&] { return aot(pa, po, n, stream, {}); },
        [&](std::string_view v) { jit(out, a, {.variant = v}); });
  };
  const auto binary =
      [&](const char* name,
          std::string_view (*aot)(const T*, const T*, T*, int64_t, cudaStream_t, DebugInfo),
          void (*jit)(const View&, const View&, const View&, const ElementwiseOptions&)) {
        report.compare(
            join(name, ' ', type, ' ', n).c_str(), out,
            [&] { return aot(pa, pb, po, n, stream, {}); },
            [&](std::string_view v) { jit(out, a, b, {.variant = v}); });
      };
  binary("add", tk::launch_add<T, T, T>, add);
  binary("subtract", tk::launch_subtract<T, T, T>, subtract);
  binary("multiply", tk::launch_multiply<T, T, T>, multiply);
  binary("divide", tk::launch_divide<T, T, T>, divide);
  binary("maximum", tk::launch_maximum<T, T, T>, maximum);
  binary("minimum", tk::launch_minimum<T, T, T>, minimum);
  unary("negative", tk::launch_negative<T>, negative);
  unary("exp", tk::launch_exp<T>, exp);
  unary("tanh", tk::launch_tanh<T>, tanh);
  unary("sigmoid", tk::launch_sigmoid<T>, sigmoid);
  unary("relu", tk::launch_relu<T>, relu);
  unary("silu", tk::launch_silu<T>, silu);
  report.compare(
      join("copy ", type, ' ', n).c_str(), out, [&] { return tk::launch_copy(pa, po, n, stream); },
      [&](std::string_view v) { copy(out, a, {.variant = v}); });
  report.compare(
      join("gelu ", type, ' ', n).c_str(), out, [&] { return tk::launch_gelu(pa, po, n, stream); },
      [&](std::string_view v) { gelu(out, a, {.variant = v}); });
  report.compare(
      join("gelu_tanh ", type, ' ', n).c_str(), out,
      [&] { return tk::launch_gelu_tanh(pa, po, n, stream); },
      [&](std::string_view v) {
        gelu(out, a, {.approximate = GeluApproximation::tanh, .variant = v});
      });
  report.compare(
      join("leaky_relu ", type, ' ', n).c_str(), out,
      [&] { return tk::launch_leaky_relu(pa, po, n, 0.1f, stream); },
      [&](std::string_view v) { leaky_relu(out, a, {.alpha = 0.1f, .variant = v}); });
  report.compare(
      join("elu ", type, ' ', n).c_str(), out,
      [&] { return tk::launch_elu(pa, po, n, 1.5f, stream); },
      [&](std::string_view v) { elu(out, a, {.alpha = 1.5f, .variant = v}); });
  report.compare(
      join("swish ", type, ' ', n).c_str(), out,
      [&] { return tk::launch_swish(pa, po, n, 2.0f, stream); },
      [&](std::string_view v) { swish(out, a, {.beta = 2.0f, .variant = v}); });
  report.compare(
      join("fill ", type, ' ', n).c_str(), out,
      [&] { return tk::launch_fill(po, n, T(2.5f), stream); },
      [&](std::string_view v) { fill(out, out, {.value = 2.5, .variant = v}); });
}

void conversions_and_gathers(Report& report) {
  const cudaStream_t stream = current_stream(0).handle();
  constexpr int64_t n = 1 << 22, cols = 1024, count = 8192;
  const Tensor x = filled<float>({n}, 17), narrow = filled<bf16>({n}, 18);
  report.compare(
      "astype float32 bfloat16", narrow,
      [&] { return tk::launch_cast(data<float>(x), data<bf16>(narrow), n, stream); },
      [&](std::string_view v) { astype(narrow, x, {.dtype = DType::bfloat16, .variant = v}); });
  const Tensor ids = filled<int32_t>({count}, 19), table = filled<bf16>({4096, cols}, 20);
  const Tensor gathered = filled<bf16>({count, cols}, 21);
  report.compare(
      "embedding bfloat16", gathered,
      [&] {
        return tk::launch_embedding(data<int32_t>(ids), data<bf16>(table), data<bf16>(gathered),
                                    count, 4096, cols, stream);
      },
      [&](std::string_view v) { embedding(gathered, ids, table, {.variant = v}); });
  const Tensor sequences = filled<bf16>({64, 128, cols}, 22), lengths = filled<int32_t>({64}, 23);
  const Tensor means = filled<bf16>({64, cols}, 24);
  report.compare(
      "masked_mean bfloat16", means,
      [&] {
        return tk::launch_masked_mean(data<bf16>(sequences), data<int32_t>(lengths),
                                      data<bf16>(means), 64, 128, cols, stream);
      },
      [&](std::string_view v) { masked_mean(means, sequences, lengths, {.variant = v}); });
}

void compare_all(Report& report) {
  rows<float>(report, "float32", 8192, 1024);
  rows<float>(report, "float32", 1000, 1000);
  rows<bf16>(report, "bfloat16", 8192, 4096);
  rows<bf16>(report, "bfloat16", 333, 1001);
  codes<bf16>(report, "bfloat16", 8192, 4096);
  codes<bf16>(report, "bfloat16", 333, 1001);
  sums_and_largest<float>(report, "float32", 16384, 256);
  sums_and_largest<float>(report, "float32", 16, 262144);
  sums_and_largest<bf16>(report, "bfloat16", 333, 1001);
  products<float>(report, "float32", tk::GemmVersion::Naive, 512);
  products<float>(report, "float32", tk::GemmVersion::Tiled, 1024);
  products<bf16>(report, "bfloat16", tk::GemmVersion::Tiled, 1024);
  for (const int64_t size : {256, 1000, 2048, 4096})
    products<bf16>(report, "bfloat16", tk::GemmVersion::TensorCore, size);
  products<bf16>(report, "bfloat16", tk::GemmVersion::TensorCore, 333);
  for (const int64_t size : {333, 1024, 2048})
    products<float>(report, "float32", tk::GemmVersion::DoubleBuffer, size);
  for (const MemoryLayout layout : {MemoryLayout::ROW_ROW, MemoryLayout::ROW_COL,
                                    MemoryLayout::COL_ROW, MemoryLayout::COL_COL}) {
    interface<float>(report, "float32", layout, 1024);
    interface<bf16>(report, "bfloat16", layout, 1024);
  }
  attentions<bf16>(report, "bfloat16", 1024, 64, false);
  attentions<bf16>(report, "bfloat16", 1024, 128, true);
  attentions<bf16>(report, "bfloat16", 100, 40, false);
  attentions<float>(report, "float32", 512, 64, true);
  // Long enough that the launch does not count.
  elements<float>(report, "float32", int64_t(1) << 25);
  elements<bf16>(report, "bfloat16", (int64_t(1) << 26) + 5);
  conversions_and_gathers(report);
}

}  // namespace

int main() {
  if (cuda_device_count() == 0) {
    std::cerr << "skipped: there is no GPU\n";
    return 77;
  }
  try {
    int runtime = 0;
    TC_CUDA_CHECK(cudaRuntimeGetVersion(&runtime));
    TC_CUDA_CHECK(cudaSetDevice(0));
    const Stream stream;  // the default one cannot be recorded
    set_current_stream(stream);
    Report report;
    std::cout << "{\"device\": \"" << device_info(kGpu).name << "\", \"cuda_runtime\": " << runtime
              << ",\n\"timing\": \"GPU time of calls in a graph, median of " << kRounds
              << " alternating rounds of about 2 ms\",\n\"rows\": [\n";
    compare_all(report);
    std::cout << "\n], \"all_bits_equal\": " << (report.all_equal() ? "true" : "false") << "}\n";
    return report.all_equal() ? 0 : 1;
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
