// SPDX-License-Identifier: Apache-2.0
#include "exchange.hpp"

#include "arguments.hpp"
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/first_made.hpp"

#include <nanobind/stl/pair.h>

#include <algorithm>
#include <array>
#include <unordered_map>

namespace tensorcraft::python {
namespace {

using dlpack::DLManagedTensor;
using dlpack::DLManagedTensorVersioned;
using dlpack::DLTensor;

constexpr const char* kVersionedName = "dltensor_versioned";
constexpr const char* kLegacyName = "dltensor";
constexpr const char* kExchangeName = "dlpack_exchange_api";

// An exported tensor needs this to stay valid. The consumer frees it through one of the two.
struct Exported {
  std::array<int64_t, 2 * kMaxRank> dims;  // shape, then strides
  std::shared_ptr<Memory> memory;
  DLManagedTensorVersioned versioned{};
  DLManagedTensor legacy{};
};

template <class Managed>
void destroy(Managed* managed) {
  delete static_cast<Exported*>(managed->manager_ctx);
}

// Whoever gets the memory may write it, on this thread's stream.
void settle_for_export(const PyTensor& t) {
  t.memory->settle(current_stream(t.view.device().index), !t.view.read_only());
}

DLTensor describe(const TensorView& view, int64_t* shape, int64_t* strides) {
  return {const_cast<void*>(view.data()),  // who takes a read-only tensor is told so
          to_dlpack(view.device()),       view.rank(), to_dlpack(view.dtype()), shape, strides, 0};
}

Exported* make_exported(const PyTensor& t) {
  settle_for_export(t);
  auto* e = new Exported{{}, t.memory, {}, {}};
  std::ranges::copy(t.view.shape(), e->dims.begin());
  std::ranges::copy(t.view.strides(), e->dims.begin() + kMaxRank);
  const DLTensor tensor = describe(t.view, e->dims.data(), e->dims.data() + kMaxRank);
  const uint64_t flags = t.view.read_only() ? dlpack::kReadOnly : 0;
  e->versioned = {{1, 0}, e, destroy<DLManagedTensorVersioned>, flags, tensor};
  e->legacy = {tensor, e, destroy<DLManagedTensor>};
  t.memory->set_shared();
  return e;
}

template <class Managed>
std::shared_ptr<const void> owner_of(Managed* managed) {
  return {managed, [](Managed* m) {
            if (m->deleter) m->deleter(m);
          }};
}

template <class Managed>
Managed* take(nb::handle capsule, const char* name, const char* used) {
  auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule.ptr(), name));
  if (!managed) throw nb::python_error();
  PyCapsule_SetName(capsule.ptr(), used);  // the standard: a consumed capsule is renamed
  return managed;
}

Imported import_capsule(nb::handle capsule, nb::handle producer, Uint64 uint64) {
  if (!PyCapsule_CheckExact(capsule.ptr()))
    fail(ErrorKind::type, class_name(producer), ": __dlpack__() must give a DLPack capsule, got ",
         class_name(capsule));
  if (PyCapsule_IsValid(capsule.ptr(), kVersionedName))
    return import_managed(
        take<DLManagedTensorVersioned>(capsule, kVersionedName, "used_dltensor_versioned"), uint64);
  if (!PyCapsule_IsValid(capsule.ptr(), kLegacyName))
    fail(
        ErrorKind::buffer, class_name(producer),
        ": __dlpack__() gave a capsule that is not DLPack's or was consumed before; it must give a "
        "new one each time");
  auto* managed = take<DLManagedTensor>(capsule, kLegacyName, "used_dltensor");
  auto owner = owner_of(managed);
  return {to_view(managed->dl_tensor, Access::read_write, uint64), std::move(owner)};
}

// A capsule that was not consumed still owns its tensor.
template <class Managed>
void drop_capsule(PyObject* capsule, const char* name) {
  if (!PyCapsule_IsValid(capsule, name)) return;
  auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, name));
  managed->deleter(managed);
}

// Runs `body` for a C caller: an exception becomes the Python error and -1.
template <class Body>
int for_c(const Body& body) noexcept {
  try {
    body();
    return 0;
  } catch (nb::python_error& e) {
    e.restore();
  } catch (const std::exception& e) {
    PyErr_SetString(PyExc_RuntimeError, e.what());
  }
  return -1;
}

int allocate(DLTensor* prototype, DLManagedTensorVersioned** out, void* error,
             void (*set_error)(void*, const char*, const char*)) {
  try {
    DLTensor described = *prototype;
    described.data = &described;  // a prototype has no memory, which a view of elements must have
    const TensorView like = TensorView::from_dlpack(described);
    const StreamRef home = current_stream(like.device().index);
    *out = export_managed(own(Tensor(like.dtype(), like.shape(), like.device(), home), home));
    return 0;
  } catch (const std::exception& e) {
    set_error(error, "RuntimeError", e.what());
    return -1;
  }
}

int from_object(void* object, DLManagedTensorVersioned** out) {
  return for_c([&] {
    *out = export_managed(nb::cast<const PyTensor&>(nb::handle(static_cast<PyObject*>(object))));
  });
}

int to_object(DLManagedTensorVersioned* managed, void** out) {
  return for_c([&] {
    Imported i = import_managed(managed);
    const Device device = i.view.device();
    const StreamRef home = current_stream(device.index);
    PyTensor t{i.view, std::make_shared<Memory>(std::move(i.owner), device, home)};
    *out = nb::cast(std::move(t)).release().ptr();
  });
}

