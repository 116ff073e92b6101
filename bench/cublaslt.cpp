// SPDX-License-Identifier: Apache-2.0
#include "bench/peer.hpp"
#include "tensorcraft/core/error.hpp"

#include <algorithm>
#include <array>
#include <limits>

// cuBLASLt as the peer of gemm: of the products it proposes, the fastest here. Types and numbers
// below are its binary interface, which it has kept since its versions 11.
namespace tensorcraft::bench {
namespace {

constexpr int kAlgorithms = 16;
constexpr size_t kWorkspaceBytes = size_t(64) << 20;
enum Attribute : int { kTransA = 3, kTransB = 4, kBatchCount = 5, kBatchStride = 6 };
constexpr int kPreferWorkspace = 1, kTransposed = 1;
constexpr int kCompute32 = 68, kCompute32FastTf32 = 77;

struct Algorithm {
  uint64_t data[8];
};
struct Heuristic {
  Algorithm algorithm;
  size_t workspace_bytes;
  int status;
  float waves;
  int reserved[4];
};

struct CublasLt {
  PeerLibrary file{"libcublasLt.so.13", "libcublasLt.so.12"};
  int (*create)(void**) = nullptr;
  int (*create_product)(void**, int compute, int scale) = nullptr;
  int (*set_product)(void*, int, const void*, size_t) = nullptr;
  int (*create_layout)(void**, int type, uint64_t rows, uint64_t cols, int64_t ld) = nullptr;
  int (*set_layout)(void*, int, const void*, size_t) = nullptr;
  int (*create_preference)(void**) = nullptr;
  int (*set_preference)(void*, int, const void*, size_t) = nullptr;
  int (*propose)(void*, void*, void*, void*, void*, void*, void*, int, Heuristic*, int*) = nullptr;
  int (*multiply)(void*, void*, const void*, const void*, void*, const void*, void*, const void*,
                  const void*, void*, void*, void*, const Algorithm*, void*, size_t,
                  CUstream_st*) = nullptr;

  CublasLt() {
    file.find(create, "cublasLtCreate");
    file.find(create_product, "cublasLtMatmulDescCreate");
    file.find(set_product, "cublasLtMatmulDescSetAttribute");
    file.find(create_layout, "cublasLtMatrixLayoutCreate");
    file.find(set_layout, "cublasLtMatrixLayoutSetAttribute");
    file.find(create_preference, "cublasLtMatmulPreferenceCreate");
    file.find(set_preference, "cublasLtMatmulPreferenceSetAttribute");
    file.find(propose, "cublasLtMatmulAlgoGetHeuristic");
    file.find(multiply, "cublasLtMatmul");
  }
};

int cuda_type(DType dtype) {
  if (dtype == DType::float32) return 0;
  return dtype == DType::float16 ? 2 : 14;
}

bool is_true(const op::Value& value) {
  const auto* const flag = std::get_if<bool>(&value);
  return flag && *flag;
}

// One product, row-major as column-major: d^T = b^T a^T, so that b comes first.
class Product {
 public:
  Product(const CublasLt& library, const PeerProblem& problem)
      : library_(library),
        operands_(problem.operands),
        stream_(problem.stream),
        workspace_(DType::uint8, {int64_t(kWorkspaceBytes)}, problem.device, problem.stream) {
    const bool transpose_a = is_true(option_of(problem, "transpose_a"));
    const bool transpose_b = is_true(option_of(problem, "transpose_b"));
    const bool tf32 = is_true(option_of(problem, "allow_tf32"));
    const TensorView &a = operands_.inputs(0)[0], &b = operands_.inputs(0)[1];
    check_peer(library.create(&handle_), "cublasLtCreate");
    check_peer(library.create_product(&product_, tf32 ? kCompute32FastTf32 : kCompute32, 0),
               "cublasLtMatmulDescCreate");
    if (transpose_b) transpose(kTransA);
    if (transpose_a) transpose(kTransB);
    left_ = layout(b);
    right_ = layout(a);
    result_ = layout(operands_.outputs(0)[0]);
  }

