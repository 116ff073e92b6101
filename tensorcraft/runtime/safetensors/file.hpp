// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/source_location.hpp"
#include "tensorcraft/core/tensor_view.hpp"
#include "tensorcraft/runtime/memory/tensor.hpp"
#include "tensorcraft/runtime/safetensors/parser.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tensorcraft {

// A loaded tensor: memory of its own on one device that nothing can write through, independent of
// the file and of every other tensor.
class TensorResource {
 public:
  // Takes the memory over; no checksum: verify() cannot be asked.
  TensorResource(std::string name, Tensor storage, std::optional<uint64_t> checksum)
      : name_(std::move(name)), storage_(std::move(storage)), checksum_(checksum) {}

  // As the file names it.
  const std::string& name() const { return name_; }
  // Read-only, so it gives no address to write to; valid while this resource lives.
  TensorView view() const { return storage_.view().as_read_only(); }
  // Reads the bytes again and compares them with the checksum of the load; kind internal if they
  // changed, kind value if the load took no checksum.
  void verify() const;
  // The checksum of the load, if it took one.
  const std::optional<uint64_t>& checksum() const { return checksum_; }
  // Work that is enqueued on `stream` until this resource is gone uses it, as Tensor::record().
  void record(StreamRef stream) const { storage_.record(stream); }
  // Returns the stream of its memory.
  StreamRef stream() const { return storage_.stream(); }

 private:
  std::string name_;
  Tensor storage_;
  std::optional<uint64_t> checksum_;
};

// How load() reads.
struct LoadOptions {
  bool checksum = false;  // keep an XXH3 hash for verify()
  // Where the memory comes from, which has to be the device's; null: allocator(device).
  Allocator* source = nullptr;
  // The memory's stream, as Tensor's; none: the current one.
  std::optional<StreamRef> stream = std::nullopt;
  // load_all() leaves out what load() refuses for its dtype or its number of dimensions.
  bool skip_refused = false;
  // Called after each piece, of a load to a GPU now and then, with the bytes done and in total. It
  // may throw to stop the load.
  std::function<void(uint64_t done, uint64_t total)> progress = nullptr;
};

// The tensors of a safetensors file, or of the shards that an index names. Opening checks every
// header; data is read by load(). Const calls may come from several threads at once.
class SafeTensors {
 public:
  // A file, an index (.json), or a folder with one of the two. Kind not_found for a missing path,
  // io if it cannot be read, value (with the refusal's name) if it breaks the format.
  explicit SafeTensors(const std::string& path);
  ~SafeTensors();
  SafeTensors(SafeTensors&&) noexcept;
  SafeTensors& operator=(SafeTensors&&) noexcept;

  // In the order of the data, shard after shard.
  const std::vector<std::string>& names() const { return names_; }
  bool contains(std::string_view name) const { return entries_.find(name) != entries_.end(); }
  // Kind key for an unknown name.
  const safetensors::TensorInfo& info(std::string_view name) const;
  // The pairs of __metadata__, shard after shard.
  const std::vector<std::pair<std::string, std::string>>& metadata() const { return metadata_; }
  // Bytes of all tensors.
  uint64_t nbytes() const;

  // Reads one tensor into new memory of the device and waits for it. Kind key for an unknown name,
  // type for a dtype the library lacks, value for more than kMaxRank dimensions, io if the file is
  // shorter than it was or changed since it was opened.
  std::shared_ptr<const TensorResource> load(std::string_view name, Device device = Device::cpu(),
                                             const LoadOptions& options = {}) const;
  // Every tensor, in the order of names(); before any is read, fails as load() would, unless the
  // options say to skip.
  std::vector<std::shared_ptr<const TensorResource>> load_all(
      Device device = Device::cpu(), const LoadOptions& options = {}) const;

 private:
  class Shard;
  struct Entry {
    const Shard* shard;
    safetensors::TensorInfo info;
  };
  class Loader;
  const Entry& entry(std::string_view name) const;
  void open_index(const std::string& path);
  void add_shard(const std::string& path);

  std::string path_;
  std::vector<std::unique_ptr<Shard>> shards_;
  std::map<std::string, Entry, std::less<>> entries_;
  std::vector<std::string> names_;
  std::vector<std::pair<std::string, std::string>> metadata_;
};

// Loaded tensors by their names in the file. A copy shares their memory.
class Weights {
 public:
  // Takes over what load_all() gave.
  explicit Weights(const std::vector<std::shared_ptr<const TensorResource>>& tensors);
  // Read-only; valid while this object or a copy lives. Kind key, at the caller's line, for another
  // name.
  TensorView at(std::string_view name,
                std::source_location where = std::source_location::current()) const;
  bool contains(std::string_view name) const { return tensors_.contains(name); }
  size_t size() const { return tensors_.size(); }
  // In alphabetical order; each lives as long as its tensor.
  std::vector<std::string_view> names() const;

 private:
  std::map<std::string_view, std::shared_ptr<const TensorResource>> tensors_;  // by their own names
};

// All tensors of a file, an index or a folder, on a device; the errors of SafeTensors, which loads
// single ones.
Weights load_safetensors(const std::string& path, Device device = Device::cpu(),
                         std::source_location where = std::source_location::current());

}  // namespace tensorcraft
