// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/option.hpp"

#include <string_view>
#include <vector>

// Operators that take a matrix of compressed rows document their arguments with these.
namespace tensorcraft::op {

inline const Parameter kCsrIndices{"indices", takes(kIndexTypes, "%, (stored): their columns")};
inline const Parameter kCsrIndptr{
    "indptr", takes(kIndexTypes, "%, (rows + 1): where rows begin; dtype of indices")};
// Documents indptr where it stands alone.
inline const Parameter kCsrStarts{"indptr", takes(kIndexTypes, "%, (rows + 1): where rows begin")};

// The matrix, and what comes behind it.
inline std::vector<Parameter> csr_inputs(std::vector<Parameter> others = {}) {
  others.insert(
      others.begin(),
      {{"data", takes(kFloatTypes, "the stored elements, %, (stored)")}, kCsrIndices, kCsrIndptr});
  return others;
}

// Returns the options of a product; `c` says what is added.
template <class Options>
std::vector<Option<Options>> csr_product_options(std::string_view c) {
  return {option("c", &Options::c, c),
          option("alpha", &Options::alpha, "factor of the product"),
          option("beta", &Options::beta, "factor of c; 1 if c is given"),
          option("combine", &Options::combine, "an expression of x and a"),
          option("reduce", &Options::reduce, "what makes one number of those of a row"),
          option("longest_row", &Options::longest_row,
                 "elements of the longest row, from csr_report; -1: not known")};
}

}  // namespace tensorcraft::op
