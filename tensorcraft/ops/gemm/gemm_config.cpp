// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/nearest.hpp"
#include "tensorcraft/ops/gemm/problem.hpp"

#include <algorithm>
#include <array>
#include <charconv>
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
    {"consumers", &GemmConfig::consumers}};

void set_number(GemmConfig& config, const op::Setting& s, std::string_view op,
                std::string_view name) {
  std::vector<std::string_view> names;
  for (const ConfigNumber& one : kConfigNumbers) names.push_back(one.name);
  const auto found = std::ranges::find(kConfigNumbers, s.name, &ConfigNumber::name);
  names.emplace_back("schedule");
  if (found == std::end(kConfigNumbers))
    fail(ErrorKind::value, op, ": ", name, " has no \"", s.name, "\"; it may have tile_m, tile_n, ",
         "tile_k, warp_m, warp_n, stages, cluster_m, cluster_n, consumers, schedule",
         did_you_mean(s.name, names));
  int value = 0;
  const auto [end, error] = std::from_chars(s.value.begin(), s.value.end(), value);
  if (error != std::errc() || end != s.value.end() || value < 1)
    fail(ErrorKind::value, op, ": ", name, ": ", s.name, " must be a positive whole number, got ",
         s.value);
  config.*found->field = value;
}

}  // namespace
}  // namespace kernel::gemm

GemmConfig op::Field<GemmConfig>::get(std::string_view op, std::string_view name, const Value& v) {
  constexpr std::array<std::string_view, 3> kNames = {"any", "together", "ping_pong"};
  GemmConfig config;
  for (const Setting& s : to_settings(op, name, v)) {
    if (s.name == "schedule")
      config.schedule = GemmSchedule(to_choice(op, join(name, ": schedule"), kNames, s.value));
    else
      kernel::gemm::set_number(config, s, op, name);
  }
  return config;
}

}  // namespace tensorcraft
