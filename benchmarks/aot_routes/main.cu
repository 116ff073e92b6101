// SPDX-License-Identifier: Apache-2.0
// The launchers against the library's JIT on one GPU: equal bits and equal time, for every
// launcher, by the variant that it names. Prints one JSON object; exit code 1 if bits differ, 77
// without a GPU.
#include "report.hpp"

#include <algorithm>
#include <iostream>

namespace aot_routes {
namespace {

std::vector<char> bytes_of(const std::vector<Tensor*>& tensors) {
  std::vector<char> bytes;
  for (const Tensor* t : tensors) {
    bytes.resize(bytes.size() + t->nbytes());
    t->copy_to_host(bytes.data() + bytes.size() - t->nbytes(), t->nbytes());
  }
  return bytes;
}

// GPU time between two events around what `enqueue` does.
double milliseconds(const std::function<void()>& enqueue) {
  cudaEvent_t begin{}, end{};
  TC_CUDA_CHECK(cudaEventCreate(&begin));
  TC_CUDA_CHECK(cudaEventCreate(&end));
  TC_CUDA_CHECK(cudaEventRecord(begin, stream()));
  enqueue();
  TC_CUDA_CHECK(cudaEventRecord(end, stream()));
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
  Recorded(const std::function<void()>& call, int calls) : calls_(calls) {
    cudaGraph_t graph{};
    TC_CUDA_CHECK(cudaStreamBeginCapture(stream(), cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < calls; ++i) call();
    TC_CUDA_CHECK(cudaStreamEndCapture(stream(), &graph));
    TC_CUDA_CHECK(cudaGraphInstantiate(&graph_, graph));
    TC_CUDA_CHECK(cudaGraphDestroy(graph));
  }
  ~Recorded() { cudaGraphExecDestroy(graph_); }
  Recorded(const Recorded&) = delete;
  Recorded& operator=(const Recorded&) = delete;

  // Microseconds of one call.
  double time() const {
    const auto replay = [&] { TC_CUDA_CHECK(cudaGraphLaunch(graph_, stream())); };
    return milliseconds(replay) * 1e3 / calls_;
  }

 private:
  int calls_;
  cudaGraphExec_t graph_{};
};

double median(std::vector<double> v) {
  std::nth_element(v.begin(), v.begin() + long(v.size() / 2), v.end());
  return v[v.size() / 2];
}

// Medians of rounds that alternate, so that both see the same clocks.
std::pair<double, double> times(const std::function<void()>& launcher,
                                const std::function<void()>& library) {
  const double once = milliseconds(library) * 1e3;
  const int calls = std::clamp(int(2000 / std::max(once, 1.0)), 5, 500);
  const Recorded ours(launcher, calls), theirs(library, calls);
  std::vector<double> a, j;
  for (int i = 0; i < kRounds; ++i) {
    a.push_back(ours.time());
    j.push_back(theirs.time());
  }
  return {median(a), median(j)};
}

}  // namespace

void Report::compare(const Comparison& comparison) {
  const auto poison = [&] {
    for (Tensor* t : comparison.outputs) {
      const std::vector<char> bytes(t->nbytes(), char(0xff));
      t->copy_from_host(bytes.data(), bytes.size());
    }
    comparison.prepare();
    return bytes_of(comparison.outputs);
  };
  const auto before = poison();
  const std::string variant(comparison.launcher());
  TC_CUDA_CHECK(cudaDeviceSynchronize());
  const auto ours = bytes_of(comparison.outputs);
  poison();
  comparison.library(variant);
  TC_CUDA_CHECK(cudaDeviceSynchronize());
  const bool equal = ours == bytes_of(comparison.outputs) && ours != before;
  all_equal_ = all_equal_ && equal;
  const auto [aot_us, jit_us] =
      times([&] { comparison.launcher(); }, [&] { comparison.library(variant); });
  std::cout << (count_++ ? ",\n" : "") << "  {\"case\": \"" << comparison.name
            << "\", \"variant\": \"" << variant
            << "\", \"bits_equal\": " << (equal ? "true" : "false") << ", \"aot_us\": " << aot_us
            << ", \"jit_us\": " << jit_us << ", \"ratio\": " << aot_us / jit_us << "}";
}

}  // namespace aot_routes

int main() {
  using namespace aot_routes;
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
    for (const auto compare :
         {compare_rows, compare_codes, compare_channels, compare_sums, compare_products,
          compare_elements, compare_moves, compare_convolutions})
      compare(report);
    std::cout << "\n], \"all_bits_equal\": " << (report.all_equal() ? "true" : "false") << "}\n";
    return report.all_equal() ? 0 : 1;
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
