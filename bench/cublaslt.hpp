// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "bench/peer.hpp"

#include <cstddef>
#include <cstdint>
#include <map>

// cuBLASLt as the peer of gemm. Types and numbers are its binary interface, which it has kept since
// its versions 11; tests hold them against its header where there is one.
namespace tensorcraft::bench {

struct LtAlgorithm {
  uint64_t data[8];
};
struct LtHeuristic {
  LtAlgorithm algorithm;
  size_t workspace_bytes;
  int status;
  float waves;
  int reserved[4];
};

// Attributes of a product, of a layout and of an algorithm, and their values.
enum LtProduct : int {
  kTransA = 3,
  kTransB = 4,
  kEpilogue = 7,
  kBiasPointer = 8,
  kScaleA = 17,
  kScaleB = 18,
  kFastAccumulation = 25,
  kBiasType = 26,
  kScaleModeA = 31,
  kScaleModeB = 32
};
enum LtLayout : int { kBatchCount = 5, kBatchStride = 6 };
enum LtConfig : int { kId = 0, kTile = 1, kSplits = 2, kStages = 6, kCluster = 8 };
enum LtEpilogue : int { kPlain = 1, kRelu = 2, kBias = 4, kGeluTanh = 32 };
inline constexpr int kPreferWorkspace = 1, kTransposed = 1;
inline constexpr int kCompute32 = 68, kCompute32FastTf32 = 77, kComputeInt32 = 72;
inline constexpr int kScaleOfLines = 3;  // one a row of the left operand, or column of the right
inline constexpr int kLtNotSupported = 15;

// Its functions.
struct CublasLt {
  std::string problem;  // why it cannot be used; empty if it can
  int (*create)(void**) = nullptr;
  int (*create_product)(void**, int compute, int scale) = nullptr;
  int (*set_product)(void*, int, const void*, size_t) = nullptr;
  int (*create_layout)(void**, int type, uint64_t rows, uint64_t cols, int64_t ld) = nullptr;
  int (*set_layout)(void*, int, const void*, size_t) = nullptr;
  int (*create_preference)(void**) = nullptr;
  int (*set_preference)(void*, int, const void*, size_t) = nullptr;
  int (*propose)(void*, void*, void*, void*, void*, void*, void*, int, LtHeuristic*,
                 int*) = nullptr;
  int (*get_config)(const LtAlgorithm*, int, void*, size_t, size_t*) = nullptr;
  int (*multiply)(void*, void*, const void*, const void*, void*, const void*, void*, const void*,
                  const void*, void*, void*, void*, const LtAlgorithm*, void*, size_t,
                  CUstream_st*) = nullptr;

  // Made once for a device, and never given back: the process ends with the benchmark, and the
  // library's own order of destruction is not ours.
  void* handle(int device) const;

 private:
  mutable std::map<int, void*> handles_;
};

// The one of this machine.
const CublasLt& installed_cublaslt();

// Opens, of the library's proposals for the product, the fastest whose result equals ours. A kernel
// of ours computes after it what its epilogue lacks if `with_kernel`, which then applies to such
// products alone.
PeerCall open_cublaslt(const PeerProblem& problem, const CublasLt& library, bool with_kernel);

}  // namespace tensorcraft::bench
