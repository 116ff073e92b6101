// SPDX-License-Identifier: Apache-2.0
#include "jit_module.hpp"

#include "arguments.hpp"
#include "arrays.hpp"
#include "gil.hpp"
#include "graph.hpp"
#include "stream.hpp"
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/jit/module.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tensorcraft::python {
namespace {

using namespace nb::literals;

struct PyModule {
  std::shared_ptr<const jit::Module> module;
};

// None is an empty list, and a text is no list of texts.
std::vector<nb::object> to_list(nb::handle values, const char* name) {
  std::vector<nb::object> all;
  if (values.is_none()) return all;
  if (!is_list(values))
    fail(ErrorKind::type, "load_jit: ", name, " must be a list, got ", class_name(values));
  for (nb::handle value : values) all.push_back(nb::borrow(value));
  return all;
}

std::vector<std::string> to_texts(nb::handle values, const char* name) {
  std::vector<std::string> texts;
  for (const nb::object& value : to_list(values, name))
    texts.emplace_back(to_text(value, std::string("load_jit: ") + name));
  return texts;
}

std::vector<std::string> to_paths(nb::handle values, const char* name) {
  std::vector<std::string> paths;
  for (const nb::object& value : to_list(values, name)) paths.push_back(to_path(value));
  return paths;
}

std::vector<jit::ModuleWrapper> to_wrappers(nb::handle values, const char* name) {
  std::vector<jit::ModuleWrapper> wrappers;
  for (const nb::object& value : to_list(values, name)) {
    if (!is_list(value) || nb::len(value) != 2)
      fail(ErrorKind::type, "load_jit: ", name,
           " must be pairs of a name and a function of C++, got ", class_name(value));
    const std::string what = std::string("load_jit: ") + name;
    wrappers.push_back({std::string(to_text(nb::object(value[0]), what)),
                        std::string(to_text(nb::object(value[1]), what))});
  }
  return wrappers;
}

PyModule load_module(nb::tuple markers, nb::handle cpp_files, nb::handle cuda_files,
                     nb::handle cpp_wrappers, nb::handle cuda_wrappers, nb::handle extra_cflags,
                     nb::handle extra_cuda_cflags, nb::handle extra_ldflags,
                     nb::handle extra_include_paths, nb::handle build_directory) {
  const jit::ModuleSpec spec{
      .markers = to_texts(markers, "a marker"),
      .cpp_files = to_paths(cpp_files, "cpp_files"),
      .cuda_files = to_paths(cuda_files, "cuda_files"),
      .cpp_wrappers = to_wrappers(cpp_wrappers, "cpp_wrappers"),
      .cuda_wrappers = to_wrappers(cuda_wrappers, "cuda_wrappers"),
      .extra_cflags = to_texts(extra_cflags, "extra_cflags"),
      .extra_cuda_cflags = to_texts(extra_cuda_cflags, "extra_cuda_cflags"),
      .extra_ldflags = to_texts(extra_ldflags, "extra_ldflags"),
      .extra_include_paths = to_paths(extra_include_paths, "extra_include_paths"),
      .build_directory = build_directory.is_none() ? std::string() : to_path(build_directory)};
  const WithoutGil released;
  return {jit::load_module(spec)};
}

// The arguments of one call, and what it must do about their memory.
class JitArguments {
 public:
  JitArguments(const std::string& name, nb::args given) : name_(name) {
    arrays_.reserve(given.size());
    for (nb::handle argument : given) add(argument);
  }
  const std::vector<jit::ExportValue>& values() const { return values_; }
  // Returns the stream of the first array on a GPU, if there is one.
  std::optional<StreamRef> stream() const {
    for (const ArrayArgument& a : arrays_)
      if (a.view.device().is_cuda()) return stream_of(a, a.view.device().index);
    return std::nullopt;
  }
  void mark_used(StreamRef stream) const {
    for (const ArrayArgument& a : arrays_) note_use(a.memory, a.object, stream);
  }

 private:
  void add(nb::handle argument) {
    PyObject* const o = argument.ptr();
    if (is_bool(argument)) {
      values_.emplace_back(PyObject_IsTrue(o) == 1);
    } else if (PyFloat_Check(o)) {
      values_.emplace_back(PyFloat_AS_DOUBLE(o));
    } else if (PyUnicode_Check(o)) {
      values_.emplace_back(to_text(argument, name_));
    } else if (const nb::object whole = as_index(argument); whole.is_valid()) {
      values_.emplace_back(to_int64(whole, name_));
    } else {
      const ArrayArgument& a = arrays_.emplace_back(
          to_array(argument, name_, "an argument", nb::none(), DType::int64, {}, Uint64::as_int64));
      if (a.is_number() || !a.object.is_valid())
        fail(ErrorKind::type, name_,
             ": an argument must be an array that the caller keeps, a number, a bool or a text, "
             "got ",
             class_name(argument));
      values_.emplace_back(a.view);
    }
  }
  const std::string& name_;
  std::vector<ArrayArgument> arrays_;
  std::vector<jit::ExportValue> values_;
};

nb::object to_python(const jit::ExportValue& value) {
  if (const auto* truth = std::get_if<bool>(&value)) return nb::bool_(*truth);
  if (const auto* whole = std::get_if<int64_t>(&value)) return nb::int_(*whole);
  if (const auto* number = std::get_if<double>(&value)) return nb::float_(*number);
  return nb::none();
}

nb::object call(const PyModule& m, const std::string& name, nb::args given) {
  const JitArguments arguments(name, given);
  const std::optional<StreamRef> stream = arguments.stream();
  std::optional<CurrentStream> current;
  if (stream) current.emplace(*stream);
  jit::ExportValue result;
  without_gil([&] { result = m.module->call(name, arguments.values()); },
              [&] {
                if (stream) arguments.mark_used(*stream);
              });
  return to_python(result);
}

}  // namespace

void register_jit_module(nb::module_& m) {
  nb::class_<PyModule>(m, "JitModule", "What tc.load_jit wraps.")
      .def("call", &call, "name"_a, "arguments"_a)
      .def_prop_ro("name", [](const PyModule& p) { return p.module->name(); })
      .def_prop_ro("exports", [](const PyModule& p) { return p.module->exports(); })
      .def_prop_ro("commands", [](const PyModule& p) { return p.module->commands(); });
  m.def("load_jit", &load_module, "markers"_a, "cpp_files"_a.none(), "cuda_files"_a.none(),
        "cpp_wrappers"_a.none(), "cuda_wrappers"_a.none(), "extra_cflags"_a.none(),
        "extra_cuda_cflags"_a.none(), "extra_ldflags"_a.none(), "extra_include_paths"_a.none(),
        "build_directory"_a.none(), "What tc.load_jit calls.");
}

}  // namespace tensorcraft::python