  // Times what the library proposes and keeps the fastest.
  void choose(const op::Cost& cost) {
    void* preference = nullptr;
    check_peer(library_.create_preference(&preference), "cublasLtMatmulPreferenceCreate");
    check_peer(
        library_.set_preference(preference, kPreferWorkspace, &kWorkspaceBytes, sizeof(size_t)),
        "cublasLtMatmulPreferenceSetAttribute");
    std::array<Heuristic, kAlgorithms> proposed{};
    int count = 0;
    check_peer(library_.propose(handle_, product_, left_, right_, result_, result_, preference,
                                kAlgorithms, proposed.data(), &count),
               "cublasLtMatmulAlgoGetHeuristic");
    double best = std::numeric_limits<double>::infinity();
    for (int i = 0; i < count; ++i) {
      const Algorithm& algorithm = proposed[size_t(i)].algorithm;
      if (proposed[size_t(i)].status != 0 || multiply(0, algorithm) != 0) continue;
      const KernelProfile profile =
          profile_kernel([&] { multiply(0, algorithm); }, cost, stream_, 9);
      if (profile.median_us >= best) continue;
      best = profile.median_us;
      algorithm_ = algorithm;
    }
    if (best == std::numeric_limits<double>::infinity())
      fail(ErrorKind::unsupported, "it proposes nothing that runs");
  }
  void call(int copy) { check_peer(multiply(copy, algorithm_), "cublasLtMatmul"); }

 private:
  void transpose(int attribute) {
    check_peer(library_.set_product(product_, attribute, &kTransposed, sizeof(kTransposed)),
               "cublasLtMatmulDescSetAttribute");
  }
  // The layout of a row-major matrix, or of equally many in a row.
  void* layout(const TensorView& t) const {
    const int rank = t.rank();
    void* made = nullptr;
    check_peer(library_.create_layout(&made, cuda_type(t.dtype()), uint64_t(t.shape(rank - 1)),
                                      uint64_t(t.shape(rank - 2)), t.shape(rank - 1)),
               "cublasLtMatrixLayoutCreate");
    if (rank == 2) return made;
    const int32_t count = int32_t(t.shape(0));
    const int64_t stride = t.stride(0);
    check_peer(library_.set_layout(made, kBatchCount, &count, sizeof(count)), "batch count");
    check_peer(library_.set_layout(made, kBatchStride, &stride, sizeof(stride)), "batch stride");
    return made;
  }
  int multiply(int copy, const Algorithm& algorithm) {
    constexpr float kOne = 1, kZero = 0;
    const auto inputs = operands_.inputs(copy);
    void* const out = operands_.outputs(copy)[0].data();
    return library_.multiply(handle_, product_, &kOne, inputs[1].data(), left_, inputs[0].data(),
                             right_, &kZero, out, result_, out, result_, &algorithm,
                             workspace_.data(), kWorkspaceBytes, stream_.handle());
  }

  const CublasLt& library_;
  const Operands& operands_;
  const StreamRef stream_;
  Tensor workspace_;
  // Never given back: the process ends with the benchmark, and the library's own order of
  // destruction is not ours.
  void *handle_ = nullptr, *product_ = nullptr;
  void *left_ = nullptr, *right_ = nullptr, *result_ = nullptr;
  Algorithm algorithm_{};
};

// Why the call is none that it is asked for here.
std::string unlike(const PeerProblem& problem) {
  for (const char* name : {"c", "bias", "activation", "alpha", "beta"})
    if (!std::holds_alternative<std::monostate>(option_of(problem, name)))
      return join("only plain products are held against it, without ", name);
  const auto inputs = problem.operands.inputs(0);
  const int rank = inputs[0].rank();
  if (rank != inputs[1].rank() || rank < 2 || rank > 3)
    return "only matrices, or two equally long rows of them, are held against it";
  if (rank == 3 && inputs[0].shape(0) != inputs[1].shape(0)) return "one operand is broadcast";
  return {};
}

}  // namespace

PeerCall open_cublaslt(const PeerProblem& problem) {
  if (problem.operands.request().op().description().name != "gemm" || !problem.device.is_cuda())
    return {{}, "it is held against gemm on a GPU", false};
  if (const std::string reason = unlike(problem); !reason.empty()) return {{}, reason};
  static const CublasLt library;
  if (!library.file.problem().empty()) return {{}, library.file.problem()};
  const DeviceGuard guard(problem.device.index);
  const auto product = std::make_shared<Product>(library, problem);
  product->choose(problem.cost);
  return {[product, index = problem.device.index](int copy) {
            const DeviceGuard on(index);
            product->call(copy);
          },
          {}};
}

}  // namespace tensorcraft::bench
