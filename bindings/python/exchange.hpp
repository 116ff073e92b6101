// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "memory.hpp"
#include "tensorcraft/core/dlpack.hpp"

// DLPack in both directions: the C exchange API if a type offers it, else the Python protocol.
namespace tensorcraft::python {

// The table a framework publishes on its array type (DLPack 1.x ABI). Functions that return int set
// a Python error if it is not 0, except `allocate`, which needs no GIL.
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

// The table of a type, remembered; null if it has none.
const ExchangeApi* exchange_api(PyTypeObject* type);
// The table this package publishes on tc.Tensor.
const ExchangeApi* own_exchange_api();

// An array of uint64, which no dtype of ours is, is refused with kind type, or becomes int64 of the
// same bits, as tables of addresses come.
enum class Uint64 { refused, as_int64 };
TensorView to_view(dlpack::DLTensor tensor, Access access, Uint64 uint64);

// A consumer's share of a producer's tensor: the producer's deleter runs when it is dropped.
struct Imported {
  TensorView view;
  std::shared_ptr<const void> owner;
};
// Asks obj.__dlpack_device__(); kind type if it is missing or no pair of integers.
dlpack::DLDevice dlpack_device(nb::handle object);
Imported import_managed(dlpack::DLManagedTensorVersioned* managed, Uint64 uint64 = Uint64::refused);
// Through obj.__dlpack__, kind type if that gives no capsule and buffer if the capsule was
// consumed; CUDA memory is ready for work on `stream`.
Imported import_dlpack(nb::handle object, StreamRef stream, Uint64 uint64 = Uint64::refused);

// A tensor for another consumer, whose deleter any thread may call. Marks CUDA memory as shared.
dlpack::DLManagedTensorVersioned* export_managed(const PyTensor& tensor);
// Exports likewise as a capsule; the older struct if the consumer cannot read the versioned one.
nb::object export_capsule(const PyTensor& tensor, bool versioned);

}  // namespace tensorcraft::python
