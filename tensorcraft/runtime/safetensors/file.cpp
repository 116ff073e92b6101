// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/runtime/safetensors/file.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/interrupt.hpp"
#include "tensorcraft/runtime/safetensors/input_file.hpp"
#include "tensorcraft/runtime/safetensors/staging.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <filesystem>
#include <set>

namespace tensorcraft {
namespace fs = std::filesystem;
using safetensors::in_quotes;
using safetensors::InputFile;
using safetensors::Refusal;
using safetensors::Staging;
using safetensors::TensorInfo;

// An open file and the offset of its data.
class SafeTensors::Shard {
 public:
  explicit Shard(const std::string& path) : file(path) {}
  InputFile file;
  uint64_t data_offset = 0;
};

namespace {

[[noreturn]] void refuse(const std::string& path, Refusal reason, const std::string& message) {
  fail(ErrorKind::value, "safetensors: ", path, ": ", message, " [", to_string(reason), "]");
}

template <class T>
T accepted(std::variant<T, safetensors::Refused>&& result, const std::string& path) {
  if (const auto* refused = std::get_if<safetensors::Refused>(&result))
    refuse(path, refused->reason, refused->message);
  return std::get<T>(std::move(result));
}

safetensors::Header read_header(const InputFile& file) {
  std::vector<std::byte> bytes(std::min(file.size(), safetensors::kLengthBytes));
  file.read(bytes.data(), bytes.size(), 0);
  bytes.resize(safetensors::header_extent(bytes, file.size()));
  file.read(bytes.data(), bytes.size(), 0);
  return accepted(safetensors::parse_header(bytes, file.size()), file.path());
}

bool is_index(const fs::path& path) { return path.extension() == ".json"; }

// The one file of a folder whose name ends so, or nothing.
std::string only_file(const std::string& folder, const std::vector<std::string>& names,
                      std::string_view ending) {
  std::string found;
  for (const std::string& name : names) {
    if (!std::string_view(name).ends_with(ending)) continue;
    if (!found.empty())
      fail(ErrorKind::value, "safetensors: ", folder, ": more than one file ends in ", ending, ": ",
           found, ", ", name, "; give the path of one of them");
    found = name;
  }
  return found;
}

std::string file_in_folder(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (auto it = fs::directory_iterator(folder, error); !error && it != fs::directory_iterator();
       it.increment(error))
    names.push_back(it->path().filename());
  if (error)
    fail(ErrorKind::io, "safetensors: ", folder, ": the folder cannot be read: ", error.message());
  std::sort(names.begin(), names.end());
  const auto has = [&](const char* name) {
    return std::binary_search(names.begin(), names.end(), name);
  };
  std::string chosen = has("model.safetensors.index.json") ? "model.safetensors.index.json"
                       : has("model.safetensors")          ? "model.safetensors"
                                                           : "";
  if (chosen.empty()) chosen = only_file(folder, names, ".safetensors.index.json");
  if (chosen.empty()) chosen = only_file(folder, names, ".safetensors");
  if (chosen.empty())
    fail(ErrorKind::not_found, "safetensors: ", folder,
         ": the folder has no file that ends in .safetensors or .safetensors.index.json");
  return fs::path(folder) / chosen;
}

bool is_loadable(const TensorInfo& info) {
  return info.dtype && info.shape.size() <= size_t(kMaxRank);
}

DType loadable_dtype(const TensorInfo& info, const std::string& path) {
  if (info.shape.size() > size_t(kMaxRank))
    fail(ErrorKind::value, "safetensors: ", path, ": tensor ", in_quotes(info.name), " has ",
         info.shape.size(), " dimensions, at most ", kMaxRank, " can be loaded");
  if (!info.dtype)
    fail(ErrorKind::type, "safetensors: ", path, ": tensor ", in_quotes(info.name), " has dtype ",
         info.format, ", which cannot be loaded; accepted: ", safetensors::loadable_formats(),
         "; convert it to one of them and save the file again");
  return *info.dtype;
}

}  // namespace

// Reads tensors to one device; on a GPU its staging memory serves them all.
class SafeTensors::Loader {
 public:
  Loader(Device device, const LoadOptions& options, uint64_t total)
      : device_(device), options_(options), total_(total) {
    if (device.is_cuda()) staging_.emplace(current_stream(device.index));
  }

  std::shared_ptr<const TensorResource> load(const Entry& entry) {
    const InputFile& file = entry.shard->file;
    const DType dtype = loadable_dtype(entry.info, file.path());
    file.check_unchanged();
    Tensor storage(dtype, Dims(entry.info.shape), device_);
    XXH3_state_t hash;
    if (options_.checksum) XXH3_64bits_reset(&hash);
    auto* const target = storage.data_as<std::byte>();
    const uint64_t bytes = entry.info.nbytes();
    for (uint64_t done = 0; done < bytes;) {
      const size_t piece = std::min<uint64_t>(bytes - done, Staging::kBytes);
      std::byte* const to = staging_ ? staging_->next() : target + done;
      file.read(to, piece, entry.shard->data_offset + entry.info.begin + done);
      if (options_.checksum) XXH3_64bits_update(&hash, to, piece);
      if (staging_) staging_->upload(target + done, piece);
      done += piece;
      report(piece);
      check_interrupt();
    }
    if (staging_) staging_->finish();
    file.check_unchanged();
    std::optional<uint64_t> checksum;
    if (options_.checksum) checksum = XXH3_64bits_digest(&hash);
    return std::make_shared<const TensorResource>(entry.info.name, std::move(storage), checksum);
  }

 private:
  void report(uint64_t bytes) {
    done_ += bytes;
    if (options_.progress) options_.progress(done_, total_);
  }

