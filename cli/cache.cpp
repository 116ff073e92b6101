// SPDX-License-Identifier: Apache-2.0
#include "cli/command.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/jit/kernel_cache.hpp"

#include <memory>

namespace tensorcraft::cli {
namespace {

Json to_json(const jit::CacheItem& item) {
  return {{"key", item.key},
          {"signature", item.signature},
          {"arch", item.arch},
          {"bytes", item.bytes},
          {"created", item.created},
          {"used", item.used},
          {"compile_ms", item.compile_ms}};
}

int list(Console& console) {
  Json all = Json::array();
  std::vector<std::vector<std::string>> table{{"used", "size", "compiled in", "kernel"}};
  for (const jit::CacheItem& item : jit::cache_list()) {
    all.push_back(to_json(item));
    table.push_back({readable_time(item.used), readable_bytes(double(item.bytes)),
                     readable_number(item.compile_ms) + " ms", item.signature});
  }
  if (console.json)
    console.print_json(Json{{"kernels", all}});
  else
    console.print_table(table);
  return kDone;
}

int stat(Console& console) {
  const jit::CacheStat s = jit::cache_stat();
  if (console.json) {
    console.print_json(Json{{"folder", s.folder},
                            {"problem", s.problem},
                            {"entries", s.entries},
                            {"bytes", s.bytes},
                            {"limit_bytes", s.limit_bytes},
                            {"temporary_files", s.temporary_files}});
  } else {
    console.print_table({{"folder", s.folder.empty() ? "none" : s.folder},
                         {"kernels", std::to_string(s.entries)},
                         {"size", readable_bytes(double(s.bytes)) + " of at most " +
                                      readable_bytes(double(s.limit_bytes))},
                         {"temporary files", std::to_string(s.temporary_files)}});
    if (!s.problem.empty()) console.print(console.colored(Color::red, "not used: ") + s.problem);
  }
  return s.problem.empty() ? kDone : kCheckFailed;
}

int verify(Console& console) {
  const std::string problem = jit::cache_stat().problem;
  if (!problem.empty()) fail(ErrorKind::io, problem);
  const jit::CacheCheck check = jit::cache_verify();
  if (console.json) {
    console.print_json(Json{{"good", check.good}, {"removed", check.removed}});
  } else {
    console.print(counted(check.good, "kernel") + (check.good == 1 ? " is good" : " are good"));
    for (const std::string& file : check.removed)
      console.print(console.colored(Color::red, "removed ") + file +
                    ": it was damaged or foreign, and is compiled anew when needed");
  }
  return check.removed.empty() ? kDone : kCheckFailed;
}

int clear(Console& console) {
  const std::string problem = jit::cache_stat().problem;
  if (!problem.empty()) fail(ErrorKind::io, problem);
  const size_t removed = jit::cache_clear();
  if (console.json)
    console.print_json(Json{{"removed", removed}});
  else
    console.print("removed " + counted(removed, "kernel"));
  return kDone;
}

struct Bundle {
  std::string file, arch, record;
};

int export_to(Console& console, const Bundle& b) {
  const jit::CacheFilter recorded = b.record.empty() ? nullptr : jit::recorded_in(b.record);
  const size_t kernels = jit::export_bundle(b.file, [&](const jit::CacheItem& item) {
    return (b.arch.empty() || item.arch == b.arch) && (!recorded || recorded(item));
  });
  if (console.json)
    console.print_json(Json{{"file", b.file}, {"exported", kernels}});
  else
    console.print("wrote " + counted(kernels, "kernel") + " to " + b.file);
  return kDone;
}

int import_from(Console& console, const Bundle& b) {
  const jit::BundleImport result = jit::import_bundle(b.file);
  if (console.json)
    console.print_json(
        Json{{"imported", result.imported}, {"already_there", result.already_there}});
  else
    console.print("imported " + counted(result.imported, "kernel") + ", " +
                  std::to_string(result.already_there) + " there already");
  return kDone;
}

}  // namespace

Command cache_command() {
  const auto bundle = std::make_shared<Bundle>();
  const Option file{"file", "the bundle", &bundle->file, true, true};
  const Option arch{"--arch", "only kernels of this one, such as sm_90a", &bundle->arch};
  const Option record{"--recorded", "only kernels of the file that the setting kernel_record names",
                      &bundle->record, false, true};
  return {.name = "cache",
          .help = "the folder of compiled kernels",
          .options = {},
          .run = nullptr,
          .examples = {"cache stat", "cache export sm_90a.bundle --arch sm_90a"},
          .commands = {{"ls", "every kernel, the one used last first", {}, list},
                       {"stat", "folder, number of kernels, size and limit", {}, stat},
                       {"verify", "check every kernel; bad ones are removed", {}, verify},
                       {"clear", "remove every kernel", {}, clear},
                       {"export",
                        "write the kernels into one file for machines without NVRTC",
                        {file, arch, record},
                        [bundle](Console& console) { return export_to(console, *bundle); }},
                       {"import",
                        "add the kernels of such a file; it is code, so trust its maker",
                        {file},
                        [bundle](Console& console) { return import_from(console, *bundle); }}}};
}

}  // namespace tensorcraft::cli
