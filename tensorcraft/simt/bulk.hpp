// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/simt/async.hpp"

// Parts of bulk copies that the 1D and the tensor forms share.
namespace tensorcraft::simt {

// The places that a load into these blocks of the cluster lands in; a mask of 0 is the own block.
std::vector<Target> targets_of(void* to, size_t bytes, uint64_t* barrier, uint16_t mask,
                               const Issue& issue);

// Whether there is such a reduction.
bool can_reduce(Reduce op, ReduceType type);
// Each element of `to`, which other blocks may change at the same time, becomes op(it, from's).
// Floats of 16 bits are rounded to nearest even after each addition.
void reduce(Reduce op, ReduceType type, void* to, const void* from, size_t bytes);

}  // namespace tensorcraft::simt
