// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/runtime/memory/pool.hpp"
#include "tests/support/chat_trace.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <sstream>
#include <string>
#include <vector>

namespace tensorcraft::test {

// The recorded trace, as it is replayed.
struct ChatTrace {
  using Events = std::vector<int64_t>;
  Events load, cache;
  std::vector<Events> steps;

  static ChatTrace read() {
    ChatTrace trace;
    Events* section = nullptr;
    size_t begin = 0;  // of what is repeated
    int times = 1;
    std::istringstream in{std::string(kChatTrace)};
    for (std::string word; in >> word;) {
      if (word.back() == '{') {
        begin = section->size();
        times = std::atoi(word.c_str());
      } else if (word == "}") {
        const Events part(section->begin() + std::ptrdiff_t(begin), section->end());
        for (int i = 1; i < times; ++i) section->insert(section->end(), part.begin(), part.end());
      } else if (word[0] >= 'a') {
        section = &trace.section(word);
      } else {
        section->push_back(std::atoll(word.c_str()));
      }
    }
    return trace;
  }

 private:
  Events& section(const std::string& name) {
    if (name == "load") return load;
    return name == "cache" ? cache : steps.emplace_back();
  }
};

// Servers of the recorded model, as many as fit in nine tenths of a limit: each loads it, makes a
// cache of one of four sizes, runs recorded steps for a while, beside those of others, and ends.
class RecordedServers {
 public:
  RecordedServers(MemoryPool& pool, size_t limit) : pool_(pool), limit_(limit) {}
  ~RecordedServers() {
    for (Server& server : servers_) end(server);
  }
  RecordedServers(const RecordedServers&) = delete;
  RecordedServers& operator=(const RecordedServers&) = delete;

  void run(int64_t operations) {
    while (operations_ < operations) {
      while (used() < limit_ / 10 * 9) begin();
      step_some();
      if (random_() % 8 == 0) end_one();
    }
  }
  // Returns the most that was asked for at once; and the ratio of reserved bytes to it: what the
  // pool's rounding and gaps add to what the servers need.
  size_t peak() const { return peak_; }
  double reserved_over_peak() const {
    return double(pool_.statistics().peak_reserved) / double(peak_);
  }

 private:
  struct Server {
    std::vector<Block> blocks;
  };
  // One server's way through a recorded step.
  struct Run {
    Server* server;
    const ChatTrace::Events* events;
    size_t at = 0;
  };
  size_t used() const { return size_t(pool_.statistics().live_bytes); }

  void play(Server& server, int64_t event, int64_t scale = 1) {
    ++operations_;
    std::vector<Block>& blocks = server.blocks;
    if (event > 0) {
      blocks.push_back(pool_.allocate(size_t(event * scale), {}));
      peak_ = std::max(peak_, used());
    } else {
      const auto gone = blocks.end() + event;
      pool_.free(gone->data, {});
      blocks.erase(gone);
    }
  }
  void begin() {
    Server& server = servers_.emplace_back();
    for (const int64_t event : trace_.load) play(server, event);
    const auto scale = int64_t(1 + random_() % 4);
    for (const int64_t event : trace_.cache) play(server, event, scale);
  }
  void end(Server& server) {
    for (const Block& block : server.blocks) pool_.free(block.data, {});
    operations_ += int64_t(server.blocks.size());
  }
  void end_one() {
    const size_t which = random_() % servers_.size();
    end(servers_[which]);
    std::swap(servers_[which], servers_.back());
    servers_.pop_back();
  }
  // Steps of up to four servers, whose events come in any order among each other.
  void step_some() {
    std::ranges::shuffle(servers_, random_);
    std::vector<Run> runs;
    for (size_t i = 0; i < std::min<size_t>(4, servers_.size()); ++i)
      runs.push_back({&servers_[i], &trace_.steps[random_() % trace_.steps.size()]});
    while (!runs.empty()) {
      Run& run = runs[random_() % runs.size()];
      play(*run.server, (*run.events)[run.at++]);
      if (run.at == run.events->size()) {
        std::swap(run, runs.back());
        runs.pop_back();
      }
    }
  }

  MemoryPool& pool_;
  const size_t limit_;
  const ChatTrace trace_ = ChatTrace::read();
  int64_t operations_ = 0;
  size_t peak_ = 0;
  std::mt19937 random_{1};
  std::vector<Server> servers_;
};

}  // namespace tensorcraft::test
