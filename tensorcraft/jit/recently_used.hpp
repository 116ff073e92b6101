// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <list>
#include <map>
#include <utility>

namespace tensorcraft::jit {

// Values by key, at most so many: the one unused for longest goes first. The caller locks.
template <class Key, class Value>
class RecentlyUsed {
 public:
  explicit RecentlyUsed(size_t limit) : limit_(limit) {}

  // Null if there is none; else it is now the one used last.
  Value* find(const Key& key) {
    const auto found = index_.find(key);
    if (found == index_.end()) return nullptr;
    rows_.splice(rows_.begin(), rows_, found->second);
    return &found->second->second;
  }
  // In place of what the key had. What goes is moved to `gone`, which ends where the caller likes.
  void put(const Key& key, Value value, std::list<Value>& gone) {
    if (Value* const old = find(key)) {
      gone.push_back(std::exchange(*old, std::move(value)));
      return;
    }
    rows_.emplace_front(key, std::move(value));
    index_[key] = rows_.begin();
    shrink(gone);
  }
  void set_limit(size_t limit, std::list<Value>& gone) {
    limit_ = limit;
    shrink(gone);
  }
  void clear(std::list<Value>& gone) {
    for (auto& row : rows_) gone.push_back(std::move(row.second));
    index_.clear();
    rows_.clear();
  }
  size_t size() const { return rows_.size(); }

 private:
  using Rows = std::list<std::pair<Key, Value>>;

  void shrink(std::list<Value>& gone) {
    while (rows_.size() > limit_) {
      gone.push_back(std::move(rows_.back().second));
      index_.erase(rows_.back().first);
      rows_.pop_back();
    }
  }

  size_t limit_;
  Rows rows_;
  std::map<Key, typename Rows::iterator> index_;
};

}  // namespace tensorcraft::jit
