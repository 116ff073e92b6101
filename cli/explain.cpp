// SPDX-License-Identifier: Apache-2.0
#include "cli/request.hpp"

#include "tensorcraft/op/definition.hpp"
#include "tensorcraft/ops/all.hpp"

#include <memory>
#include <optional>

namespace tensorcraft::cli {
namespace {

struct ExplainArguments {
  diagnose::RequestText text;
  Target target;
};

Json to_json(const Dim3& d) { return {d.x, d.y, d.z}; }

Json to_json(const op::KernelReport& k) {
  Json json{{"arch", k.arch},
            {"grid", to_json(k.launch.grid)},
            {"block", to_json(k.launch.block)},
            {"cluster", to_json(k.launch.cluster)},
            {"problem", k.problem},
            {"signature", k.signature}};
  if (k.signature.empty()) return json;
  json["registers"] = k.registers;
  json["shared_bytes"] = k.shared_bytes;
  json["spill_bytes"] = k.spill_bytes;
  json["code_bytes"] = k.code_bytes;
  json["compile_ms"] = k.compile_ms;
  json["occupancy"] = {{"blocks_per_sm", k.occupancy.blocks_per_sm},
                       {"fraction", k.occupancy.fraction},
                       {"limit", k.occupancy.limit}};
  return json;
}

Json to_json(const std::vector<op::Weighed>& candidates) {
  Json all = Json::array();
  for (const op::Weighed& w : candidates)
    all.push_back({{"config", w.config},
                   {"predicted_us", w.us},
                   {"rounds", w.rounds},
                   {"busy", w.busy},
                   {"chosen", w.is_chosen}});
  return all;
}

Json to_json(const std::optional<op::TunedEntry>& tuned) {
  if (!tuned) return {};
  return {{"config", tuned->config}, {"us", tuned->us}, {"model_us", tuned->model_us}};
}

Json to_json(const op::Explanation& e, const DeviceInfo& device) {
  Json variants = Json::array();
  for (const op::Considered& c : e.variants)
    variants.push_back({{"name", c.variant.name},
                        {"idea", c.variant.idea},
                        {"accepted", c.accepted},
                        {"reason", c.reason},
                        {"config", c.plan ? op::config_text(c.plan->main()) : ""},
                        {"file", op::file_of(c)},
                        {"estimate_us", c.estimate_us},
                        {"candidates", to_json(c.candidates)},
                        {"why", op::reason_of_candidate(c)}});
  Json kernels = Json::array();
  for (const op::KernelReport& k : e.kernels) kernels.push_back(to_json(k));
  return {{"op", e.op},
          {"device", e.device},
          {"device_name", device.name},
          {"variant", e.variant},
          {"tuned", to_json(e.tuned)},
          {"prior", e.prior},
          {"staged", e.staged},
          {"variants", variants},
          {"kernels", kernels},
          {"bytes", e.cost.bytes},
          {"flops", e.cost.flops},
          {"floor_us", e.floor_us}};
}

int show(Console& console, const ExplainArguments& a) {
  const DeviceInfo device = a.target.info();
  op::Explanation e = diagnose::Request(find_operator(a.text.op), a.text, device).explain();
  op::add_kernel_reports(e, device);
  if (console.json) {
    console.print_json(to_json(e, device));
  } else {
    std::string text = op::to_string(e);
    text.pop_back();  // print() ends the line
    console.print(text);
    console.print((e.device.starts_with("sm_") ? "figures are of an " : "on ") + device.name);
  }
  return e.variant.empty() ? kCheckFailed : kDone;
}

}  // namespace

Command explain_command() {
  const auto a = std::make_shared<ExplainArguments>();
  Command command{
      .name = "explain",
      .help = "which variant a call takes, why each other declines, and what its kernel needs",
      .options = {{"op", "an operator's name", &a->text.op, true},
                  {"shapes", "one of each array: 4096x512, 8:int64, scalar, 4096x512/520",
                   &a->text.shapes},
                  dtype_option(&a->text.dtype),
                  {"--option", "NAME=VALUE of the operator; of an array, a shape; may be repeated",
                   &a->text.options},
                  {"--out", "a shape of an output that is given, as of an array; may be repeated",
                   &a->text.outputs},
                  {"--variant", "force one", &a->text.variant}},
      .run = [a](Console& console) { return show(console, *a); },
      .examples = {"explain gemm 4096x4096 4096x4096 --dtype bf16 --option bias=4096 --arch sm_90a",
                   "explain embedding 512:int64 30000x384",
                   "explain elementwise 64x64 64x64 --option 'expression=silu(g) * u' --option "
                   "operands=g,u"}};
  for (Option& option : a->target.options()) command.options.push_back(option);
  return command;
}

}  // namespace tensorcraft::cli
