// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/jit/module.hpp"

#include "tensorcraft/core/config.hpp"
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/first_made.hpp"
#include "tensorcraft/core/fork.hpp"
#include "tensorcraft/core/nearest.hpp"
#include "tensorcraft/jit/cache.hpp"
#include "tensorcraft/jit/file_stamp.hpp"
#include "tensorcraft/jit/flights.hpp"
#include "tensorcraft/jit/memory_library.hpp"
#include "tensorcraft/jit/module_build.hpp"
#include "tensorcraft/jit/recently_used.hpp"
#include "tensorcraft/jit/signature.hpp"
#include "tensorcraft/jit/user_code.hpp"
#include "tensorcraft/jit/work_folder.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <list>
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

// A spec's module, and the files that decide it.
struct Remembered {
  std::shared_ptr<const Module> module;
  std::vector<FileStamp> stamps;
};

constexpr size_t kModules = 256;

// Modules by key, and by the text of a spec, which takes no file to be read.
struct Modules {
  ForkSafeMutex mutex;
  Flights<std::string> flights;
  RecentlyUsed<std::string, std::shared_ptr<const Loaded>> loaded{kModules};
  RecentlyUsed<std::string, std::shared_ptr<const Remembered>> remembered{kModules};
  ModuleCounters counters;
  DiskCache disk{config().cache_dir, size_t(config().cache_limit_bytes)};
};
Modules& modules() {
  static constinit FirstMade<Modules> all;
  return *all;
}

// Modules that leave the maps end, and unload libraries, behind the lock.
struct Gone {
  std::list<std::shared_ptr<const Loaded>> loaded;
  std::list<std::shared_ptr<const Remembered>> remembered;
};

std::shared_ptr<const Module> open(const ModuleSpec& spec, const CacheEntry& entry) {
  const auto library = std::make_shared<MemoryLibrary>(file_stem(spec), entry.image, "load_jit");
  std::map<std::string, ExportFunction*> exports;
  for (const auto* wrappers : {&spec.cpp_wrappers, &spec.cuda_wrappers})
    for (const ModuleWrapper& w : *wrappers) {
      void* const found = library->symbol("tensorcraft_export_" + w.name);
      if (!found)
        fail(ErrorKind::compile, "load_jit: ", module_name(spec), " was compiled without ", w.name);
      exports[w.name] = reinterpret_cast<ExportFunction*>(found);
    }
  if (!spec.cuda_files.empty()) library->stay_loaded();
  return std::make_shared<Module>(module_name(spec), std::move(exports), commands_of(entry),
                                  library);
}

std::optional<CacheEntry> from_disk(Modules& all, const std::string& key) {
  auto entry = all.disk.load(key, kModuleArch);
  if (!entry || !is_fresh(*entry)) return std::nullopt;
  const std::lock_guard lock(all.mutex);
  ++all.counters.disk_hits;
  return entry;
}

std::shared_ptr<const Loaded> opened(const ModuleSpec& spec, const CacheEntry& entry) {
  auto loaded = std::make_shared<Loaded>(Loaded{open(spec, entry), entry});
  loaded->entry.image.clear();
  return loaded;
}

std::shared_ptr<const Loaded> load_or_build(Modules& all, const ModuleSpec& spec,
                                            const ModuleTools& tools, const std::string& key) {
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
  auto loaded = opened(spec, entry);  // what does not load is not kept
  all.disk.store(key, entry);
  return loaded;
}

// All of a spec, and the folder that relative paths begin at.
std::string text_of(const ModuleSpec& spec) {
  std::string text;
  const auto add = [&](const std::string& field) {
    text.append(std::to_string(field.size())).append(":").append(field);
  };
  const auto add_all = [&](const std::vector<std::string>& fields) {
    for (const std::string& field : fields) add(field);
    text.append(";");
  };
  for (const auto* fields :
       {&spec.markers, &spec.cpp_files, &spec.cuda_files, &spec.extra_cflags,
        &spec.extra_cuda_cflags, &spec.extra_ldflags, &spec.extra_include_paths})
    add_all(*fields);
  for (const auto* wrappers : {&spec.cpp_wrappers, &spec.cuda_wrappers}) {
    for (const ModuleWrapper& w : *wrappers) add_all({w.name, w.function});
    text.append(";");
  }
  add(spec.build_directory);
  std::error_code ignored;
  add(fs::current_path(ignored).string());
  return text;
}

