// SPDX-License-Identifier: Apache-2.0
#include "bench/cublaslt.hpp"

#include "bench/product.hpp"
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/ops/all.hpp"

#include <array>
#include <limits>
#include <utility>

namespace tensorcraft::bench {
namespace {

constexpr int kProposals = 16, kProfileRuns = 20;
constexpr size_t kWorkspaceBytes = size_t(32) << 20;

int cuda_type(DType dtype) {
  switch (dtype) {
    case DType::float32:
      return 0;
    case DType::float16:
      return 2;
    case DType::int8:
      return 3;
    case DType::int32:
      return 10;
    case DType::float8_e4m3fn:
      return 28;
    case DType::float8_e5m2:
      return 29;
    default:
      return 14;
  }
}

int activation_code(const Product& product) {
  if (product.activation == "relu") return kRelu;
  return product.activation == "gelu_tanh" ? kGeluTanh : 0;
}

bool has_epilogue(const Product& product) {
  return product.gate.empty() && (product.activation.empty() || activation_code(product));
}

// Follows the product: an activation in place, or one of the left half that the right half is
// multiplied by.
class Kernel {
 public:
  explicit Kernel(const Product& product)
      : Kernel(product.gate.empty() ? product.activation : product.gate, !product.gate.empty()) {}
  void run(const TensorView& out, const TensorView& in, StreamRef stream) const {
    op::Arguments arguments{{&in, 1}, options_};
    if (stream.handle()) arguments.stream = stream;
    op_.run({&out, 1}, arguments);
  }

 private:
  Kernel(const std::string& activation, bool is_gate)
      : op_(find_operator(std::string(activation == "gelu_tanh" ? "gelu" : activation) +
                          (is_gate ? "_and_mul" : ""))),
        options_(op_.description().options.size()) {
    if (activation == "gelu_tanh") options_[0] = std::string_view("tanh");
  }
  const op::Operator& op_;
  std::vector<op::Value> options_;
};

// One product, row-major as column-major: d^T = b^T a^T, so that b comes first.
class LtCall {
 public:
  LtCall(const CublasLt& library, const PeerProblem& problem, bool with_kernel)
      : library_(library),
        operands_(problem.operands),
        stream_(problem.stream),
        device_(problem.device),
        handle_(library.handle(problem.device.index)),
        workspace_(DType::uint8, {int64_t(kWorkspaceBytes)}, problem.device, problem.stream) {
    for (int i = 0; i < operands_.copies(); ++i) products_.push_back(product_of(problem, i));
    if (with_kernel) add_kernel();
    describe(products_[0]);
  }

  // Keeps the fastest of what the library proposes. Says why there is none, or nothing.
  std::string choose(const PeerProblem& problem);
  void call(int copy) { check_peer(run(copy, algorithm_), "cublasLtMatmul"); }
  // "algorithm 66, tile 20, ..., rejected 1": one of the proposals had another result than ours.
  std::string note() const;

 private:
  void add_kernel();
  void describe(const Product& p);
  void set_scales(const Product& p) const;
  void* layout(const ProductMatrix& x, int64_t batch) const;
  std::vector<LtHeuristic> proposals() const;
  int run(int copy, const LtAlgorithm& algorithm);
  template <class T>
  void set(int attribute, const T& value) const {
    check_peer(library_.set_product(product_, attribute, &value, sizeof(value)),
               "cublasLtMatmulDescSetAttribute");
  }

