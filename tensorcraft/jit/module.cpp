// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/jit/module.hpp"

#include "tensorcraft/core/config.hpp"
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/nearest.hpp"
#include "tensorcraft/jit/cache.hpp"
#include "tensorcraft/jit/memory_library.hpp"
#include "tensorcraft/jit/module_build.hpp"
#include "tensorcraft/jit/signature.hpp"
#include "tensorcraft/jit/work_folder.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <mutex>
#include <optional>
#include <utility>

namespace tensorcraft::jit {
namespace {

namespace fs = std::filesystem;

void check_wrappers(const ModuleSpec& spec, const std::vector<ModuleWrapper>& wrappers,
                    const std::vector<std::string>& files, const char* which) {
  for (const ModuleWrapper& w : wrappers) {
    if (!is_identifier(w.name) || is_keyword(w.name))
      fail(ErrorKind::value, "load_jit: '", w.name,
           "' is no name of an export; use letters, digits and _");
    if (w.function.find_first_not_of(" \t") == w.function.npos ||
        w.function.find_first_of("\n\r;#") != w.function.npos)
      fail(ErrorKind::value, "load_jit: ", w.name, ": '", w.function,
           "' is no function; write it as C++ does, \"MyKernel<256>::run\"");
    size_t count = 0;
    for (const auto* all : {&spec.cpp_wrappers, &spec.cuda_wrappers})
      count += size_t(std::ranges::count(*all, w.name, &ModuleWrapper::name));
    if (count > 1) fail(ErrorKind::value, "load_jit: ", w.name, " is exported twice");
  }
  if (!wrappers.empty() && files.empty())
    fail(ErrorKind::value, "load_jit: ", which, "_wrappers are given and no ", which, "_files");
}

void check_files(const std::vector<std::string>& files) {
  for (const std::string& file : files) {
    std::error_code ignored;
    if (!fs::is_regular_file(file, ignored))
      fail(ErrorKind::not_found, "load_jit: there is no file \"", file, '"');
    if (file.find_first_of("\"\n\\") != file.npos)
      fail(ErrorKind::value,
           "load_jit: the name of a file has a quote, a backslash or a line end: ", file);
  }
}

void check(const ModuleSpec& spec) {
  if (spec.markers.empty())
    fail(ErrorKind::value, "load_jit: a module needs a name: load_jit(\"my_kernel\", ...)");
  check_files(spec.cpp_files);
  check_files(spec.cuda_files);
  check_wrappers(spec, spec.cpp_wrappers, spec.cpp_files, "cpp");
  check_wrappers(spec, spec.cuda_wrappers, spec.cuda_files, "cuda");
  if (spec.cpp_wrappers.empty() && spec.cuda_wrappers.empty())
    fail(ErrorKind::value, "load_jit: ", module_name(spec),
         " exports nothing; give cpp_wrappers or cuda_wrappers, pairs of a name and a function");
}

struct Loaded {
  std::shared_ptr<const Module> module;
  CacheEntry entry;  // without the image
};

// Modules by key; while one is made, equal calls wait for it.
struct Modules {
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<std::mutex>> flights;
  std::map<std::string, Loaded> loaded;
  ModuleCounters counters;
  DiskCache disk{config().cache_dir, size_t(config().cache_limit_bytes)};
};
Modules& modules() {
  static auto* const all = new Modules;  // leaked: modules may be called until the process ends
  return *all;
}

std::shared_ptr<const Module> open(const ModuleSpec& spec, const CacheEntry& entry) {
  MemoryLibrary library(file_stem(spec), entry.image, "load_jit");
  std::map<std::string, ExportFunction*> exports;
  for (const auto* wrappers : {&spec.cpp_wrappers, &spec.cuda_wrappers})
    for (const ModuleWrapper& w : *wrappers) {
      void* const found = library.symbol("tensorcraft_export_" + w.name);
      if (!found) {
        library.close();
        fail(ErrorKind::compile, "load_jit: ", module_name(spec), " was compiled without ", w.name);
      }
      exports[w.name] = reinterpret_cast<ExportFunction*>(found);
    }
  return std::make_shared<Module>(module_name(spec), std::move(exports), commands_of(entry));
}

std::optional<CacheEntry> from_disk(Modules& all, const std::string& key) {
  auto entry = all.disk.load(key, kModuleArch);
  if (!entry || !is_fresh(*entry)) return std::nullopt;
  const std::lock_guard lock(all.mutex);
  ++all.counters.disk_hits;
  return entry;
}

Loaded opened(const ModuleSpec& spec, const CacheEntry& entry) {
  Loaded loaded{open(spec, entry), entry};
  loaded.entry.image.clear();
  return loaded;
}

Loaded load_or_build(Modules& all, const ModuleSpec& spec, const ModuleTools& tools,
                     const std::string& key) {
  constexpr auto kPatience = std::chrono::minutes(10);
  const auto kept = [&](const CacheEntry& entry) {
    if (!spec.build_directory.empty())
      WorkFolder("load_jit", spec.build_directory).write(file_stem(spec) + ".so", entry.image);
    return opened(spec, entry);
  };
  if (const auto entry = from_disk(all, key)) return kept(*entry);
  const auto held = all.disk.lock(key, kPatience);
  if (const auto entry = from_disk(all, key)) return kept(*entry);
  const CacheEntry entry = build(spec, tools, key);
  {
    const std::lock_guard lock(all.mutex);
    ++all.counters.compiles;
  }
  Loaded loaded = opened(spec, entry);  // what does not load is not kept
  all.disk.store(key, entry);
  return loaded;
}

}  // namespace

std::string module_name(const ModuleSpec& spec) {
  std::string name = "tensorcraft_jit";
  for (const std::string& marker : spec.markers) name.append("_").append(marker);
  return name;
}

std::string wrapper_text(std::span<const std::string> files,
                         std::span<const ModuleWrapper> wrappers) {
  std::string text = "#include \"tensorcraft/jit/export.hpp\"\n";
  for (const std::string& file : files)
    text += join("#include \"", fs::absolute(file).lexically_normal().string(), "\"\n");
  for (const ModuleWrapper& w : wrappers)
    text += join("TC_EXPORT(", w.name, ", ", w.function, ");\n");
  return text;
}

std::vector<std::string> Module::exports() const {
  std::vector<std::string> names;
  names.reserve(exports_.size());
  for (const auto& [name, function] : exports_) names.push_back(name);
  return names;
}

ExportValue Module::call(const std::string& name, std::span<const ExportValue> arguments) const {
  const auto found = exports_.find(name);
  if (found == exports_.end()) {
    const std::vector<std::string> names = exports();
    const std::vector<std::string_view> known(names.begin(), names.end());
    fail(ErrorKind::key, name_, " exports no ", name, did_you_mean(name, known));
  }
  ExportValue result;
  found->second(&result, found->first.c_str(), arguments.data(), arguments.size());
  return result;
}

std::shared_ptr<const Module> load_module(const ModuleSpec& spec) {
  check(spec);
  const ModuleTools tools = find_tools(spec);
  const std::string key = module_key(spec, tools);
  Modules& all = modules();
  std::shared_ptr<std::mutex> flight;
  {
    const std::lock_guard lock(all.mutex);
    auto& known = all.flights[key];
    if (!known) known = std::make_shared<std::mutex>();
    flight = known;
  }
  const std::lock_guard alone(*flight);
  {
    const std::lock_guard lock(all.mutex);
    if (const auto found = all.loaded.find(key);
        found != all.loaded.end() && is_fresh(found->second.entry))
      return found->second.module;
  }
  Loaded loaded = load_or_build(all, spec, tools, key);
  const std::lock_guard lock(all.mutex);
  return (all.loaded[key] = std::move(loaded)).module;
}

ModuleCounters module_counters() {
  const std::lock_guard lock(modules().mutex);
  return modules().counters;
}

void clear_modules() {
  const std::lock_guard lock(modules().mutex);
  modules().loaded.clear();
}

}  // namespace tensorcraft::jit