  Device device_;
  const LoadOptions& options_;
  uint64_t total_, done_ = 0;
  std::optional<Staging> staging_;
};

void TensorResource::verify() const {
  if (!checksum_)
    fail(ErrorKind::value, "verify: ", in_quotes(name_),
         " was loaded without a checksum; load it with LoadOptions{.checksum = true}");
  uint64_t hash = 0;
  if (storage_.device().is_cuda()) {
    const Tensor host = storage_.to(Device::cpu());
    hash = XXH3_64bits(host.data(), host.nbytes());
  } else {
    hash = XXH3_64bits(storage_.data(), storage_.nbytes());
  }
  if (hash != *checksum_)
    fail(ErrorKind::internal, "verify: the bytes of ", in_quotes(name_), " on ", storage_.device(),
         " changed since they were loaded; something wrote outside its own memory");
}

SafeTensors::SafeTensors(const std::string& path) {
  // Absolute, so that a later change of folder does not matter.
  std::error_code error;
  path_ = fs::absolute(path, error);
  if (path.empty() || error)
    fail(ErrorKind::not_found, "safetensors: ", in_quotes(path), " is not the path of a file");
  if (fs::is_directory(path_, error)) path_ = file_in_folder(path_);
  is_index(path_) ? open_index(path_) : add_shard(path_);
}

SafeTensors::~SafeTensors() = default;
SafeTensors::SafeTensors(SafeTensors&&) noexcept = default;
SafeTensors& SafeTensors::operator=(SafeTensors&&) noexcept = default;

void SafeTensors::add_shard(const std::string& path) {
  auto shard = std::make_unique<Shard>(path);
  safetensors::Header header = read_header(shard->file);
  shard->data_offset = header.data_offset;
  for (TensorInfo& info : header.tensors) {
    const std::string name = info.name;
    const auto [at, added] = entries_.try_emplace(name, Entry{shard.get(), std::move(info)});
    if (!added)
      refuse(path, Refusal::in_two_shards,
             join("tensor ", in_quotes(name), " is also in ", at->second.shard->file.path()));
    names_.push_back(name);
  }
  std::move(header.metadata.begin(), header.metadata.end(), std::back_inserter(metadata_));
  shards_.push_back(std::move(shard));
}

void SafeTensors::open_index(const std::string& path) {
  const InputFile file(path);
  if (file.size() > safetensors::kMaxHeaderBytes)
    refuse(path, Refusal::header_too_long,
           join("the index has ", file.size(), " bytes, at most ", safetensors::kMaxHeaderBytes,
                " are accepted"));
  std::string text(file.size(), '\0');
  file.read(text.data(), text.size(), 0);
  file.check_unchanged();
  const safetensors::ShardMap map = accepted(safetensors::parse_index(text), path);

  const fs::path folder = fs::path(path).parent_path();
  std::set<std::string> shards;
  for (const auto& [tensor, shard] : map) shards.insert(shard);
  for (const std::string& shard : shards) add_shard(folder / shard);
  for (const auto& [tensor, shard] : map) {
    const auto at = entries_.find(tensor);
    if (at == entries_.end() || at->second.shard->file.path() != folder / shard)
      refuse(path, Refusal::not_in_shard,
             join("tensor ", in_quotes(tensor), " is not in shard ", in_quotes(shard)));
  }
  if (map.size() == entries_.size()) return;
  std::set<std::string_view> listed;
  for (const auto& [tensor, shard] : map) listed.insert(tensor);
  for (const std::string& name : names_)
    if (!listed.contains(name))
      refuse(path, Refusal::not_in_index,
             join("tensor ", in_quotes(name), " of ", entries_.at(name).shard->file.path(),
                  " is not in the index"));
}

const SafeTensors::Entry& SafeTensors::entry(std::string_view name) const {
  const auto at = entries_.find(name);
  if (at != entries_.end()) return at->second;
  std::string some;
  for (size_t i = 0; i < std::min<size_t>(names_.size(), 5); ++i)
    some += (i ? ", " : "") + in_quotes(names_[i]);
  fail(ErrorKind::key, "safetensors: ", path_, ": no tensor is named ", in_quotes(name),
       "; it has ", names_.size(), some.empty() ? "" : ": ", some,
       names_.size() > 5 ? ", ..." : "");
}

const TensorInfo& SafeTensors::info(std::string_view name) const { return entry(name).info; }

uint64_t SafeTensors::nbytes() const {
  uint64_t bytes = 0;
  for (const auto& [name, entry] : entries_) bytes += entry.info.nbytes();
  return bytes;
}

std::shared_ptr<const TensorResource> SafeTensors::load(std::string_view name, Device device,
                                                        const LoadOptions& options) const {
  const Entry& wanted = entry(name);
  return Loader(device, options, wanted.info.nbytes()).load(wanted);
}

std::vector<std::shared_ptr<const TensorResource>> SafeTensors::load_all(
    Device device, const LoadOptions& options) const {
  std::vector<const Entry*> wanted;
  uint64_t bytes = 0;
  for (const std::string& name : names_) {
    const Entry& entry = entries_.at(name);
    if (options.skip_refused && !is_loadable(entry.info)) continue;
    // A tensor that cannot be loaded is refused before any data is read.
    loadable_dtype(entry.info, entry.shard->file.path());
    wanted.push_back(&entry);
    bytes += entry.info.nbytes();
  }
  Loader loader(device, options, bytes);
  std::vector<std::shared_ptr<const TensorResource>> resources;
  resources.reserve(wanted.size());
  for (const Entry* entry : wanted) resources.push_back(loader.load(*entry));
  return resources;
}

}  // namespace tensorcraft
