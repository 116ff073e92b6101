// SPDX-License-Identifier: Apache-2.0
#include "tests/support/fake_device.hpp"

#include "tests/support/fake_driver.hpp"

#include <cstring>

namespace tensorcraft::test {
namespace {

FakeDriver* fake() { return FakeDriver::installed(); }

}  // namespace

void fill_device_calls(cuda::Driver& d) {
  d.init.function = [](uint32_t) { return fake()->enter("cuInit"); };
  d.driver_get_version.function = [](int* version) {
    *version = fake()->version;
    return fake()->enter("cuDriverGetVersion");
  };
  d.get_error_string.function = [](int status, const char** text) {
    *text = status == kOutOfMemory      ? "out of memory"
            : status == kIllegalAddress ? "an illegal memory access was encountered"
            : status == kLaunchFailed   ? "unspecified launch failure"
            : status == kEccError       ? "uncorrectable ECC error encountered"
                                        : "fake error";
    return 0;
  };
  d.device_get.function = [](int* device, int index) {
    *device = index;
    return fake()->enter("cuDeviceGet");
  };
  d.device_get_count.function = [](int* count) {
    *count = int(fake()->gpus.size());
    return fake()->enter("cuDeviceGetCount");
  };
  d.device_get_name.function = [](char* name, int size, int device) {
    std::strncpy(name, fake()->gpus[size_t(device)].name, size_t(size));
    return fake()->enter("cuDeviceGetName");
  };
  d.device_total_mem.function = [](size_t* bytes, int device) {
    *bytes = fake()->gpus[size_t(device)].memory_bytes;
    return fake()->enter("cuDeviceTotalMem");
  };
  d.device_get_attribute.function = [](int* value, int which, int device) {
    *value = fake()->gpus[size_t(device)].attribute(which);
    return fake()->enter("cuDeviceGetAttribute");
  };
  d.primary_context_retain.function = [](CUctx_st** context, int device) {
    if (const int status = fake()->enter("cuDevicePrimaryCtxRetain")) return status;
    *context = FakeDriver::context_of(device);
    ++fake()->retained_contexts;
    return 0;
  };
  d.context_get_current.function = [](CUctx_st** context) {
    *context = FakeDriver::current_context();
    return fake()->enter("cuCtxGetCurrent");
  };
  d.context_set_current.function = [](CUctx_st* context) {
    if (const int status = fake()->enter("cuCtxSetCurrent")) return status;
    FakeDriver::set_current_context(context);
    return 0;
  };
}

}  // namespace tensorcraft::test
