// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <source_location>
#include <string>
#include <string_view>
#include <type_traits>

struct CUctx_st;
struct CUevent_st;
struct CUfunc_st;
struct CUgraph_st;
struct CUgraphExec_st;
struct CUgraphNode_st;
struct CUkern_st;
struct CUlib_st;
struct CUmemPoolHandle_st;
struct CUstream_st;
struct CUuserObject_st;

// The CUDA driver, opened at run time. Only folder cuda/ calls it. Types and numbers below are the
// driver's binary interface, declared here so that no toolkit header is needed.
namespace tensorcraft::cuda {

inline constexpr int kSuccess = 0;
inline constexpr int kErrorInvalidValue = 1;
inline constexpr int kErrorOutOfMemory = 2;
inline constexpr int kErrorNoDevice = 100;
inline constexpr int kErrorNotReady = 600;
inline constexpr int kErrorStreamCaptureImplicit = 906;

using DevicePointer = uint64_t;

enum DeviceAttribute : int {
  kClockKhz = 13,
  kMultiprocessorCount = 16,
  kMemoryClockKhz = 36,
  kMemoryBusBits = 37,
  kL2Bytes = 38,
  kThreadsPerMultiprocessor = 39,
  kComputeMajor = 75,
  kComputeMinor = 76,
  kSharedBytesPerMultiprocessor = 81,
  kRegistersPerMultiprocessor = 82,
  kSharedBytesPerBlockOptIn = 97,
};
enum FunctionAttribute : int {
  kFunctionMaxThreads = 0,
  kFunctionSharedBytes = 1,
  kFunctionLocalBytes = 3,
  kFunctionRegisters = 4,
  kFunctionMaxDynamicSharedBytes = 8,
};
enum LaunchAttributeId : int { kClusterDimension = 4, kProgrammaticStreamSerialization = 6 };

struct LaunchAttribute {
  int id = 0;
  char padding[4] = {};
  union {
    char bytes[64] = {};
    struct {
      uint32_t x, y, z;
    } cluster;
    int enabled;
  };
};
struct LaunchSetup {
  uint32_t grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes;
  CUstream_st* stream;
  LaunchAttribute* attributes;
  uint32_t num_attributes;
};

inline constexpr int kPointerDevicePointer = 3;
inline constexpr int kMemPoolReleaseThreshold = 4;
inline constexpr uint32_t kHostMemoryPortable = 1;
inline constexpr uint32_t kStreamNonBlocking = 1;
inline constexpr uint32_t kEventDisableTiming = 2;
inline constexpr int kCaptureThreadLocal = 1;
inline constexpr int kPointerMemoryType = 2;
inline constexpr int kJitErrorLogBuffer = 5, kJitErrorLogBytes = 6;

// Throws DeviceLost once a sticky error was seen, or in a child forked after the driver was opened.
void require_usable();
bool usable() noexcept;
// Throws for a status other than kSuccess: "cuMemAllocAsync: out of memory (2)", kind by status.
void check(int status, std::string_view call,
           std::source_location where = std::source_location::current());
// Likewise with a text of the caller's before the driver's.
[[noreturn]] void fail_with(std::string_view prefix, int status, std::source_location where);
// For destructors: records a sticky error, logs, never throws.
void report(int status, std::string_view call) noexcept;

// One entry point of the driver: its name and, once loaded, its address.
template <class... Args>
struct Call {
  const char* name;
  int (*function)(Args...) = nullptr;

