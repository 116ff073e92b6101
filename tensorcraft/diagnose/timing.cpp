// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/diagnose/timing.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/cuda/graph.hpp"
#include "tensorcraft/cuda/timer.hpp"

#include <algorithm>
#include <chrono>

namespace tensorcraft::diagnose {
namespace {

constexpr double kShortestWall = 100;  // microseconds that the host's clock measures well
constexpr int kFewestNodes = 16;       // of a graph, so that its launch does not count
constexpr double kProfileUs = 20e3;    // that a profile takes, or three runs

class Wall : public Timed {
 public:
  Wall(Call call, Rotation& rotation, double rough)
      : call_(std::move(call)),
        rotation_(rotation),
        calls_(std::clamp(int(kShortestWall / std::max(rough, 0.1)), 1, 1000)) {}
  double microseconds() override {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < calls_; ++i) call_(rotation_.turn());
    const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - start;
    return time.count() / calls_;
  }
  Method method() const override { return Method::wall; }

 private:
  const Call call_;
  Rotation& rotation_;
  const int calls_;
};

class Events : public Timed {
 public:
  Events(Call call, Rotation& rotation, StreamRef stream)
      : call_(std::move(call)), rotation_(rotation), timer_(stream) {}
  double microseconds() override {
    call_(rotation_.turn());
    timer_.start();
    call_(rotation_.turn());
    return timer_.stop() * 1e3;
  }
  Method method() const override { return Method::events; }

 private:
  const Call call_;
  Rotation& rotation_;
  EventTimer timer_;
};

class Replay : public Timed {
 public:
  Replay(const Call& call, int copies, StreamRef stream)
      : nodes_(std::max(copies, kFewestNodes)),
        stream_(stream),
        timer_(stream),
        graph_(stream, [&] {
          for (int i = 0; i < nodes_; ++i) call(i % copies);
        }) {}
  double microseconds() override {
    graph_.launch(stream_);
    timer_.start();
    graph_.launch(stream_);
    return timer_.stop() * 1e3 / nodes_;
  }
  Method method() const override { return Method::graph; }

 private:
  const int nodes_;
  const StreamRef stream_;
  EventTimer timer_;
  Graph graph_;
};

}  // namespace

std::string_view to_string(Method method) {
  switch (method) {
    case Method::wall:
      return "wall";
    case Method::events:
      return "events";
    case Method::graph:
      return "graph";
  }
  return "";
}

std::unique_ptr<Timed> make_timed(Call call, Rotation& rotation, Method method, StreamRef stream,
                                  double rough) {
  if (method == Method::wall) return std::make_unique<Wall>(std::move(call), rotation, rough);
  if (method == Method::graph) try {
      return std::make_unique<Replay>(call, rotation.copies, stream);
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::device_lost) throw;
    }
  return std::make_unique<Events>(std::move(call), rotation, stream);
}

Times times_of(std::vector<double> runs) {
  if (runs.empty()) return {};
  std::ranges::sort(runs);
  const size_t n = runs.size();
  return {(runs[(n - 1) / 2] + runs[n / 2]) / 2, runs[n / 10], runs[n * 9 / 10]};
}

KernelProfile PerformanceProfiler::profile_kernel(const Call& call, Rotation& rotation,
                                                  const op::Cost& cost) const {
  const bool on_host = !stream_.handle();
  auto timed = make_timed(call, rotation, on_host ? Method::wall : Method::events, stream_,
                          kShortestWall);  // so that it is one call
  const double rough = timed->microseconds();
  if (on_host)
    timed = make_timed(call, rotation, Method::wall, stream_, rough);
  else if (is_short(cost.bytes, rough))
    timed = make_timed(call, rotation, Method::graph, stream_, rough);
  std::vector<double> runs;
  const int affordable = int(std::min(kProfileUs / std::max(rough, 1.0), 1e6));
  for (int i = std::clamp(affordable, std::min(3, runs_), runs_); i > 0; --i)
    runs.push_back(timed->microseconds());
  const Times times = times_of(std::move(runs));
  KernelProfile profile{times.median, times.p10, times.p90};
  if (times.median > 0) {
    profile.achieved_tflops = cost.flops / times.median / 1e6;
    profile.achieved_gbs = cost.bytes / times.median / 1e3;
  }
  return profile;
}

}  // namespace tensorcraft::diagnose
