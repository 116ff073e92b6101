// SPDX-License-Identifier: Apache-2.0
#include "exchange.hpp"

#include "tensorcraft/core/error.hpp"

#include <nanobind/nanobind.h>

#include <array>
#include <unordered_map>

namespace nb = nanobind;

namespace tensorcraft::python {
namespace {

using dlpack::DLManagedTensor;
using dlpack::DLManagedTensorVersioned;
using dlpack::DLTensor;

constexpr const char* kVersionedName = "dltensor_versioned";
constexpr const char* kLegacyName = "dltensor";

// What an exported tensor needs to stay valid: shape and strides in one place, and the owner.
struct Exported {
  std::array<int64_t, 2 * kMaxRank> dims;
  std::shared_ptr<void> owner;
  DLManagedTensorVersioned versioned{};
  DLManagedTensor legacy{};
};

DLTensor describe(const TensorView& view, std::array<int64_t, 2 * kMaxRank>& dims) {
  std::copy(view.shape().begin(), view.shape().end(), dims.begin());
  std::copy(view.strides().begin(), view.strides().end(), dims.begin() + kMaxRank);
  return {view.data(), to_dlpack(view.device()), view.rank(), to_dlpack(view.dtype()),
          dims.data(), dims.data() + kMaxRank, 0};
}

Exported* make_exported(const TensorView& view, std::shared_ptr<void> owner) {
  auto* e = new Exported{{}, std::move(owner), {}, {}};
  e->versioned = {{1, 0}, e, [](DLManagedTensorVersioned* t) { delete static_cast<Exported*>(t->manager_ctx); },
                  view.read_only() ? dlpack::kReadOnly : 0, describe(view, e->dims)};
  e->legacy = {e->versioned.dl_tensor, e, [](DLManagedTensor* t) { delete static_cast<Exported*>(t->manager_ctx); }};
  return e;
}

template <class Managed>
std::shared_ptr<void> release_later(Managed* managed) {
  return {managed, [](Managed* m) {
            if (m && m->deleter) m->deleter(m);
          }};
}

template <class Managed>
Managed* take(PyObject* capsule, const char* name, const char* used) {
  auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, name));
  if (!managed) throw nb::python_error();
  PyCapsule_SetName(capsule, used);  // the standard: a consumed capsule is renamed
  return managed;
}

Imported import_capsule(PyObject* capsule) {
  if (PyCapsule_IsValid(capsule, kVersionedName)) {
    auto* m = take<DLManagedTensorVersioned>(capsule, kVersionedName, "used_dltensor_versioned");
    auto owner = release_later(m);
    if (m->version.major != 1)
      fail(ErrorKind::buffer, "DLPack version ", m->version.major, ".", m->version.minor, " is not supported; 1.x is");
    const auto access = m->flags & dlpack::kReadOnly ? Access::read_only : Access::read_write;
    return {TensorView::from_dlpack(m->dl_tensor, access), std::move(owner)};
  }
  auto* m = take<DLManagedTensor>(capsule, kLegacyName, "used_dltensor");
  auto owner = release_later(m);
  return {TensorView::from_dlpack(m->dl_tensor), std::move(owner)};
}

// obj.__dlpack__(stream=..., max_version=(1, 0)), or without max_version for older producers.
nb::object call_dlpack(nb::handle object, nb::object stream) {
  const nb::object method = object.attr("__dlpack__");
  nb::dict arguments;
  if (!stream.is_none()) arguments["stream"] = stream;
  nb::dict modern = nb::cast<nb::dict>(arguments.attr("copy")());
  modern["max_version"] = nb::make_tuple(1, 0);
  try {
    return method(**modern);
  } catch (nb::python_error& e) {
    if (!e.matches(PyExc_TypeError)) throw;
  }
  return method(**arguments);
}

}  // namespace

const ExchangeApi* exchange_api(PyTypeObject* type) {
  static auto* cache = new std::unordered_map<PyTypeObject*, const ExchangeApi*>;  // types are few and live on
  if (const auto it = cache->find(type); it != cache->end()) return it->second;
  const ExchangeApi* api = nullptr;
  if (PyObject* attribute = PyObject_GetAttrString(reinterpret_cast<PyObject*>(type), "__dlpack_c_exchange_api__")) {
    api = static_cast<const ExchangeApi*>(PyCapsule_GetPointer(attribute, "dlpack_exchange_api"));
    Py_DECREF(attribute);
    while (api && api->header.version.major != 1)
      api = reinterpret_cast<const ExchangeApi*>(api->header.previous);
  }
  PyErr_Clear();
  Py_INCREF(type);
  cache->emplace(type, api);
  return api;
}

Imported import_dlpack(PyObject* object, void* stream) {
  const nb::handle h(object);
  nb::object stream_argument = nb::none();
  const auto device = nb::cast<nb::tuple>(h.attr("__dlpack_device__")());
  if (nb::cast<int>(device[0]) == dlpack::kDLCUDA)  // 1 names the legacy default stream
    stream_argument = nb::int_(stream ? reinterpret_cast<intptr_t>(stream) : 1);
  return import_capsule(call_dlpack(h, stream_argument).ptr());
}

PyObject* export_dlpack(const TensorView& view, std::shared_ptr<void> owner, bool versioned) {
  Exported* e = make_exported(view, std::move(owner));
  const auto destroy = [](PyObject* capsule) {
    // A consumer renames the capsule and calls the deleter itself.
    if (auto* m = PyCapsule_IsValid(capsule, kVersionedName)
                      ? PyCapsule_GetPointer(capsule, kVersionedName) : nullptr)
      static_cast<DLManagedTensorVersioned*>(m)->deleter(static_cast<DLManagedTensorVersioned*>(m));
    else if (auto* l = PyCapsule_IsValid(capsule, kLegacyName) ? PyCapsule_GetPointer(capsule, kLegacyName) : nullptr)
      static_cast<DLManagedTensor*>(l)->deleter(static_cast<DLManagedTensor*>(l));
  };
  return versioned ? PyCapsule_New(&e->versioned, kVersionedName, destroy)
                   : PyCapsule_New(&e->legacy, kLegacyName, destroy);
}

DLManagedTensorVersioned* export_managed(const TensorView& view, std::shared_ptr<void> owner) {
  return &make_exported(view, std::move(owner))->versioned;
}

}  // namespace tensorcraft::python
