// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/tensor_view.hpp"

#include <Python.h>

#include <memory>

// DLPack in both directions: the C exchange API where a type offers it, else the Python protocol.
namespace tensorcraft::python {

// The table a framework publishes on its array type (DLPack 1.x ABI).
struct ExchangeApi {
  struct Header {
    dlpack::DLPackVersion version;
    Header* previous;
  } header;
  int (*allocate)(dlpack::DLTensor* prototype, dlpack::DLManagedTensorVersioned** out, void* error,
                  void (*set_error)(void* error, const char* kind, const char* message));
  int (*from_object)(void* object, dlpack::DLManagedTensorVersioned** out);
  int (*to_object)(dlpack::DLManagedTensorVersioned* tensor, void** out);
  int (*borrow)(void* object, dlpack::DLTensor* out);  // may be null
  int (*current_stream)(dlpack::DLDeviceType type, int32_t device, void** out);
};

// Of the type of an object, cached per type; null where it has none. The GIL is held.
const ExchangeApi* exchange_api(PyTypeObject* type);

// A view with whatever keeps its memory alive.
struct Imported {
  TensorView view;
  std::shared_ptr<void> owner;
};
// Through obj.__dlpack__, ordered before work on `stream` (a driver handle) for CUDA arrays.
Imported import_dlpack(PyObject* object, void* stream);
// A new capsule that keeps `owner` alive; versioned where the consumer can read it.
PyObject* export_dlpack(const TensorView& view, std::shared_ptr<void> owner, bool versioned);
dlpack::DLManagedTensorVersioned* export_managed(const TensorView& view, std::shared_ptr<void> owner);
// The table this package publishes on tc.Tensor.
const ExchangeApi* own_exchange_api();

}  // namespace tensorcraft::python
