// SPDX-License-Identifier: Apache-2.0
#include "cache.hpp"

#include "arguments.hpp"
#include "gil.hpp"
#include "tensorcraft/jit/kernel_cache.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <string_view>

namespace tensorcraft::python {

namespace nb = nanobind;
using namespace nb::literals;

namespace {

nb::dict to_dict(const jit::CacheItem& item) {
  nb::dict d;
  d["key"] = item.key;
  d["signature"] = item.signature;
  d["arch"] = item.arch;
  d["bytes"] = item.bytes;
  d["created"] = item.created;
  d["used"] = item.used;
  d["compile_ms"] = item.compile_ms;
  return d;
}

nb::dict stat() {
  const jit::CacheStat s = jit::cache_stat();
  nb::dict d;
  d["folder"] = from_text(s.folder);
  d["problem"] = from_text(s.problem);
  d["entries"] = s.entries;
  d["bytes"] = s.bytes;
  d["limit_bytes"] = s.limit_bytes;
  d["temporary_files"] = s.temporary_files;
  return d;
}

nb::list list() {
  std::vector<jit::CacheItem> items;
  {
    const WithoutGil released;
    items = jit::cache_list();
  }
  nb::list all;
  for (const jit::CacheItem& item : items) all.append(to_dict(item));
  return all;
}

nb::tuple verify() {
  jit::CacheCheck check;
  {
    const WithoutGil released;
    check = jit::cache_verify();
  }
  return nb::make_tuple(check.good, check.removed);
}

size_t export_bundle(nb::handle file, nb::handle wanted, nb::handle record) {
  const std::string path = to_path(file);
  const std::string arch(wanted.is_none() ? std::string_view() : to_text(wanted, "arch"));
  const jit::CacheFilter recorded = record.is_none() ? nullptr : jit::recorded_in(to_path(record));
  const WithoutGil released;
  return jit::export_bundle(path, [&](const jit::CacheItem& item) {
    return (arch.empty() || item.arch == arch) && (!recorded || recorded(item));
  });
}

nb::tuple import_bundle(nb::handle file) {
  const std::string path = to_path(file);
  jit::BundleImport result;
  {
    const WithoutGil released;
    result = jit::import_bundle(path);
  }
  return nb::make_tuple(result.imported, result.already_there);
}

}  // namespace

void register_cache(nb::module_& m) {
  m.def("cache_stat", &stat, "What tc.cache.stat calls.");
  m.def("cache_list", &list, "What tc.cache.list calls.");
  m.def("cache_verify", &verify, "What tc.cache.verify calls.");
  m.def("cache_clear", &jit::cache_clear, "What tc.cache.clear calls.");
  m.def("cache_export", &export_bundle, "path"_a.none(), "arch"_a.none(), "recorded"_a.none(),
        "What tc.cache.export calls.");
  m.def("cache_import", &import_bundle, "path"_a.none(), "What tc.cache.import_ calls.");
}

}  // namespace tensorcraft::python
