// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/dtype.hpp"
#include "tensorcraft/op/choice/rung.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

// Rules of thumb for the tile of a matrix product, with how far each is trusted. They choose no
// kernel: the cost model does. The tuner tries sooner what a rule expects to be good, and explain
// shows it.
namespace tensorcraft::op {

// How a block computes its part of a product.
struct KernelConfiguration {
  // Rows and columns of the tile, and its step along k.
  int block_m = 0, block_n = 0, block_k = 0;
  int warps_m = 0, warps_n = 0;  // that share the tile
  int stages = 0;                // steps that are in shared memory at once
  friend bool operator==(const KernelConfiguration&, const KernelConfiguration&) = default;
};
// "128 x 128 x 64, 4 x 4 warps, 2 stages".
std::string to_string(const KernelConfiguration& c);

// A product, of one entry of a batch.
struct ProductShape {
  // a is m x k, b is k x n.
  int64_t m = 0, n = 0, k = 0;
  DType dtype = DType::float16;  // of the operands
};

// Proposes how products of some kind are best computed, before anything is measured.
struct ConfigurationRule {
  std::string_view name;                 // "large"
  std::string_view condition;            // as a reader sees it
  bool (*matches)(const ProductShape&);  // the same as a function
  KernelConfiguration configuration;     // that it proposes
  double confidence = 0;                 // from 0 to 1
};

// The rule that spoke, and what became of its configuration.
struct SelectedConfiguration {
  KernelConfiguration configuration;  // as it became
  // The rule's name, and its condition as a reader sees it.
  std::string_view rule, condition;
  double confidence = 0;     // the rule's, from 0 to 1
  std::string changed = {};  // by what was measured, or by what the device has; empty: nothing
};
// "rule large (m, n and k above 2048), confidence 0.9: 128 x 128 x 64, 4 x 4 warps, 2 stages".
std::string to_string(const SelectedConfiguration& selected);

// Chooses a product's configuration by rules and by what was measured on the device.
class ConfigurationSelector {
 public:
  // For what that device can run.
  explicit ConfigurationSelector(const Gpu& gpu) : gpu_(gpu) {}

  // All of them; the last matches everything.
  static std::span<const ConfigurationRule> rules();
  // That of the rule that matches with the highest confidence. `history`: how near choices for such
  // a device came to the fastest, from 0 to 1 (tuning_history()); below 0.7 the tile becomes
  // smaller, above 0.95 it has another stage. What the device cannot run is made smaller until it
  // can.
  SelectedConfiguration select(const ProductShape& shape, std::optional<double> history = {}) const;
  // Why a block of the device cannot have a configuration for operands of a dtype; empty: it can.
  std::string validate_configuration(const KernelConfiguration& c, DType dtype) const;

 private:
  KernelConfiguration feasible(KernelConfiguration c, DType dtype) const;
  Gpu gpu_;
};

}  // namespace tensorcraft::op
