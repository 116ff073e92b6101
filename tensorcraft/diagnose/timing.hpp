// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/cuda/stream.hpp"
#include "tensorcraft/op/variant.hpp"

#include <functional>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

namespace tensorcraft::diagnose {

// How a call is timed: by the clock of the host, by events around it, or by events around a graph
// of many calls.
enum class Method { wall, events, graph };
// Is a call so small that a graph must time it, as the host enqueues no faster?
constexpr bool is_short(double bytes, double us) { return bytes < 16e6 || us < 10; }
std::string_view to_string(Method method);  // "events"

// Enqueues one call on the stream, or computes it on the host, with the n-th copy of its arrays.
using Call = std::function<void(int copy)>;

// Whose turn it is among the copies of a case. All candidates share one: else a call could find in
// the cache what that of another candidate has just read.
struct Rotation {
  int copies = 1;  // that there are
  int next = 0;    // the one whose turn it is
  // That one, and the one behind it is next.
  int turn() { return std::exchange(next, (next + 1) % copies); }
};

// Times one call again and again, each with the next copy of its arrays.
class Timed {
 public:
  virtual ~Timed() = default;
  // Microseconds of one call, the mean of few if one is too short for the clock.
  virtual double microseconds() = 0;
  virtual Method method() const = 0;  // how it is timed
};

// The call must have run before, so that nothing of it is compiled or allocated any more; `rough`
// is about how long it took, in microseconds. The rotation must outlive what is made. Before what
// is timed by events or a graph the same runs untimed: the device is busy while the host enqueues,
// and is not seen waiting for it. A call that cannot be recorded is timed by events.
std::unique_ptr<Timed> make_timed(Call call, Rotation& rotation, Method method, StreamRef stream,
                                  double rough);

// Summarises several runs, in the unit that they have.
struct Times {
  // The middle one, and those with a tenth of the runs below and above them.
  double median = 0, p10 = 0, p90 = 0;
};
// All 0 without a run.
Times times_of(std::vector<double> runs);

// The speed that a kernel reaches.
struct KernelProfile {
  // Microseconds of a call: the middle run, and those with a tenth of the runs below and above.
  double median_us = 0, p10_us = 0, p90_us = 0;
  // These are rates of the call's work in its middle time: 10^12 operations, and 10^9 bytes, per
  // second.
  double achieved_tflops = 0, achieved_gbs = 0;
};

// Measures calls of one stream, or of the host, of which a call has run before.
class PerformanceProfiler {
 public:
  // `runs` of each call are measured, fewer if they are long, after one that is not counted. The
  // stream must outlive it.
  explicit PerformanceProfiler(StreamRef stream, int runs = 20) : stream_(stream), runs_(runs) {}
  // By events or a graph, on the host by its clock; `cost` is the work of the call.
  KernelProfile profile_kernel(const Call& call, Rotation& rotation, const op::Cost& cost) const;

 private:
  const StreamRef stream_;
  const int runs_;
};

}  // namespace tensorcraft::diagnose
