// SPDX-License-Identifier: Apache-2.0
#include "explain.hpp"

#include "tensorcraft/op/definition.hpp"

#include <nanobind/stl/string.h>

#include <string>

namespace tensorcraft::python {

namespace nb = nanobind;

namespace {

nb::tuple to_tuple(const Dim3& d) { return nb::make_tuple(d.x, d.y, d.z); }

nb::list to_list(const std::vector<op::Weighed>& candidates) {
  nb::list all;
  for (const op::Weighed& w : candidates) {
    nb::dict one;
    one["config"] = w.config;
    one["predicted_us"] = w.us;
    one["rounds"] = w.rounds;
    one["busy"] = w.busy;
    one["chosen"] = w.is_chosen;
    all.append(one);
  }
  return all;
}

nb::object to_dict(const op::KernelReport& k) {
  nb::dict d;
  d["arch"] = k.arch;
  d["signature"] = k.signature;
  d["grid"] = to_tuple(k.launch.grid);
  d["block"] = to_tuple(k.launch.block);
  d["cluster"] = to_tuple(k.launch.cluster);
  d["registers"] = k.registers;
  d["shared_bytes"] = k.shared_bytes;
  d["spill_bytes"] = k.spill_bytes;
  d["code_bytes"] = k.code_bytes;
  d["compile_ms"] = k.compile_ms;
  d["blocks_per_sm"] = k.occupancy.blocks_per_sm;
  d["occupancy"] = k.occupancy.fraction;
  d["limited_by"] = std::string(k.occupancy.limit);
  d["problem"] = k.problem;
  return d;
}

}  // namespace

nb::dict to_dict(const op::Explanation& e) {
  nb::list rows;
  for (const op::Considered& c : e.variants) {
    nb::dict row;
    row["name"] = std::string(c.variant.name);
    row["idea"] = std::string(c.variant.idea);
    row["accepted"] = c.accepted;
    row["reason"] = c.reason;
    row["config"] = c.plan ? op::config_text(c.plan->main()) : std::string();
    row["file"] = op::file_of(c);
    row["estimate_us"] = c.estimate_us;
    row["candidates"] = to_list(c.candidates);
    row["why"] = op::reason_of_candidate(c);
    rows.append(row);
  }
  nb::object tuned = nb::none();
  if (e.tuned) tuned = nb::make_tuple(e.tuned->config, e.tuned->us, e.tuned->model_us);
  nb::dict result;
  result["op"] = std::string(e.op);
  result["device"] = e.device;
  result["variant"] = std::string(e.variant);
  result["variants"] = rows;
  result["tuned"] = tuned;
  result["prior"] = e.prior;
  result["staged"] = e.staged;
  result["floor_us"] = e.floor_us;
  result["bytes"] = e.cost.bytes;
  result["flops"] = e.cost.flops;
  nb::list kernels;
  for (const op::KernelReport& k : e.kernels) kernels.append(to_dict(k));
  result["kernels"] = kernels;
  result["text"] = op::to_string(e);
  return result;
}

}  // namespace tensorcraft::python
