// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tests/support/fake_driver.hpp"

namespace tensorcraft::test {

// An image of the fake compiler runs this: it holds the text of its entry, which names a rung,
// dtypes and a Config; the launches run the kernel that the emulator has of these, with the
// parameter bytes of the launch. Nothing to run if no operator has the rung.
FakeKernel simt_kernel(const char* image);

// The fake driver with launches that compute, as late as the program allows.
class SimtDriver : public FakeDriver {
 public:
  explicit SimtDriver(std::vector<FakeGpu> all_gpus = {FakeGpu{}}) : FakeDriver(all_gpus) {
    load_kernel = simt_kernel;
    deferred = true;
  }
};

}  // namespace tensorcraft::test
