// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/cuda/driver.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/first_made.hpp"
#include "tensorcraft/core/fork.hpp"
#include "tensorcraft/core/log.hpp"
#include "tensorcraft/cuda/launch_watcher.hpp"
#include "tensorcraft/cuda/session.hpp"

#include <dlfcn.h>
#include <pthread.h>

#include <algorithm>
#include <vector>

namespace tensorcraft::cuda {
namespace {

constexpr std::string_view kNoDriver = "CUDA driver not detected";
constexpr std::string_view kNoDevice = "No GPU devices found (cudaGetDeviceCount == 0)";
// The interface the table's signatures were written to; the driver answers with that one.
constexpr int kInterface = 12000;
constexpr int kFuncLoadInterface = 12040;

std::atomic<Session*> current{nullptr};
std::atomic<bool> in_forked_child{false};
std::atomic<std::string (*)()> text_of_loss{nullptr};

using GetProcAddress = int (*)(const char*, void**, int, uint64_t, int*);

// Fills the table's entries in turn and remembers the first that is missing.
struct Loader {
  GetProcAddress get;
  const char* missing = nullptr;

  template <class... Args>
  bool find(Call<Args...>& call, int interface) {
    void* address = nullptr;
    int found = 0;
    if (get(call.name, &address, interface, 0, &found) != kSuccess) address = nullptr;
    call.function = reinterpret_cast<int (*)(Args...)>(address);
    return address != nullptr;
  }
  template <class... Calls>
  void need(Calls&... calls) {
    ((find(calls, kInterface) || missing ? void() : void(missing = calls.name)), ...);
  }
};

const char* load(Driver& d, GetProcAddress get) {
  Loader loader{get};
  loader.need(d.init, d.driver_get_version, d.get_error_string, d.device_get, d.device_get_count,
              d.device_get_name, d.device_total_mem, d.device_get_attribute);
  loader.need(d.primary_context_retain, d.context_get_current, d.context_set_current,
              d.context_synchronize);
  loader.need(d.stream_create, d.stream_create_with_priority, d.stream_destroy,
              d.stream_synchronize, d.stream_wait_event, d.stream_get_id, d.stream_is_capturing,
              d.event_create, d.event_destroy, d.event_record, d.event_query, d.event_synchronize,
              d.event_elapsed_time);
  loader.need(d.stream_begin_capture, d.stream_end_capture, d.stream_get_capture_info,
              d.thread_exchange_stream_capture_mode, d.graph_instantiate, d.graph_launch,
              d.graph_exec_destroy, d.graph_destroy, d.user_object_create, d.user_object_release,
              d.graph_retain_user_object);
  loader.need(d.device_get_default_mem_pool, d.mem_pool_set_attribute, d.mem_alloc_async,
              d.mem_free_async, d.mem_alloc, d.mem_free, d.mem_get_info, d.mem_host_alloc,
              d.mem_free_host, d.memcpy_async, d.memcpy_peer_async, d.pointer_get_attribute,
              d.memset_async);
  loader.need(d.library_load_data, d.library_unload, d.library_get_kernel, d.kernel_get_function,
              d.function_get_attribute, d.function_set_attribute, d.launch_kernel,
              d.tensor_map_encode_tiled, d.tensor_map_encode_im2col, d.tensor_map_replace_address);
  loader.find(d.function_load, kFuncLoadInterface);
  loader.find(d.profiler_start, kInterface);
  loader.find(d.profiler_stop, kInterface);
  loader.find(d.stream_wait_value, kInterface);
  loader.find(d.stream_write_value, kInterface);
  return loader.missing;
}

// Opens the system's driver into `table`; returns what is wrong, or nothing.
std::string open_driver(Driver& table) {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return join(kNoDriver,
                "\n  libcuda.so.1 cannot be opened; install the NVIDIA driver, or use device "
                "\"cpu\"");
  const auto get = reinterpret_cast<GetProcAddress>(dlsym(library, "cuGetProcAddress_v2"));
  const char* missing = get ? load(table, get) : "cuGetProcAddress_v2";
  if (missing)
    return join("the NVIDIA driver is too old\n  libcuda.so.1 has no ", missing,
                "; install a newer driver, or use device \"cpu\"");
  return {};
}

std::string describe(const Driver& driver, int status) {
  const char* text = nullptr;
  if (driver.get_error_string.function(status, &text) != kSuccess || !text) text = "unknown error";
  return join(text, " (", status, ")");
}

InForkedChild* mark_children() {
  return new InForkedChild([] { in_forked_child.store(true, std::memory_order_relaxed); });
}

// Starts the driver of a new session and counts its devices. Nothing here throws: what fails
// becomes the session's problem, so that a machine without a GPU works.
void start(Session& session, const Driver* driver) {
  static constinit FirstMade<InForkedChild, mark_children> marks;
  *marks;
  int status = driver->init.function(0);
  if (status == kSuccess) status = driver->device_get_count.function(&session.count);
  if (status == kErrorNoDevice || (status == kSuccess && session.count == 0)) {
    session.count = 0;
    session.problem =
        join(kNoDevice, "\n  the driver works but shows no GPU to this process; check ",
             "CUDA_VISIBLE_DEVICES and nvidia-smi, or use device \"cpu\"");
  } else if (status != kSuccess) {
    session.problem =
        join(kNoDriver, "\n  libcuda.so.1 cannot be started: ", describe(*driver, status),
             "; check nvidia-smi and reinstall the driver, or use device \"cpu\"");
    return;
  }
  driver->driver_get_version.function(&session.version);
  session.driver = driver;
  session.devices = std::make_unique<DeviceSlot[]>(size_t(session.count));
}

Session* open_session(const Driver* table) {
  static std::atomic<uint64_t> last{0};
  auto* session = new Session;
  session->number = ++last;
  if (table) {
    start(*session, table);
    return session;
  }
  static constinit FirstMade<Driver> real;
  session->problem = open_driver(*real);
  if (session->problem.empty()) start(*session, &*real);
  return session;
}

// Errors after which the driver refuses all further work of the process.
bool is_sticky(int status) {
  constexpr int codes[] = {214, 220, 226, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 721};
  return std::ranges::find(codes, status) != std::end(codes);
}

ErrorKind kind_of(int status) {
  if (is_sticky(status)) return ErrorKind::device_lost;
  switch (status) {
    case kErrorOutOfMemory:
      return ErrorKind::out_of_memory;
    case kErrorInvalidValue:
    case 101:  // invalid device
      return ErrorKind::value;
    case 36:   // needs a newer driver
    case 217:  // no peer access
    case 801:  // not supported
      return ErrorKind::unsupported;
    case 200:  // invalid image
    case 209:  // no binary for this GPU
    case 218:  // invalid PTX
    case 221:  // no PTX compiler
    case 222:  // PTX newer than the driver
    case 223:  // PTX compilation disabled
      return ErrorKind::compile;
    default:
      return ErrorKind::internal;
  }
}

// The text of an error; the first sticky one becomes the cause that later calls name.
std::string record(std::string_view prefix, int status) {
  Session& now = session();
  std::string text = join(prefix, now.driver ? describe(*now.driver, status)
                                             : join("status ", status, " without a driver"));
  if (!is_sticky(status)) return text;
  bool is_first = false;
  {
    const std::lock_guard lock(now.mutex);
    is_first = !now.lost.load(std::memory_order_relaxed);
    if (is_first) now.first_cause = text;
    now.lost.store(true, std::memory_order_release);
  }
  const auto more = is_first ? text_of_loss.load() : nullptr;
  return text + "; the process cannot use CUDA any more, restart it" + (more ? more() : "");
}

}  // namespace

Session* opened_session() noexcept { return current.load(std::memory_order_acquire); }

Session& session() {
  if (Session* opened = opened_session()) return *opened;
  static constinit FirstMade<ForkSafeMutex> mutex;
  const std::lock_guard lock(*mutex);
  if (!opened_session()) current.store(open_session(nullptr), std::memory_order_release);
  return *opened_session();
}

bool forked() noexcept { return in_forked_child.load(std::memory_order_relaxed); }

void set_driver_for_test(const Driver* table) {
  // The old session stays: events and kernels of an earlier test may still name it.
  static constinit FirstMade<std::vector<Session*>> retired;
  if (Session* old = opened_session()) retired->push_back(old);
  current.store(table ? open_session(table) : nullptr, std::memory_order_release);
  forget_default_device();
}

bool usable() noexcept {
  const Session* now = opened_session();
  return now && now->driver && !now->lost.load(std::memory_order_acquire) && !forked();
}

void require_usable() {
  if (usable()) return;
  const Session& now = session();
  if (forked())
    fail(ErrorKind::device_lost,
         "CUDA cannot be used in a process forked from one that had opened the driver; start "
         "workers with the spawn method, or fork before the first GPU call");
  if (now.lost.load(std::memory_order_acquire))
    fail(ErrorKind::device_lost, "CUDA is unusable since an earlier error: ", now.first_cause,
         "; restart the process");
  if (!now.driver) fail(ErrorKind::unsupported, now.problem);
}

void check(int status, std::string_view call, std::source_location where) {
  if (status == kSuccess) [[likely]]
    return;
  fail_with(join(call, ": "), status, where);
}

void fail_with(std::string_view prefix, int status, std::source_location where) {
  const std::string text = record(prefix, status);
  fail({kind_of(status), where}, text);
}

void report(int status, std::string_view call) noexcept {
  if (status == kSuccess) return;
  try {
    record(join(call, ": "), status);
    log_error(join(call, " failed with ", status, " while freeing a resource"));
  } catch (...) {  // no memory for the text: nothing better can be done while unwinding
  }
}

void on_device_lost(std::string (*text)()) { text_of_loss = text; }

const Driver* driver() { return session().driver; }

const Driver& require_driver() {
  require_usable();
  return *session().driver;
}

std::string driver_problem() { return session().problem; }

uint64_t driver_number() noexcept {
  const Session* const now = opened_session();
  return now ? now->number : 0;
}

int driver_version() { return session().version; }

CUctx_st* primary_context(int device) {
  const Driver& d = require_driver();
  DeviceSlot& slot = device_slot(device);
  if (CUctx_st* known = slot.context.load(std::memory_order_acquire)) return known;
  std::call_once(slot.retained, [&] {
    int ordinal = 0;
    d.device_get(&ordinal, device);
    if (!slot.owned_context) d.primary_context_retain(&slot.owned_context, ordinal);
    // Freed memory stays in the driver's pool: giving it back to the system at each
    // synchronisation would make the next allocation slow.
    CUmemPoolHandle_st* pool = nullptr;
    uint64_t threshold = UINT64_MAX;
    d.device_get_default_mem_pool(&pool, ordinal);
    d.mem_pool_set_attribute(pool, kMemPoolReleaseThreshold, &threshold);
    slot.context.store(slot.owned_context, std::memory_order_release);
  });
  return slot.context;
}

bool has_primary_context(int device) { return device_slot(device).context != nullptr; }

}  // namespace tensorcraft::cuda
