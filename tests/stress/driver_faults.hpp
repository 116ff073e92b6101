// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/jit/kernel.hpp"
#include "tensorcraft/runtime/memory/pinned.hpp"
#include "tests/stress/encoder.hpp"
#include "tests/support/fault_point.hpp"

#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/lsan_interface.h>
#endif

// Checks what must hold when calls of a driver fail while a model runs: the fake driver and the
// table of a real one are tested the same way. A Driver has `faults`, `retained_contexts`, alive()
// and damage().
namespace tensorcraft::test {

using Result = std::vector<float>;

struct Attempt {
  std::optional<Result> result;
  ErrorKind kind{};
  std::string error;  // "not typed" for what is no Error
};

inline Attempt attempt_here(const std::function<Result()>& work) {
  Attempt made;
  try {
    made.result = work();
  } catch (const Error& error) {
    made.kind = error.kind();
    made.error = error.what();
  } catch (...) {
    made.error = "not typed";
  }
  return made;
}

// On a thread of its own, since each thread remembers kernels.
inline Attempt attempt(Device device) {
  Attempt made;
  std::thread([&] { made = attempt_here([&] { return Encoder(device).run(); }); }).join();
  return made;
}

// Host memory that nothing points to any more; asked at the end, when it is all.
inline std::string host_leaks() {
#if defined(__SANITIZE_ADDRESS__)
  if (__lsan_do_recoverable_leak_check() != 0) return " host memory leaks;";
#endif
  return {};
}

inline Result encoder_reference() { return Encoder(Device::cpu(), "reference").run(); }

// Empty if `values` are as close to the reference as sums of float32 are.
inline std::string difference(const Result& values, const Result& reference) {
  if (values.size() != reference.size()) return "another size";
  for (size_t i = 0; i < values.size(); ++i)
    if (!(std::abs(values[i] - reference[i]) <= 1e-4f))
      return join("value ", i, " is ", values[i], ", expected ", reference[i]);
  return {};
}

inline ErrorKind kind_of_status(int status) {
  if (is_sticky(status)) return ErrorKind::device_lost;
  return status == kOutOfMemory    ? ErrorKind::out_of_memory
         : status == kInvalidValue ? ErrorKind::value
                                   : ErrorKind::internal;
}

struct Fault {
  long n;
  int status;
  Repeat repeat;
  std::string name() const {
    constexpr const char* words[] = {"call ", "every call of number ", "all calls from "};
    return join(words[int(repeat)], n, ", status ", status, ":");
  }
};

// Returns the wrong answers of a lost device; empty if each use names the loss as `cause` does.
inline std::string wrong_answers_after_loss(Device device, const std::string& cause) {
  const std::function<Result()> uses[] = {
      [&] { return synchronize(device), Result(); }, [&] { return Stream(device.index), Result(); },
      [&] { return Event(device.index), Result(); },
      [&] { return Tensor(DType::float32, {4}, device), Result(); },
      [&] { return StreamRef::default_stream(device.index).synchronize(), Result(); }};
  std::string wrong;
  for (const auto& use : uses) {
    const Attempt made = attempt_here(use);
    if (made.result || made.kind != ErrorKind::device_lost)
      wrong += " a use after the loss gives no DeviceLost;";
    else if (made.error.find(cause) == std::string::npos)
      wrong += " a use after the loss does not name the cause: " + made.error + ";";
  }
  return wrong;
}

// "cuLaunchKernelEx ...: text (700)" of an error, whatever stands around it.
inline std::string cause_of(const std::string& error) {
  constexpr std::string_view before = "since an earlier error: ";
  const size_t begin = error.find(before), end = error.find(')', error.rfind("("));
  const size_t from = begin == std::string::npos ? 0 : begin + before.size();
  return error.substr(from, end == std::string::npos ? end : end + 1 - from);
}

inline std::string wrong_after_loss(const FaultPoint& faults, Device device, const Attempt& first,
                                    int status) {
  const Attempt second = attempt(device);
  if (second.result || second.kind != ErrorKind::device_lost)
    return " used after a loss: " + second.error + ";";
  std::string wrong;
  const std::string cause = cause_of(second.error);
  if (cause.find(join("(", status, ")")) == std::string::npos)
    wrong += " the first cause is not named: " + second.error + ";";
  if (!first.result && first.error.find(cause) == std::string::npos)
    wrong += " the cause was " + first.error + " and is " + cause + ";";
  wrong += wrong_answers_after_loss(device, cause);
  if (faults.after_loss() != 0) wrong += " a lost device was called;";
  return wrong;
}

inline void give_cached_memory_back() {
  for (int device = 0; device < cuda_device_count(); ++device) {
    allocator(Device::cuda(device)).trim();
    pinned_pool(device).trim();
  }
}

// Returns what is wrong once a fault met the model on a fresh driver; empty if all is well.
template <class Driver>
std::string run_with_fault(Driver& driver, Device device, const Fault& fault, const Result& right) {
  const int before = driver.alive();
  driver.faults.plan(fault.n, fault.status, fault.repeat);
  const Attempt first = attempt(device);
  const long given = driver.faults.given();
  const bool lost = given > 0 && is_sticky(fault.status);
  std::string wrong;
  if (first.result && *first.result != right) wrong += " wrong result;";
  if (!first.result && first.error == "not typed") wrong += " an error without a type;";
  if (!first.result && given == 0) wrong += " failed without a fault: " + first.error + ";";
  if (!first.result && first.kind != kind_of_status(fault.status))
    wrong += " the error is of another kind: " + first.error + ";";
  if (lost) {
    wrong += wrong_after_loss(driver.faults, device, first, fault.status);
  } else {
    driver.faults.clear();
    const Attempt second = attempt(device);
    if (!second.result || *second.result != right)
      wrong += " does not recover: " + second.error + ";";
  }
  jit::clear_memory();
  if (!lost) give_cached_memory_back();
  // Memory that a lost device held goes with the process; memory that a driver refuses to free
  // stays.
  const int left = driver.alive() - before;
  const bool may_leak = fault.repeat == Repeat::from || fault.n < 8;
  const long excused = fault.repeat == Repeat::once ? 0 : may_leak ? given : 0;
  if (!lost && left > excused) wrong += join(" ", left, " objects leak;");
  if (driver.retained_contexts > 1) wrong += " a context is retained twice;";
  return wrong + driver.damage();
}

}  // namespace tensorcraft::test
