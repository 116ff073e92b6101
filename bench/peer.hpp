// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "bench/operands.hpp"
#include "bench/timing.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

// Peers are timed beside ours: libraries that are opened if they are installed, and never linked.
namespace tensorcraft::bench {

// A peer is asked to compute this.
struct PeerProblem {
  const Operands& operands;
  op::Cost cost;
  Device device;
  StreamRef stream;
  Call ours;  // whose result a peer's is held against, on any copy
};

// A peer that is ready: its call on the n-th copy of the operands, and all it needs.
struct PeerCall {
  Call call;              // empty if there is none
  std::string reason;     // then: why this machine or this call has none
  bool applies = true;    // then: does it have such an operator at all?
  std::string note = {};  // what it chose to compute by, if it says that
};

struct Peer {
  std::string_view name;
  PeerCall (*open)(const PeerProblem& problem);
};

// All of them: copy, cublaslt, cublaslt+kernel, cudnn.
const std::vector<Peer>& peers();

PeerCall open_copy(const PeerProblem& problem);
PeerCall open_cublaslt(const PeerProblem& problem);
PeerCall open_cublaslt_and_kernel(const PeerProblem& problem);
PeerCall open_cudnn(const PeerProblem& problem);

// The value of an option of the call by its name; monostate if it is not given.
const op::Value& option_of(const PeerProblem& problem, std::string_view name);

// Kind unsupported if a peer's function does not answer 0.
void check_peer(int status, const char* call);

// A library opened by the first of its names that is found, also in the toolkit's folder.
class PeerLibrary {
 public:
  explicit PeerLibrary(std::initializer_list<std::string> names);
  // Why it cannot be used; empty if it can.
  const std::string& problem() const { return problem_; }
  // Fills in a function; a name that is missing becomes the problem.
  template <class Function>
  void find(Function*& function, const char* name) {
    function = reinterpret_cast<Function*>(symbol(name));
  }

 private:
  void* symbol(const char* name);
  void* handle_ = nullptr;
  std::string problem_;
};

}  // namespace tensorcraft::bench
