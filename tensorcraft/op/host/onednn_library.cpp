// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/host/onednn_library.hpp"

#ifdef TENSORCRAFT_ONEDNN
#include "tensorcraft/core/config.hpp"
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/first_made.hpp"
#include "tensorcraft/core/fork.hpp"
#include "tensorcraft/core/prefixes.hpp"
#include "tensorcraft/core/with_stack.hpp"

#include <atomic>
#include <filesystem>
#include <memory>
#include <mutex>
#include <vector>

#include <dlfcn.h>

namespace tensorcraft::host::onednn {
namespace {

constexpr const char* kName = "libdnnl.so.3";

// The configured file alone if there is one. Else beside this library, then PREFIX/lib of the
// Python installation, then the loader's own search.
std::vector<std::string> candidates() {
  if (!config().onednn.empty()) return {config().onednn};
  std::vector<std::string> paths{own_folder() / kName};
  for (const auto& prefix : prefixes()) paths.push_back(prefix / "lib" / kName);
  paths.push_back(kName);
  return paths;
}

void* open_library(std::string& reason) {
  for (const std::string& path : candidates()) {
    if (path != kName && path != config().onednn && !std::filesystem::exists(path)) continue;
    if (void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return handle;
    reason = join("oneDNN 3 could not be opened: ", dlerror(),
                  "; install it (the Python package onednn-cpu-gomp carries it) or put ", kName,
                  " where the loader finds it");
  }
  return nullptr;
}

template <class F>
void resolve(void* handle, const char* name, F& function) {
  function = reinterpret_cast<F>(dlsym(handle, name));
}

// The name of the first function that is missing; null if all are there.
const char* resolve_all(void* handle, Library& lib) {
#define TC_RESOLVE(name)                    \
  resolve(handle, "dnnl_" #name, lib.name); \
  if (!lib.name) return "dnnl_" #name;
  TC_ONEDNN_FUNCTIONS(TC_RESOLVE)
#undef TC_RESOLVE
  resolve(handle, "omp_set_num_threads", lib.omp_set_num_threads);
  resolve(handle, "omp_get_max_threads", lib.omp_get_max_threads);
  return nullptr;
}

void load(Library& lib) {
  if (config().onednn == "off") {
    lib.unavailable_reason = "oneDNN is switched off by the configuration key onednn";
    return;
  }
  void* handle = open_library(lib.unavailable_reason);
  if (!handle) return;
  lib.unavailable_reason.clear();
  if (const char* missing = resolve_all(handle, lib)) {
    lib.unavailable_reason =
        join("oneDNN was opened but has no function ", missing, "; version 3 is needed");
    return;
  }
  const dnnl_version_t* v = lib.version();
  lib.version_text = join(v->major, ".", v->minor, ".", v->patch);
  if (v->major != DNNL_VERSION_MAJOR)
    lib.unavailable_reason = join("oneDNN ", lib.version_text, " was opened; version 3 is needed");
  else if (lib.engine_create(&lib.engine, dnnl_cpu, 0) != dnnl_success)
    lib.unavailable_reason = "oneDNN could not create its engine for the CPU";
}

}  // namespace

// Leaked on purpose: primitives of any thread may outlive every static object.
const Library& library() {
  static std::atomic<const Library*> opened = nullptr;
  if (const Library* const known = opened.load(std::memory_order_acquire)) return *known;
  static constinit FirstMade<ForkSafeMutex> opening;
  const std::lock_guard lock(*opening);
  if (const Library* const known = opened.load(std::memory_order_relaxed)) return *known;
  auto made = std::make_unique<Library>();
  run_with_stack("oneDNN", kAmpleStack, [&] { load(*made); });
  opened.store(made.get(), std::memory_order_release);
  return *made.release();
}

std::shared_lock<std::shared_mutex> making_primitives() {
  static constinit FirstMade<ForkSafe<std::shared_mutex>> mutex;
  return std::shared_lock<std::shared_mutex>(*mutex);
}

}  // namespace tensorcraft::host::onednn
#endif
