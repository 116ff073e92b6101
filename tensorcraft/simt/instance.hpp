// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/dtype.hpp"
#include "tensorcraft/core/kernel_config.hpp"
#include "tensorcraft/simt/launch.hpp"

#include <array>
#include <span>
#include <string_view>

// Kernels that are compiled ahead for the emulator, as sources in the build folder that
// tests/support/write_instances.cpp writes. All others are compiled when a call asks for them, see
// jit/host_compiler.hpp.
namespace tensorcraft::simt {

// One of them: a rung with its types and Config fixed.
struct Instance {
  std::string_view function;  // jit::Rung::function
  std::array<DType, kMaxKernelTypes> types{};
  int num_types = 0;
  ConfigBytes config{};
  Body body = nullptr;
};

// The kernel that a launch asks for.
struct Wanted {
  std::string_view function;
  std::span<const DType> types;
  const ConfigBytes& config;
};
// Finds an instance; null: it has none.
using FindInstance = const Instance* (*)(const Wanted&);

// Makes instances known for as long as the object lives, to launches that begin from then on. As a
// static object of a library's or a program's own.
class KnownInstances {
 public:
  explicit KnownInstances(FindInstance find);
  ~KnownInstances();
  KnownInstances(const KnownInstances&) = delete;
  KnownInstances& operator=(const KnownInstances&) = delete;

 private:
  friend const Instance* find_instance(const Wanted&);
  FindInstance find_;
  KnownInstances* next_;
};

// In a list, which is ordered by function, and among all that are known. Null if there is none.
const Instance* find_in(std::span<const Instance> list, const Wanted& wanted);
const Instance* find_instance(const Wanted& wanted);

}  // namespace tensorcraft::simt
