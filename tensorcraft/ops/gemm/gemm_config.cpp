// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/nearest.hpp"
#include "tensorcraft/core/to_number.hpp"
#include "tensorcraft/ops/gemm/problem.hpp"

#include <algorithm>
#include <array>
#include <vector>

// How the option `config` of gemm is read.
namespace tensorcraft {
namespace kernel::gemm {
namespace {

struct ConfigNumber {
  std::string_view name;
  int GemmConfig::* field;
};
constexpr ConfigNumber kConfigNumbers[] = {
    {"tile_m", &GemmConfig::tile_m},       {"tile_n", &GemmConfig::tile_n},
    {"tile_k", &GemmConfig::tile_k},       {"warp_m", &GemmConfig::warp_m},
    {"warp_n", &GemmConfig::warp_n},       {"stages", &GemmConfig::stages},
    {"cluster_m", &GemmConfig::cluster_m}, {"cluster_n", &GemmConfig::cluster_n},
    {"consumers", &GemmConfig::consumers}, {"split", &GemmConfig::split}};
constexpr std::array<std::string_view, 3> kScheduleNames = {"any", "together", "ping_pong"};

void set_number(GemmConfig& config, const op::Setting& s, std::string_view op,
                std::string_view name) {
  std::vector<std::string_view> names;
  for (const ConfigNumber& one : kConfigNumbers) names.push_back(one.name);
  const auto found = std::ranges::find(kConfigNumbers, s.name, &ConfigNumber::name);
  names.emplace_back("schedule");
  if (found == std::end(kConfigNumbers))
    fail(ErrorKind::value, op, ": ", name, " has no \"", s.name, "\"; it may have tile_m, tile_n, ",
         "tile_k, warp_m, warp_n, stages, cluster_m, cluster_n, consumers, split, schedule",
         did_you_mean(s.name, names));
  const int value = to_number<int>(s.value).value_or(0);
  if (value < 1)
    fail(ErrorKind::value, op, ": ", name, ": ", s.name, " must be a positive whole number, got ",
         s.value);
  config.*found->field = value;
}

}  // namespace

std::string config_option(const Config& c) {
  GemmConfig config{.tile_m = c.swap ? c.block_n : c.block_m,
                    .tile_n = c.swap ? c.block_m : c.block_n,
                    .tile_k = c.block_k,
                    .warp_m = c.warp_m,
                    .warp_n = c.warp_n,
                    .stages = c.stages,
                    .consumers = c.consumers,
                    .split = c.split > 1 ? c.split : 0};
  if (c.consumers || c.cluster_m * c.cluster_n > 1) {
    config.cluster_m = c.cluster_m;
    config.cluster_n = c.cluster_n;
  }
  if (c.consumers) config.schedule = GemmSchedule(int(c.schedule) + 1);
  return op::Field<GemmConfig>::text(config);
}

}  // namespace kernel::gemm

std::string op::Field<GemmConfig>::text(const GemmConfig& config) {
  std::string text;
  const auto add = [&](std::string_view name, const auto& value) {
    text.append(join(text.empty() ? "" : ", ", name, "=", value));
  };
  for (const auto& [name, field] : kernel::gemm::kConfigNumbers)
    if (config.*field) add(name, config.*field);
  if (config.schedule != GemmSchedule::any)
    add("schedule", kernel::gemm::kScheduleNames[size_t(config.schedule)]);
  return text;
}

GemmConfig op::Field<GemmConfig>::get(std::string_view op, std::string_view name, const Value& v) {
  GemmConfig config;
  for (const Setting& s : to_settings(op, name, v)) {
    if (s.name == "schedule")
      config.schedule = GemmSchedule(
          to_choice(op, join(name, ": schedule"), kernel::gemm::kScheduleNames, s.value));
    else
      kernel::gemm::set_number(config, s, op, name);
  }
  return config;
}

}  // namespace tensorcraft