  const CublasLt& library_;
  const Operands& operands_;
  const StreamRef stream_;
  const Device device_;
  void* const handle_;
  Tensor workspace_;
  std::vector<Product> products_;  // one a copy
  std::optional<Kernel> kernel_;
  std::optional<Tensor> both_halves_;  // the result before the gate
  void *product_ = nullptr, *left_ = nullptr, *right_ = nullptr;
  void *added_ = nullptr, *result_ = nullptr;
  LtAlgorithm algorithm_{};
  int rejected_ = 0;
};

void LtCall::add_kernel() {
  kernel_.emplace(products_[0]);
  if (products_[0].gate.empty()) return;
  const TensorView& out = operands_.outputs(0)[0];
  Dims shape = out.shape();
  shape[out.rank() - 1] *= 2;
  both_halves_.emplace(out.dtype(), shape, device_, stream_);
  for (Product& p : products_) {
    p.d.data = both_halves_->data();
    p.d.cols *= 2;
    p.d.leading = p.d.cols;
    p.d.batch_stride *= 2;
  }
}

void LtCall::describe(const Product& p) {
  const bool is_int32 = p.d.dtype == DType::int32;
  const int compute = is_int32 ? kComputeInt32 : p.tf32 ? kCompute32FastTf32 : kCompute32;
  check_peer(library_.create_product(&product_, compute, is_int32 ? cuda_type(DType::int32) : 0),
             "cublasLtMatmulDescCreate");
  if (p.fast) set(kFastAccumulation, int8_t(1));
  // Its left operand is our b.
  if (p.b_scale && p.b_scale->size() > 1) set(kScaleModeA, kScaleOfLines);
  if (p.a_scale && p.a_scale->size() > 1) set(kScaleModeB, kScaleOfLines);
  set_scales(p);
  if (p.transpose_b) set(kTransA, kTransposed);
  if (p.transpose_a) set(kTransB, kTransposed);
  const int epilogue = (kernel_ ? 0 : activation_code(p)) | (p.bias ? kBias : 0);
  set(kEpilogue, epilogue ? epilogue : int(kPlain));
  if (p.bias) {
    set(kBiasType, cuda_type(p.bias->dtype()));
    set(kBiasPointer, p.bias->data());
  }
  left_ = layout(p.b, p.batch);
  right_ = layout(p.a, p.batch);
  result_ = layout(p.d, p.batch);
  added_ = p.c ? layout(*p.c, p.batch) : result_;
}

void LtCall::set_scales(const Product& p) const {
  if (p.b_scale) set(kScaleA, p.b_scale->data());
  if (p.a_scale) set(kScaleB, p.a_scale->data());
}

void* LtCall::layout(const ProductMatrix& x, int64_t batch) const {
  void* made = nullptr;
  check_peer(library_.create_layout(&made, cuda_type(x.dtype), uint64_t(x.cols), uint64_t(x.rows),
                                    x.leading),
             "cublasLtMatrixLayoutCreate");
  if (batch == 1) return made;
  const int32_t count = int32_t(batch);
  check_peer(library_.set_layout(made, kBatchCount, &count, sizeof(count)), "batch count");
  check_peer(library_.set_layout(made, kBatchStride, &x.batch_stride, sizeof(x.batch_stride)),
             "batch stride");
  return made;
}

std::vector<LtHeuristic> LtCall::proposals() const {
  void* preference = nullptr;
  check_peer(library_.create_preference(&preference), "cublasLtMatmulPreferenceCreate");
  check_peer(
      library_.set_preference(preference, kPreferWorkspace, &kWorkspaceBytes, sizeof(size_t)),
      "cublasLtMatmulPreferenceSetAttribute");
  std::vector<LtHeuristic> proposed(kProposals);
  int count = 0;
  const int status = library_.propose(handle_, product_, left_, right_, added_, result_, preference,
                                      kProposals, proposed.data(), &count);
  if (status != kLtNotSupported) check_peer(status, "cublasLtMatmulAlgoGetHeuristic");
  proposed.resize(size_t(count));
  std::erase_if(proposed, [](const LtHeuristic& h) { return h.status != 0; });
  return proposed;
}

std::string LtCall::choose(const PeerProblem& problem) {
  const std::vector<LtHeuristic> proposed = proposals();
  if (proposed.empty()) return "it proposes nothing for this product";
  const ExpectedResult expected(problem, products_[0]);
  const PerformanceProfiler profiler(stream_, kProfileRuns);
  Rotation rotation{operands_.copies()};
  double best = std::numeric_limits<double>::infinity();
  std::string difference;
  for (const auto& [algorithm, bytes, status, waves, reserved] : proposed) {
    expected.poison();
    if (run(0, algorithm) != 0) continue;
    if (std::string found = expected.difference(); !found.empty()) {
      difference = std::move(found);
      ++rejected_;
      continue;
    }
    const KernelProfile profile = profiler.profile_kernel(
        [&, &a = algorithm](int copy) { run(copy, a); }, rotation, problem.cost);
    if (profile.median_us < best) {
      best = profile.median_us;
      algorithm_ = algorithm;
    }
  }
  if (best < std::numeric_limits<double>::infinity()) return {};
  if (!difference.empty()) fail(ErrorKind::internal, "its results differ from ours: ", difference);
  return "nothing that it proposes runs";
}

int LtCall::run(int copy, const LtAlgorithm& algorithm) {
  const Product& p = products_[size_t(copy)];
  if (p.bias) set(kBiasPointer, p.bias->data());
  set_scales(p);
  const int32_t one = 1, zero = 0;  // what int32 sums are scaled by
  const bool is_int32 = p.d.dtype == DType::int32;
  const void* const alpha = is_int32 ? static_cast<const void*>(&one) : &p.alpha;
  const void* const beta = is_int32 ? static_cast<const void*>(&zero) : &p.beta;
  const int status = library_.multiply(
      handle_, product_, alpha, p.b.data, left_, p.a.data, right_, beta, p.c ? p.c->data : p.d.data,
      added_, p.d.data, result_, &algorithm, workspace_.data(), kWorkspaceBytes, stream_.handle());
  if (status != 0 || !kernel_) return status;
  const TensorView& out = operands_.outputs(copy)[0];
  kernel_->run(out, both_halves_ ? both_halves_->view() : out, stream_);
  return 0;
}

std::string LtCall::note() const {
  std::string text;
  for (const auto& [name, which] : {std::pair{"algorithm", kId},
                                    {"tile", kTile},
                                    {"stages", kStages},
                                    {"splits", kSplits},
                                    {"cluster", kCluster}}) {
    int64_t value = 0;  // of 16 or 32 bits
    size_t written = 0;
    const size_t bytes = which == kCluster ? sizeof(int16_t) : sizeof(int32_t);
    if (library_.get_config(&algorithm_, which, &value, bytes, &written) == 0)
      text += join(text.empty() ? "" : ", ", name, ' ', value);
  }
  if (rejected_ > 0) text += join(text.empty() ? "" : ", ", "rejected ", rejected_);
  return text;
}

CublasLt opened() {
  PeerLibrary file{"libcublasLt.so.13", "libcublasLt.so.12"};
  CublasLt lt;
  file.find(lt.create, "cublasLtCreate");
  file.find(lt.create_product, "cublasLtMatmulDescCreate");
  file.find(lt.set_product, "cublasLtMatmulDescSetAttribute");
  file.find(lt.create_layout, "cublasLtMatrixLayoutCreate");
  file.find(lt.set_layout, "cublasLtMatrixLayoutSetAttribute");
  file.find(lt.create_preference, "cublasLtMatmulPreferenceCreate");
  file.find(lt.set_preference, "cublasLtMatmulPreferenceSetAttribute");
  file.find(lt.propose, "cublasLtMatmulAlgoGetHeuristic");
  file.find(lt.get_config, "cublasLtMatmulAlgoConfigGetAttribute");
  file.find(lt.multiply, "cublasLtMatmul");
  lt.problem = file.problem();
  return lt;
}

PeerCall open_installed(const PeerProblem& problem, bool with_kernel) {
  if (problem.operands.request().op().description().name != "gemm" || !problem.device.is_cuda())
    return {{}, "it is held against gemm on a GPU", false};
  return open_cublaslt(problem, installed_cublaslt(), with_kernel);
}

}  // namespace

void* CublasLt::handle(int device) const {
  void*& known = handles_[device];
  if (!known) check_peer(create(&known), "cublasLtCreate");
  return known;
}

const CublasLt& installed_cublaslt() {
  static const CublasLt library = opened();
  return library;
}

PeerCall open_cublaslt(const PeerProblem& problem, const CublasLt& library, bool with_kernel) {
  if (const std::string reason = product_refusal(problem); !reason.empty()) return {{}, reason};
  const Product product = product_of(problem, 0);
  if (with_kernel && has_epilogue(product)) return {{}, "cublaslt alone computes it", false};
  if (!with_kernel && !has_epilogue(product))
    return {{}, "its epilogue lacks it; see cublaslt+kernel"};
  if (!library.problem.empty()) return {{}, library.problem};
  const DeviceGuard guard(problem.device.index);
  const auto call = std::make_shared<LtCall>(library, problem, with_kernel);
  if (std::string reason = call->choose(problem); !reason.empty()) return {{}, std::move(reason)};
  return {[call, index = problem.device.index](int copy) {
            const DeviceGuard on(index);
            call->call(copy);
          },
          {},
          true,
          call->note()};
}

PeerCall open_cublaslt(const PeerProblem& problem) { return open_installed(problem, false); }

PeerCall open_cublaslt_and_kernel(const PeerProblem& problem) {
  return open_installed(problem, true);
}

}  // namespace tensorcraft::bench
