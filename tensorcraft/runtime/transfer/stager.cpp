// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/runtime/transfer/stager.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/start_thread.hpp"
#include "tensorcraft/core/usable_cores.hpp"

#include <algorithm>
#include <utility>

namespace tensorcraft::transfer {

int ThreadStager::usual_threads() { return std::clamp(usable_cores() / 2, 1, 8); }

ThreadStager::ThreadStager(int threads) : count_(threads) {
  if (threads < 1)
    fail(ErrorKind::value, "ThreadStager: threads must be at least 1, got ", threads);
}

ThreadStager::~ThreadStager() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  work_or_end_.notify_all();
}

void ThreadStager::start(uint64_t tag, std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    require_thread();
    works_.emplace_back(tag, std::move(work));
  }
  work_or_end_.notify_one();
}

// The threads that there are do the work of one that is refused; the next work asks for it again.
void ThreadStager::require_thread() {
  if (threads_.size() == size_t(count_)) return;
  try {
    threads_.push_back(start_thread("TransferEngine", "close engines and schedulers that are done",
                                    [this] { run(); }));
  } catch (const Error&) {
    if (threads_.empty()) throw;
  }
}

std::vector<Stager::Done> ThreadStager::take_done() {
  const std::lock_guard lock(mutex_);
  return std::exchange(done_, {});
}

void ThreadStager::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    work_or_end_.wait(lock, [this] { return ending_ || !works_.empty(); });
    if (ending_) return;
    auto [tag, work] = std::move(works_.front());
    works_.pop_front();
    lock.unlock();
    std::exception_ptr error;
    try {
      work();
    } catch (...) {
      error = std::current_exception();
    }
    work = nullptr;  // what it captured goes without the lock
    lock.lock();
    done_.push_back({tag, error});
    lock.unlock();
    if (notice_) notice_();
    lock.lock();
  }
}

}  // namespace tensorcraft::transfer
