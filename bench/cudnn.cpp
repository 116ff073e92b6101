// SPDX-License-Identifier: Apache-2.0
#include "bench/peer.hpp"
#include "tensorcraft/core/error.hpp"

// cuDNN as the peer of softmax and log_softmax over the last axis. Numbers below are its interface.
namespace tensorcraft::bench {
namespace {

constexpr int kAccurate = 1, kLog = 2, kOverAllOfARow = 0, kRowMajor = 0;

struct Cudnn {
  PeerLibrary file{"libcudnn.so.9", "libcudnn.so.8"};
  int (*create)(void**) = nullptr;
  int (*set_stream)(void*, CUstream_st*) = nullptr;
  int (*create_tensor)(void**) = nullptr;
  int (*set_tensor)(void*, int format, int type, int n, int c, int h, int w) = nullptr;
  int (*softmax)(void*, int algorithm, int mode, const void* alpha, void* x_tensor, const void* x,
                 const void* beta, void* y_tensor, void* y) = nullptr;

  Cudnn() {
    file.find(create, "cudnnCreate");
    file.find(set_stream, "cudnnSetStream");
    file.find(create_tensor, "cudnnCreateTensorDescriptor");
    file.find(set_tensor, "cudnnSetTensor4dDescriptor");
    file.find(softmax, "cudnnSoftmaxForward");
  }
};

int cudnn_type(DType dtype) {
  if (dtype == DType::float32) return 0;
  return dtype == DType::float16 ? 2 : 9;
}

bool is_over_last_axis(const PeerProblem& problem) {
  const auto* const axis = std::get_if<int64_t>(&option_of(problem, "axis"));
  return !axis || *axis == -1 || *axis == problem.operands.inputs(0)[0].rank() - 1;
}

}  // namespace

PeerCall open_cudnn(const PeerProblem& problem) {
  const std::string_view name = problem.operands.request().op().description().name;
  if ((name != "softmax" && name != "log_softmax") || !problem.device.is_cuda())
    return {{}, "it is held against softmax and log_softmax on a GPU", false};
  const TensorView& x = problem.operands.inputs(0)[0];
  if (!is_over_last_axis(problem) || x.rank() == 0)
    return {{}, "only the last axis is held against it"};
  static const Cudnn library;
  if (!library.file.problem().empty()) return {{}, library.file.problem()};
  const DeviceGuard guard(problem.device.index);
  void *handle = nullptr, *tensor = nullptr;  // as long as the process, like those of cuBLASLt
  check_peer(library.create(&handle), "cudnnCreate");
  check_peer(library.set_stream(handle, problem.stream.handle()), "cudnnSetStream");
  check_peer(library.create_tensor(&tensor), "cudnnCreateTensorDescriptor");
  const int64_t cols = x.shape(x.rank() - 1);
  check_peer(library.set_tensor(tensor, kRowMajor, cudnn_type(x.dtype()), int(x.size() / cols),
                                int(cols), 1, 1),
             "cudnnSetTensor4dDescriptor");
  const int algorithm = name == "softmax" ? kAccurate : kLog;
  return {[=, index = problem.device.index, &operands = problem.operands](int copy) {
            constexpr float kOne = 1, kZero = 0;
            const DeviceGuard on(index);
            check_peer(library.softmax(handle, algorithm, kOverAllOfARow, &kOne, tensor,
                                       operands.inputs(copy)[0].data(), &kZero, tensor,
                                       operands.outputs(copy)[0].writable_data()),
                       "cudnnSoftmaxForward");
          },
          {}};
}

}  // namespace tensorcraft::bench
