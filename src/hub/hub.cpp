#include "src/hub/hub.h"

#include <algorithm>

#include "ggml-like/error.h"
#include "ggml-like/printable.h"
#include "src/hub/ollama_registry.h"
#include "src/hub/part_file.h"
#include "src/hub/probe.h"

namespace infer {
namespace {

bool is_on(const std::string& value) {
  const std::string lower = lower_case(value);
  return lower == "1" || lower == "true" || lower == "yes" || lower == "on";
}

// "Q2_K, Q4_K_M and 3 others": the labels of variants, or their files.
std::string choices_text(const std::vector<Variant>& variants) {
  constexpr size_t kShown = 30;
  std::string text;
  for (size_t i = 0; i < std::min(variants.size(), kShown); ++i) {
    const Variant& v = variants[i];
    text += concat(i == 0 ? "" : ", ", printable(v.label.empty() ? v.files.front().path : v.label, 100));
  }
  if (variants.size() > kShown) text += concat(" and ", variants.size() - kShown, " others");
  return text;
}

std::vector<Variant> select(const ModelName& name, const std::vector<Variant>& all) {
  if (name.file.empty()) return matching_variants(all, name.tag);
  std::vector<Variant> matching;
  for (const Variant& variant : all) {
    const auto has = [&](const RemoteFile& file) { return lower_case(file.path) == lower_case(name.file); };
    if (std::any_of(variant.files.begin(), variant.files.end(), has)) matching.push_back(variant);
  }
  return matching;
}

bool same_file(const CachedFile& cached, const RemoteFile& remote) {
  if (remote.size > 0 && cached.size != remote.size) return false;
  if (!cached.sha256.empty() && !remote.sha256.empty()) return cached.sha256 == remote.sha256;
  return !cached.etag.empty() && cached.etag == remote.etag;
}

bool means(const ModelName& name, const CachedModel& model) {
  const bool same_case = name.source == HubSource::kUrl;
  const auto folded = [&](const std::string& text) { return same_case ? text : lower_case(text); };
  if (folded(model.base) != folded(name.base())) return false;
  if (!name.file.empty()) {
    const std::string end = lower_case("/" + name.file);
    return std::any_of(model.files.begin(), model.files.end(),
                       [&](const CachedFile& file) { return lower_case(file.path.string()).ends_with(end); });
  }
  const std::string label = lower_case(model.label), tag = lower_case(name.tag);
  return tag.empty() || label == tag || (name.source == HubSource::kHuggingFace && label == "ud-" + tag);
}

}  // namespace

HubOptions hub_options(const Environment& environment) {
  HubOptions options;
  options.cache = default_cache_folder(environment);
  options.foreign_caches = hugging_face_caches(environment);
  options.hugging_face = hugging_face_options(environment);
  options.ollama = ollama_endpoint(environment);
  options.offline = is_on(environment("HF_HUB_OFFLINE"));
  return options;
}

Hub::Hub(HubOptions options, HubEvents events)
    : options_(std::move(options)),
      events_(std::move(events)),
      cache_(options_.cache),
      client_(options_.download.fetch.http) {}

std::vector<CachedModel> Hub::models() const {
  std::vector<CachedModel> all = cache_.models();
  for (const std::filesystem::path& folder : options_.foreign_caches) {
    for (CachedModel& model : hugging_face_cached_models(folder)) all.push_back(std::move(model));
  }
  return all;
}

std::vector<CachedModel> Hub::find(const ModelName& name) const {
  std::vector<CachedModel> found;
  for (CachedModel& model : models()) {
    const auto same = [&](const CachedModel& other) { return other.name == model.name; };
    if (means(name, model) && std::none_of(found.begin(), found.end(), same)) found.push_back(std::move(model));
  }
  std::stable_sort(found.begin(), found.end(), [](const CachedModel& a, const CachedModel& b) {
    return a.is_own != b.is_own ? a.is_own : is_preferred(a.label, b.label);
  });
  return found;
}

Listing Hub::list(const ModelName& name) {
  if (options_.offline) {
    throw Error(ErrorCode::kIo, concat(printable(name.text(), 300),
                                       " is not in the cache, and offline mode is on (HF_HUB_OFFLINE or --offline)."));
  }
  Listing listing;
  const FetchOptions& fetch = options_.download.fetch;
  if (name.source == HubSource::kOllama) {
    listing.all = {{name.tag, {find_ollama(client_, name, options_.ollama, fetch, events_)}}};
    listing.matching = listing.all;
    return listing;
  }
  if (name.source == HubSource::kUrl) {
    RemoteFile file;
    file.path = name.repo.substr(name.repo.rfind('/') + 1);
    file.url = name.url;
    const FileProbe probe = probe_file(client_, file, fetch, events_);
    file.size = probe.size;
    file.sha256 = probe.sha256;
    file.etag = probe.etag;
    listing.all = {{quantization_of(file.path), {file}}};
    listing.matching = listing.all;
    return listing;
  }
  listing.all = group_variants(list_hugging_face(client_, name, options_.hugging_face, fetch, events_));
  sort_by_preference(listing.all);
  listing.matching = select(name, listing.all);
  if (listing.all.empty()) {
    throw Error(ErrorCode::kIo,
                concat(name.base(), " has no GGUF files. Look for a repository of the model whose name ends in GGUF."));
  }
  if (listing.matching.empty()) {
    throw Error(ErrorCode::kIo,
                concat(name.base(), " has no ", printable(name.file.empty() ? name.tag : name.file, 200), ". It has ",
                       choices_text(listing.all), "."));
  }
  return listing;
}

bool Hub::is_current(const CachedModel& model, const Variant& variant) {
  return model.files.size() == variant.files.size() &&
         std::equal(model.files.begin(), model.files.end(), variant.files.begin(), same_file);
}

// For all files together, so that a split model fails before its first part is downloaded.
void Hub::check_space(const ModelName& name, const Variant& variant) const {
  uint64_t needed = 0;
  for (const RemoteFile& file : variant.files) {
    const std::filesystem::path target = cache_.path_of(name, file);
    std::error_code error;
    if (std::filesystem::file_size(target, error) == file.size && !error) continue;
    const std::optional<PartState> part = load_part_state(target);
    needed += file.size - (part && part->size == file.size ? part->total_done() : 0);
  }
  std::filesystem::path folder = cache_.path_of(name, variant.files.front()).parent_path();
  std::error_code error;
  while (!std::filesystem::exists(folder, error) && folder.has_relative_path()) folder = folder.parent_path();
  check_free_space(folder, needed);
}

CachedModel Hub::pull(const ModelName& name, const Variant& variant, const Listing& listing) {
  check_space(name, variant);
  CachedModel model;
  model.base = name.base();
  model.label = variant.label;
  const bool by_variant = name.source == HubSource::kHuggingFace;
  model.name = by_variant ? variant_name(model.base, variant, listing.all) : name.text();
  for (const RemoteFile& file : variant.files) {
    const std::filesystem::path target = cache_.path_of(name, file);
    const DownloadedFile done = download_file(file, target, model.name, options_.download, events_);
    model.files.push_back({target, done.size, done.sha256, done.etag.empty() ? file.etag : done.etag});
  }
  model.quantization = name.source == HubSource::kOllama ? "" : variant.label;
  if (model.quantization.empty() && options_.quantization) model.quantization = options_.quantization(model.path());
  cache_.add(model);
  model.last_used = std::chrono::system_clock::now();
  return model;
}

std::string Hub::read_start(const RemoteFile& file, size_t bytes) {
  return fetch_start(client_, {file.url, {}, file.token}, bytes, file.path, options_.download.fetch, events_);
}

}  // namespace infer
