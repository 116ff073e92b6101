// SPDX-License-Identifier: Apache-2.0
#include "sparse.hpp"

#include "arguments.hpp"
#include "arrays.hpp"
#include "gil.hpp"
#include "graph.hpp"
#include "stream.hpp"
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/sparse/matrix.hpp"

#include <nanobind/stl/string.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace tensorcraft::python {
namespace {

using namespace nb::literals;

SparseFormat to_format(nb::handle object) {
  const std::string_view name = to_text(object, "format");
  if (name == "csr") return SparseFormat::csr;
  if (name == "csc") return SparseFormat::csc;
  fail(ErrorKind::value, "sparse: format must be \"csr\" or \"csc\", got \"", name, "\"");
}

// A matrix with its arrays as tensors, which share one Memory: it waits for products of any stream
// when the last of them goes.
class SparseObject {
 public:
  explicit SparseObject(SparseMatrix matrix) : matrix_(std::move(matrix)) {
    const Device device = matrix_.device();
    const StreamRef home = device.is_cuda() ? current_stream(device.index) : StreamRef();
    memory_ = std::make_shared<Memory>(std::make_shared<const SparseMatrix>(matrix_), device, home);
  }

  static SparseObject of(nb::handle format, nb::handle data, nb::handle indices, nb::handle indptr,
                         int64_t rows, int64_t cols, bool sum_duplicates) {
    refuse_while_recording("sparse: a new matrix");
    const SparseFormat by = to_format(format);
    const auto kept = std::make_shared<std::vector<PyTensor>>();
    for (const nb::handle object : {data, indices, indptr}) kept->push_back(to_tensor(object));
    for (const PyTensor& t : *kept) order_now(t);
    const WithoutGil released;
    return SparseObject(SparseMatrix::of(by, (*kept)[0].view, (*kept)[1].view, (*kept)[2].view,
                                         rows, cols, kept, {.sum_duplicates = sum_duplicates}));
  }
  static SparseObject from_dense(nb::handle x, nb::handle format, nb::handle index_dtype) {
    refuse_while_recording("sparse.from_dense");
    const PyTensor dense = to_tensor(x);
    const SparseFormat by = to_format(format);
    const DType dtype = to_dtype(index_dtype);
    order_now(dense);
    const WithoutGil released;
    return SparseObject(SparseMatrix::from_dense(dense.view, by, dtype));
  }

  SparseObject transposed() const { return SparseObject(matrix_.transpose()); }
  SparseObject converted(nb::handle format) const {
    const SparseFormat wanted = to_format(format);
    if (wanted != matrix_.format()) refuse_while_recording("sparse: a conversion");
    const WithoutGil released;
    return SparseObject(wanted == SparseFormat::csr ? matrix_.to_csr() : matrix_.to_csc());
  }
  nb::object to_dense() const {
    const Device device = matrix_.device();
    const StreamRef stream = device.is_cuda() ? current_stream(device.index) : StreamRef();
    Tensor dense;
    {
      const WithoutGil released;
      dense = matrix_.to_dense();
    }
    memory_->used_on(stream);
    return nb::cast(own(std::move(dense), stream));
  }

  nb::object data() const { return tensor(matrix_.data()); }
  nb::object indices() const { return tensor(matrix_.indices()); }
  nb::object indptr() const { return tensor(matrix_.indptr()); }
  nb::object starts() const { return tensor(matrix_.starts()); }
  nb::tuple shape() const { return nb::make_tuple(matrix_.rows(), matrix_.cols()); }
  int64_t stored() const { return matrix_.stored(); }
  std::string format() const { return matrix_.format() == SparseFormat::csr ? "csr" : "csc"; }
  std::string device() const { return to_string(matrix_.device()); }
  std::string text() const { return to_string(matrix_); }
  nb::tuple analysis() const {
    const SparseAnalysis* a = nullptr;
    {
      const WithoutGil released;
      a = &matrix_.analysis();
    }
    return nb::make_tuple(a->longest_row, a->empty_rows, a->mean_row(), a->skew());
  }

 private:
  nb::object tensor(const TensorView& view) const {
    return nb::cast(PyTensor{view.as_read_only(), memory_});
  }

  SparseMatrix matrix_;
  std::shared_ptr<Memory> memory_;
};

}  // namespace

void register_sparse(nb::module_& m) {
  nb::class_<SparseObject>(m, "SparseMatrix", "What tc.sparse.Matrix shows.")
      .def_static("of", &SparseObject::of, "format"_a.none(), "data"_a.none(), "indices"_a.none(),
                  "indptr"_a.none(), "rows"_a, "cols"_a, "sum_duplicates"_a)
      .def_static("from_dense", &SparseObject::from_dense, "x"_a.none(), "format"_a.none(),
                  "index_dtype"_a.none())
      .def("transposed", &SparseObject::transposed)
      .def("converted", &SparseObject::converted, "format"_a.none())
      .def("to_dense", &SparseObject::to_dense)
      .def("analysis", &SparseObject::analysis)
      .def_prop_ro("data", &SparseObject::data)
      .def_prop_ro("indices", &SparseObject::indices)
      .def_prop_ro("indptr", &SparseObject::indptr)
      .def_prop_ro("starts", &SparseObject::starts)
      .def_prop_ro("shape", &SparseObject::shape)
      .def_prop_ro("stored", &SparseObject::stored)
      .def_prop_ro("format", &SparseObject::format)
      .def_prop_ro("device", &SparseObject::device)
      .def("__repr__", &SparseObject::text);
}

}  // namespace tensorcraft::python
