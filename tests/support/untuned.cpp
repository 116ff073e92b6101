// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/tuning/tuned.hpp"

// Makes a test program's choices independent of what its user has tuned.
namespace tensorcraft::test {
namespace {

const bool kIsUntuned = [] {
  op::use_tuned_databases(false);
  return true;
}();

}  // namespace
}  // namespace tensorcraft::test
