// SPDX-License-Identifier: Apache-2.0
#include "bench/peer.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/cuda/memory.hpp"

#include <dlfcn.h>

#include <cstring>

namespace tensorcraft::bench {

const std::vector<Peer>& peers() {
  static const std::vector<Peer> all{{"copy", open_copy},
                                     {"cublaslt", open_cublaslt},
                                     {"cublaslt+kernel", open_cublaslt_and_kernel},
                                     {"cudnn", open_cudnn}};
  return all;
}

// As many bytes as the call moves: half of them are read, half written.
PeerCall open_copy(const PeerProblem& problem) {
  const int64_t half = std::max<int64_t>(int64_t(problem.cost.bytes / 2), 1);
  const int64_t step = (half + 255) / 256 * 256;  // each copy as aligned as the first
  const int64_t all = step * problem.operands.copies();
  const bool on_gpu = problem.device.is_cuda();
  const auto make = [&] {
    return on_gpu ? Tensor(DType::uint8, {all}, problem.device, problem.stream)
                  : Tensor(DType::uint8, {all}, problem.device);
  };
  const auto from = std::make_shared<Tensor>(make()), to = std::make_shared<Tensor>(make());
  fill_random(from->view(), 256, 0, problem.stream);
  fill_random(to->view(), 256, 1, problem.stream);
  return {[=, stream = problem.stream](int copy) {
            std::byte* const target = to->data_as<std::byte>() + copy * step;
            const std::byte* const source = from->data_as<std::byte>() + copy * step;
            if (on_gpu)
              cuda::copy_async(target, source, size_t(half), stream);
            else
              std::memcpy(target, source, size_t(half));
          },
          {}};
}

const op::Value& option_of(const PeerProblem& problem, std::string_view name) {
  static const op::Value none;
  const auto& options = problem.operands.request().op().description().options;
  for (size_t i = 0; i < options.size(); ++i)
    if (options[i].name == name) return problem.operands.request().options()[i];
  return none;
}

void check_peer(int status, const char* call) {
  if (status != 0) fail(ErrorKind::unsupported, call, " answers ", status);
}

PeerLibrary::PeerLibrary(std::initializer_list<std::string> names) {
  for (const std::string& name : names)
    for (const char* folder : {"", "/usr/local/cuda/lib64/"})
      if (!handle_) handle_ = dlopen((folder + name).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle_) problem_ = *names.begin() + " cannot be opened";
}

void* PeerLibrary::symbol(const char* name) {
  void* const found = handle_ ? dlsym(handle_, name) : nullptr;
  if (!found && problem_.empty()) problem_ = join("the library has no ", name);
  return found;
}

}  // namespace tensorcraft::bench