  // Throws if the driver refuses.
  void operator()(std::type_identity_t<Args>... args) const { check(status(args...), name); }
  // The driver's answer, for calls with more than one good one.
  int status(std::type_identity_t<Args>... args) const {
    require_usable();
    return function(args...);
  }
  // For destructors: does nothing when the device is lost. A refusal may pass, and the resource
  // cannot be freed later, so the driver is asked twice.
  void quiet(std::type_identity_t<Args>... args) const noexcept {
    for (int attempt = 0; attempt < 2 && usable(); ++attempt) {
      const int status = function(args...);
      if (status == kSuccess) return;
      report(status, name);
    }
  }
};

// Every driver call the library makes.
struct Driver {
  Call<uint32_t> init{"cuInit"};
  Call<int*> driver_get_version{"cuDriverGetVersion"};
  Call<int, const char**> get_error_string{"cuGetErrorString"};
  Call<int*, int> device_get{"cuDeviceGet"};
  Call<int*> device_get_count{"cuDeviceGetCount"};
  Call<char*, int, int> device_get_name{"cuDeviceGetName"};
  Call<size_t*, int> device_total_mem{"cuDeviceTotalMem"};
  Call<int*, int, int> device_get_attribute{"cuDeviceGetAttribute"};
  Call<CUctx_st**, int> primary_context_retain{"cuDevicePrimaryCtxRetain"};
  Call<CUctx_st**> context_get_current{"cuCtxGetCurrent"};
  Call<CUctx_st*> context_set_current{"cuCtxSetCurrent"};
  Call<> context_synchronize{"cuCtxSynchronize"};
  Call<CUstream_st**, uint32_t> stream_create{"cuStreamCreate"};
  Call<CUstream_st**, uint32_t, int> stream_create_with_priority{"cuStreamCreateWithPriority"};
  Call<CUstream_st*> stream_destroy{"cuStreamDestroy"};
  Call<CUstream_st*> stream_synchronize{"cuStreamSynchronize"};
  Call<CUstream_st*, CUevent_st*, uint32_t> stream_wait_event{"cuStreamWaitEvent"};
  // Null where the driver lacks them.
  Call<CUstream_st*, DevicePointer, uint32_t, uint32_t> stream_wait_value{"cuStreamWaitValue32"};
  Call<CUstream_st*, DevicePointer, uint32_t, uint32_t> stream_write_value{"cuStreamWriteValue32"};
  Call<CUstream_st*, uint64_t*> stream_get_id{"cuStreamGetId"};
  Call<CUstream_st*, int*> stream_is_capturing{"cuStreamIsCapturing"};
  Call<CUstream_st*, int> stream_begin_capture{"cuStreamBeginCapture"};
  Call<CUstream_st*, CUgraph_st**> stream_end_capture{"cuStreamEndCapture"};
  Call<CUstream_st*, int*, uint64_t*, CUgraph_st**, const CUgraphNode_st* const**, size_t*>
      stream_get_capture_info{"cuStreamGetCaptureInfo"};
  Call<int*> thread_exchange_stream_capture_mode{"cuThreadExchangeStreamCaptureMode"};
  Call<CUgraphExec_st**, CUgraph_st*, uint64_t> graph_instantiate{"cuGraphInstantiateWithFlags"};
  Call<CUgraphExec_st*, CUstream_st*> graph_launch{"cuGraphLaunch"};
  Call<CUgraphExec_st*> graph_exec_destroy{"cuGraphExecDestroy"};
  Call<CUgraph_st*> graph_destroy{"cuGraphDestroy"};
  Call<CUuserObject_st**, void*, void (*)(void*), uint32_t, uint32_t> user_object_create{
      "cuUserObjectCreate"};
  Call<CUuserObject_st*, uint32_t> user_object_release{"cuUserObjectRelease"};
  Call<CUgraph_st*, CUuserObject_st*, uint32_t, uint32_t> graph_retain_user_object{
      "cuGraphRetainUserObject"};
  Call<CUevent_st**, uint32_t> event_create{"cuEventCreate"};
  Call<CUevent_st*> event_destroy{"cuEventDestroy"};
  Call<CUevent_st*, CUstream_st*> event_record{"cuEventRecord"};
  Call<CUevent_st*> event_query{"cuEventQuery"};
  Call<CUevent_st*> event_synchronize{"cuEventSynchronize"};
  Call<float*, CUevent_st*, CUevent_st*> event_elapsed_time{"cuEventElapsedTime"};
  Call<CUmemPoolHandle_st**, int> device_get_default_mem_pool{"cuDeviceGetDefaultMemPool"};
  Call<CUmemPoolHandle_st*, int, void*> mem_pool_set_attribute{"cuMemPoolSetAttribute"};
  Call<DevicePointer*, size_t, CUstream_st*> mem_alloc_async{"cuMemAllocAsync"};
  Call<DevicePointer, CUstream_st*> mem_free_async{"cuMemFreeAsync"};
  Call<DevicePointer*, size_t> mem_alloc{"cuMemAlloc"};
  Call<DevicePointer> mem_free{"cuMemFree"};
  Call<size_t*, size_t*> mem_get_info{"cuMemGetInfo"};  // null in tables of tests without it
  Call<void**, size_t, uint32_t> mem_host_alloc{"cuMemHostAlloc"};
  Call<void*> mem_free_host{"cuMemFreeHost"};
  Call<void*, int, DevicePointer> pointer_get_attribute{"cuPointerGetAttribute"};
  Call<DevicePointer, DevicePointer, size_t, CUstream_st*> memcpy_async{"cuMemcpyAsync"};
  Call<DevicePointer, CUctx_st*, DevicePointer, CUctx_st*, size_t, CUstream_st*> memcpy_peer_async{
      "cuMemcpyPeerAsync"};
  Call<DevicePointer, unsigned char, size_t, CUstream_st*> memset_async{"cuMemsetD8Async"};
  Call<CUlib_st**, const void*, int*, void**, uint32_t, int*, void**, uint32_t> library_load_data{
      "cuLibraryLoadData"};
  Call<CUlib_st*> library_unload{"cuLibraryUnload"};
  Call<CUkern_st**, CUlib_st*, const char*> library_get_kernel{"cuLibraryGetKernel"};
  Call<CUfunc_st**, CUkern_st*> kernel_get_function{"cuKernelGetFunction"};
  Call<int*, int, CUfunc_st*> function_get_attribute{"cuFuncGetAttribute"};
  Call<CUfunc_st*, int, int> function_set_attribute{"cuFuncSetAttribute"};
  // Null where the driver lacks them.
  Call<> profiler_start{"cuProfilerStart"}, profiler_stop{"cuProfilerStop"};
  Call<CUfunc_st*> function_load{"cuFuncLoad"};  // null in drivers before it existed
  Call<const LaunchSetup*, CUfunc_st*, void**, void**> launch_kernel{"cuLaunchKernelEx"};
  Call<void*, int, uint32_t, void*, const uint64_t*, const uint64_t*, const uint32_t*,
       const uint32_t*, int, int, int, int>
      tensor_map_encode_tiled{"cuTensorMapEncodeTiled"};
  Call<void*, int, uint32_t, void*, const uint64_t*, const uint64_t*, const int*, const int*,
       uint32_t, uint32_t, const uint32_t*, int, int, int, int>
      tensor_map_encode_im2col{"cuTensorMapEncodeIm2col"};
  Call<void*, void*> tensor_map_replace_address{"cuTensorMapReplaceAddress"};
};

// The loaded and initialised driver, or null; the first call opens it.
const Driver* driver();
// The driver, or kind unsupported with driver_problem().
const Driver& require_driver();
// Why there is no usable driver or no GPU, its first line one of the exact messages; else empty.
std::string driver_problem();
// Numbers the driver that is open, as a test may put another one in its place; 0 before one is.
uint64_t driver_number() noexcept;
// As the driver reports it: 13000 for 13.0; 0 without a driver.
int driver_version();
// The primary context of a device, retained on first use and kept for the life of the process.
CUctx_st* primary_context(int device);
bool has_primary_context(int device);

// Replaces the driver, and everything known from the old one, by a table of functions; null puts
// the real one back. Not safe beside other CUDA work.
void set_driver_for_test(const Driver* table);

}  // namespace tensorcraft::cuda