// Shape and strides are the object's own, valid as long as it lives; readers do not write them.
int borrow(void* object, DLTensor* out) {
  return for_c([&] {
    const auto* t = nb::cast<const PyTensor*>(nb::handle(static_cast<PyObject*>(object)));
    settle_for_export(*t);
    *out = describe(t->view, const_cast<int64_t*>(t->view.shape().data()),
                    const_cast<int64_t*>(t->view.strides().data()));
  });
}

int stream_of_thread(dlpack::DLDeviceType type, int32_t device, void** out) {
  const bool is_cuda = type == dlpack::kDLCUDA || type == dlpack::kDLCUDAManaged;
  *out = is_cuda ? current_stream(device).handle() : nullptr;
  return 0;
}

}  // namespace

const ExchangeApi* exchange_api(PyTypeObject* type) {
  static constinit FirstMade<std::unordered_map<PyTypeObject*, const ExchangeApi*>> known;
  if (const auto it = known->find(type); it != known->end()) return it->second;
  const ExchangeApi* api = nullptr;
  const nb::handle h(reinterpret_cast<PyObject*>(type));
  const nb::object capsule = nb::getattr(h, "__dlpack_c_exchange_api__", nb::none());
  if (PyCapsule_IsValid(capsule.ptr(), kExchangeName))
    api = static_cast<const ExchangeApi*>(PyCapsule_GetPointer(capsule.ptr(), kExchangeName));
  while (api && api->header.version.major != 1)
    api = reinterpret_cast<const ExchangeApi*>(api->header.previous);
  // Only `borrow` may be missing; a table that lacks more is as good as none.
  if (api && !(api->allocate && api->from_object && api->to_object && api->current_stream))
    api = nullptr;
  h.inc_ref();  // a type that is remembered must not be replaced by another at its address
  known->emplace(type, api);
  return api;
}

const ExchangeApi* own_exchange_api() {
  static constexpr ExchangeApi kApi{{{1, 3}, nullptr}, allocate, from_object,
                                    to_object,         borrow,   stream_of_thread};
  return &kApi;
}

TensorView to_view(dlpack::DLTensor tensor, Access access, Uint64 uint64) {
  constexpr dlpack::DLDataType kUint64{dlpack::kDLUInt, 64, 1};
  if (uint64 == Uint64::as_int64 && tensor.dtype == kUint64) tensor.dtype.code = dlpack::kDLInt;
  return TensorView::from_dlpack(tensor, access);
}

Imported import_managed(DLManagedTensorVersioned* managed, Uint64 uint64) {
  auto owner = owner_of(managed);
  if (managed->version.major != 1)
    fail(ErrorKind::buffer, "DLPack version ", managed->version.major, ".", managed->version.minor,
         " is not supported; 1.x is");
  const auto access = managed->flags & dlpack::kReadOnly ? Access::read_only : Access::read_write;
  return {to_view(managed->dl_tensor, access, uint64), std::move(owner)};
}

dlpack::DLDevice dlpack_device(nb::handle object) {
  if (!nb::hasattr(object, "__dlpack_device__"))
    fail(ErrorKind::type, class_name(object),
         " has __dlpack__ but no __dlpack_device__; DLPack asks for both");
  const nb::object answer = object.attr("__dlpack_device__")();
  std::pair<int, int> device;
  if (!nb::try_cast(answer, device))
    fail(ErrorKind::type, class_name(object),
         ": __dlpack_device__() must give the type and the index of a device, got ",
         class_name(answer));
  return {dlpack::DLDeviceType(device.first), device.second};
}

Imported import_dlpack(nb::handle object, StreamRef stream, Uint64 uint64) {
  nb::dict arguments;
  const auto type = dlpack_device(object).device_type;
  if (type == dlpack::kDLCUDA || type == dlpack::kDLCUDAManaged) {
    const auto handle = reinterpret_cast<intptr_t>(stream.handle());
    arguments["stream"] = handle ? handle : 1;  // 1 names the legacy default stream
  }
  const nb::object method = object.attr("__dlpack__");
  arguments["max_version"] = nb::make_tuple(1, 0);
  try {
    return import_capsule(method(**arguments), object, uint64);
  } catch (nb::python_error& e) {
    if (!e.matches(PyExc_TypeError)) throw;
  }
  nb::del(arguments["max_version"]);  // a producer from before DLPack 1.0
  return import_capsule(method(**arguments), object, uint64);
}

DLManagedTensorVersioned* export_managed(const PyTensor& tensor) {
  return &make_exported(tensor)->versioned;
}

nb::object export_capsule(const PyTensor& tensor, bool versioned) {
  Exported* e = make_exported(tensor);
  PyObject* capsule =
      versioned ? PyCapsule_New(&e->versioned, kVersionedName,
                                [](PyObject* c) {
                                  drop_capsule<DLManagedTensorVersioned>(c, kVersionedName);
                                })
                : PyCapsule_New(&e->legacy, kLegacyName,
                                [](PyObject* c) { drop_capsule<DLManagedTensor>(c, kLegacyName); });
  if (!capsule) delete e;
  return nb::steal(capsule);
}

}  // namespace tensorcraft::python