std::shared_ptr<const Module> recall(Modules& all, const std::string& text) {
  std::shared_ptr<const Remembered> known;
  {
    const std::lock_guard lock(all.mutex);
    if (const auto* const found = all.remembered.find(text)) known = *found;
  }
  if (!known || !std::ranges::all_of(known->stamps, holds)) return nullptr;
  return known->module;
}

void remember(Modules& all, const std::string& text, const ModuleSpec& spec,
              const ModuleTools& tools, const std::string& key, const Loaded& loaded) {
  std::vector<std::string> files = files_of(loaded.entry);
  // Headers of the running library do not count: a process that finds others is wrong anyway.
  std::erase_if(files, [own = tools.headers + "/tensorcraft/"](const std::string& file) {
    return file.starts_with(own);
  });
  for (const auto* own : {&spec.cpp_files, &spec.cuda_files})
    files.insert(files.end(), own->begin(), own->end());
  files.push_back(tools.host.path);
  if (tools.nvcc) files.push_back(tools.nvcc->path);
  std::ranges::sort(files);
  files.erase(std::ranges::unique(files).begin(), files.end());
  Remembered result{.module = loaded.module};
  for (const std::string& file : files) {
    const auto stamp = stamp_of(file);
    if (!stamp) return;
    result.stamps.push_back(*stamp);
  }
  // Stamps of what the module was made of, and of no change since.
  if (module_key(spec, tools) != key || !is_fresh(loaded.entry)) return;
  Gone gone;
  const std::lock_guard lock(all.mutex);
  all.remembered.put(text, std::make_shared<Remembered>(std::move(result)), gone.remembered);
}

// The module of a key, whose files are read to see whether it is fresh.
std::shared_ptr<const Loaded> find_or_load(Modules& all, const ModuleSpec& spec,
                                           const ModuleTools& tools, const std::string& key) {
  const Flights<std::string>::Flight alone(all.flights, key);
  std::shared_ptr<const Loaded> known;
  {
    const std::lock_guard lock(all.mutex);
    if (const auto* const found = all.loaded.find(key)) known = *found;
  }
  if (known && is_fresh(known->entry)) return known;
  known = load_or_build(all, spec, tools, key);
  Gone gone;
  const std::lock_guard lock(all.mutex);
  all.loaded.put(key, known, gone.loaded);
  return known;
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
  run_user_code(name, [&] {
    found->second(&result, found->first.c_str(), arguments.data(), arguments.size());
  });
  return result;
}

std::shared_ptr<const Module> load_module(const ModuleSpec& spec) {
  Modules& all = modules();
  const std::string text = text_of(spec);
  if (auto module = recall(all, text)) return module;
  check(spec);
  const ModuleTools tools = find_tools(spec);
  const std::string key = module_key(spec, tools);
  const auto loaded = find_or_load(all, spec, tools, key);
  remember(all, text, spec, tools, key, *loaded);
  return loaded->module;
}

ModuleCounters module_counters() {
  const std::lock_guard lock(modules().mutex);
  return modules().counters;
}

void set_module_limit(size_t limit) {
  Modules& all = modules();
  Gone gone;
  const std::lock_guard lock(all.mutex);
  all.loaded.set_limit(limit, gone.loaded);
  all.remembered.set_limit(limit, gone.remembered);
}

void clear_modules() {
  Modules& all = modules();
  Gone gone;
  const std::lock_guard lock(all.mutex);
  all.loaded.clear(gone.loaded);
  all.remembered.clear(gone.remembered);
}

}  // namespace tensorcraft::jit
