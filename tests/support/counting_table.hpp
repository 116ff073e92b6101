// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/cuda/driver.hpp"
#include "tests/support/fault_point.hpp"

#include <atomic>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

namespace tensorcraft::test {

// The table of the driver there is, real or fake, with a counter before each entry, installed while
// the object lives. A call that is to fail answers before the driver is asked, so a real device
// stays healthy.
class CountingTable {
 public:
  CountingTable() : inner_(cuda::require_driver()), table_(inner_) {
    current() = this;
    using D = cuda::Driver;
    wrap<&D::init, &D::driver_get_version, &D::device_get, &D::device_get_count,
         &D::device_get_name, &D::device_total_mem, &D::device_get_attribute,
         &D::primary_context_retain, &D::context_get_current, &D::context_set_current,
         &D::context_synchronize, &D::profiler_start, &D::profiler_stop>();
    wrap<&D::stream_create, &D::stream_create_with_priority, &D::stream_destroy,
         &D::stream_synchronize, &D::stream_wait_event, &D::stream_wait_value,
         &D::stream_write_value, &D::stream_get_id, &D::stream_is_capturing, &D::event_create,
         &D::event_destroy, &D::event_record, &D::event_query, &D::event_synchronize,
         &D::event_elapsed_time>();
    wrap<&D::device_get_default_mem_pool, &D::mem_pool_set_attribute, &D::mem_alloc_async,
         &D::mem_free_async, &D::mem_alloc, &D::mem_free, &D::mem_get_info, &D::mem_host_alloc,
         &D::mem_free_host, &D::memcpy_async, &D::memcpy_peer_async, &D::pointer_get_attribute,
         &D::memset_async>();
    wrap<&D::library_load_data, &D::library_unload, &D::library_get_kernel, &D::kernel_get_function,
         &D::function_get_attribute, &D::function_set_attribute, &D::function_load,
         &D::launch_kernel, &D::tensor_map_encode_tiled, &D::tensor_map_encode_im2col,
         &D::tensor_map_replace_address>();
    cuda::set_driver_for_test(&table_);
  }
  ~CountingTable() { cuda::set_driver_for_test(&inner_); }
  CountingTable(const CountingTable&) = delete;
  CountingTable& operator=(const CountingTable&) = delete;

  FaultPoint faults;
  std::atomic<int> retained_contexts = 0;
  // Objects that were made and not given back.
  int alive() {
    return count("cuStreamCreate") + count("cuStreamCreateWithPriority") -
           count("cuStreamDestroy") + count("cuEventCreate") - count("cuEventDestroy") +
           count("cuLibraryLoadData") - count("cuLibraryUnload") + count("cuMemAllocAsync") -
           count("cuMemFreeAsync") + count("cuMemHostAlloc") - count("cuMemFreeHost");
  }
  // How often the driver did what a call of this name asked.
  int count(std::string_view name) {
    const std::lock_guard lock(mutex_);
    return done_[name];
  }
  std::string damage() const { return {}; }  // what a real driver does not tell

 private:
  static CountingTable*& current() {
    static CountingTable* table = nullptr;
    return table;
  }

  template <auto kMember, class... Args>
  static int counted(Args... args) {
    CountingTable& self = *current();
    if (const int status = self.faults.next()) return status;
    const auto& call = self.inner_.*kMember;
    const int status = call.function(args...);
    if (status == cuda::kSuccess) self.note(call.name);
    return status;
  }
  template <auto kMember, class... Args>
  static void replace(cuda::Call<Args...>& call) {
    if (call.function) call.function = &counted<kMember, Args...>;
  }
  template <auto... kMembers>
  void wrap() {
    (replace<kMembers>(table_.*kMembers), ...);
  }

  void note(std::string_view name) {
    const std::lock_guard lock(mutex_);
    ++done_[name];
    if (name == "cuDevicePrimaryCtxRetain") ++retained_contexts;
  }

  const cuda::Driver& inner_;
  cuda::Driver table_;
  std::mutex mutex_;
  std::map<std::string_view, int> done_;
};

}  // namespace tensorcraft::test
