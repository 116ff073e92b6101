// SPDX-License-Identifier: Apache-2.0
#include "cli/command.hpp"

#include "tensorcraft/ops/all.hpp"

#include <algorithm>
#include <memory>

namespace tensorcraft::cli {
namespace {

using op::Description;

std::vector<std::string> variants_on(const Description& d, DeviceType type) {
  std::vector<std::string> names;
  for (const op::VariantInfo& v : d.variants)
    if (v.device == type) names.emplace_back(v.name);
  return names;
}

std::vector<std::string> devices_of(const Description& d) {
  std::vector<std::string> names;
  for (const op::VariantInfo& v : d.variants) {
    const std::string name(to_string(v.device));
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
  return names;
}

std::vector<std::string> dtypes_of(const Description& d) {
  std::vector<std::string> names;
  names.reserve(d.dtypes.size());
  for (const DType dtype : d.dtypes) names.emplace_back(to_string(dtype));
  return names;
}

std::string documentation_of(const Description& d) {
  std::string group(d.group);
  std::ranges::replace(group, ' ', '-');
  return "docs/operators.md#" + group;
}

Json to_json(const op::Parameter& p) {
  return {{"name", p.name},       {"doc", to_string(p.doc)},    {"optional", p.optional},
          {"written", p.written}, {"default", p.default_value}, {"choices", p.choices}};
}

Json to_json(const Description& d) {
  Json inputs = Json::array(), options = Json::array(), variants = Json::array();
  for (const op::Parameter& p : d.inputs) inputs.push_back(to_json(p));
  for (const op::Parameter& p : d.options) options.push_back(to_json(p));
  for (const op::VariantInfo& v : d.variants)
    variants.push_back(
        {{"name", v.name}, {"alias", v.alias}, {"device", to_string(v.device)}, {"idea", v.idea}});
  return {{"name", d.name},           {"group", d.group},
          {"summary", d.summary},     {"aliases", d.aliases},
          {"devices", devices_of(d)}, {"dtypes", dtypes_of(d)},
          {"inputs", inputs},         {"options", options},
          {"variants", variants},     {"documentation", documentation_of(d)}};
}

void print_one(Console& console, const Description& d) {
  console.print(console.colored(Color::bold, d.name) + ": " + std::string(d.summary));
  console.print(d.details);
  console.print("dtypes: " + joined(dtypes_of(d)));
  console.print("documentation: " + documentation_of(d) + "\n");
  std::vector<std::vector<std::string>> table{{"argument", "default", "meaning"}};
  for (const auto* parameters : {&d.inputs, &d.options})
    for (const op::Parameter& p : *parameters)
      table.push_back({std::string(p.name), p.default_value, op::documented(p)});
  console.print_table(table);
  console.print("");
  table = {{"variant", "device", "idea"}};
  for (const op::VariantInfo& v : d.variants)
    table.push_back({std::string(v.name), std::string(to_string(v.device)), std::string(v.idea)});
  console.print_table(table);
}

void print_all(Console& console) {
  std::vector<std::vector<std::string>> table{
      {"operator", "devices", "GPU variants", "CPU variants", "dtypes", "documentation"}};
  for (const op::Operator* o : operators()) {
    const Description& d = o->description();
    table.push_back(
        {std::string(d.name), joined(devices_of(d)), joined(variants_on(d, DeviceType::cuda)),
         joined(variants_on(d, DeviceType::cpu)),
         int(d.dtypes.size()) == kNumDTypes ? "all" : joined(dtypes_of(d)), documentation_of(d)});
  }
  console.print_table(table);
}

int show(Console& console, const std::string& name) {
  const op::OperatorList wanted =
      name.empty() ? operators() : op::OperatorList{&find_operator(name)};
  if (console.json) {
    Json all = Json::array();
    for (const op::Operator* o : wanted) all.push_back(to_json(o->description()));
    console.print_json(Json{{"operators", all}});
  } else if (name.empty()) {
    print_all(console);
  } else {
    print_one(console, wanted[0]->description());
  }
  return kDone;
}

}  // namespace

Command ops_command() {
  const auto name = std::make_shared<std::string>();
  return {.name = "ops",
          .help = "every operator: devices, dtypes, variants, documentation; or all about one",
          .options = {{"op", "an operator's name", name.get()}},
          .run = [name](Console& console) { return show(console, *name); },
          .examples = {"ops", "ops softmax"}};
}

}  // namespace tensorcraft::cli
