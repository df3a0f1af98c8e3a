#include "src/hub/hugging_face.h"

#include <fstream>

#include "ggml-like/message.h"
#include "ggml-like/printable.h"
#include "src/hub/json.h"
#include "src/hub/sha256.h"

namespace infer {
namespace {

constexpr size_t kPageBytes = size_t{16} << 20;
constexpr int kMaxPages = 200;
constexpr size_t kMaxFiles = 20000;

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
  return line.size() <= 4096 ? line : "";
}

Url endpoint_url(const std::string& endpoint) {
  std::string text = endpoint;
  while (text.ends_with('/')) text.pop_back();
  const std::optional<Url> url = parse_url(text);
  if (url) return *url;
  throw Error(ErrorCode::kInvalidArgument,
              concat("HF_ENDPOINT is not a URL: ", printable(endpoint, 100), ". Write https://HOST."));
}

std::string find_token(const Environment& environment) {
  for (const char* name : {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"}) {
    if (const std::string token = environment(name); !token.empty()) return token;
  }
  const std::string home = environment("HF_HOME"), cache = environment("XDG_CACHE_HOME"), user = environment("HOME");
  std::string path = environment("HF_TOKEN_PATH");
  if (path.empty() && !home.empty()) path = home + "/token";
  if (path.empty() && !cache.empty()) path = cache + "/huggingface/token";
  if (path.empty() && !user.empty()) path = user + "/.cache/huggingface/token";
  return path.empty() ? "" : first_line(path);
}

// Adds a path to an endpoint that may have one itself.
Url below(const Url& endpoint, const std::string& path) {
  Url url = endpoint;
  url.target = (endpoint.target == "/" ? "" : endpoint.target) + path;
  return url;
}

// One entry of the list; false if it is no GGUF file.
bool read_entry(const nlohmann::json& entry, const std::string& where, RemoteFile& file) {
  if (!entry.is_object())
    throw Error(ErrorCode::kInvalidFile, expected_found(where, "entries that are objects", entry.type_name()));
  if (json_string(entry, "type", where) != "file") return false;
  file.path = json_string(entry, "path", where);
  if (!file.path.ends_with(".gguf")) return false;
  if (!is_safe_relative_path(file.path)) {
    throw Error(ErrorCode::kInvalidFile,
                expected_found(where, "paths inside the repository", printable(file.path, 100)));
  }
  file.size = json_size(entry, "size", where);
  if (entry.contains("lfs") && !entry["lfs"].is_null()) {
    // The hash of the content; the entry's own oid is Git's.
    file.sha256 = json_string(entry["lfs"], "oid", where);
    file.size = json_size(entry["lfs"], "size", where);
    if (!is_sha256(file.sha256)) {
      throw Error(ErrorCode::kInvalidFile,
                  expected_found(where, "lfs.oid", "64 hex digits", printable(file.sha256, 80)));
    }
  }
  return true;
}

}  // namespace

HuggingFaceOptions hugging_face_options(const Environment& environment) {
  HuggingFaceOptions options;
  if (const std::string endpoint = environment("HF_ENDPOINT"); !endpoint.empty()) options.endpoint = endpoint;
  options.token = find_token(environment);
  return options;
}

void check_token(const std::string& token) {
  for (const unsigned char c : token) {
    if (c > 0x20 && c < 0x7F) continue;
    throw Error(ErrorCode::kInvalidArgument,
                "The Hugging Face token has characters that no token has, such as spaces. Check HF_TOKEN or -hft.");
  }
}

std::string next_page(std::string_view link_header) {
  // <URL>; rel="next", <URL>; rel="last"
  while (!link_header.empty()) {
    const size_t open = link_header.find('<'), close = link_header.find('>');
    if (open == std::string_view::npos || close == std::string_view::npos || close < open) return "";
    const std::string_view target = link_header.substr(open + 1, close - open - 1);
    link_header.remove_prefix(close + 1);
    const std::string_view parameters = link_header.substr(0, link_header.find('<'));
    if (parameters.find("rel=\"next\"") != std::string_view::npos ||
        parameters.find("rel=next") != std::string_view::npos) {
      return std::string(target);
    }
  }
  return "";
}

std::vector<RemoteFile> list_hugging_face(HttpClient& client, const ModelName& name, const HuggingFaceOptions& options,
                                          const FetchOptions& fetch, const HubEvents& events) {
  check_token(options.token);
  const Url endpoint = endpoint_url(options.endpoint);
  const std::string where = endpoint.host;
  std::vector<RemoteFile> files;
  FetchRequest request{below(endpoint, concat("/api/models/", name.repo, "/tree/main?recursive=1")), {}, options.token};
  for (int page = 0;; ++page) {
    if (page == kMaxPages) {
      throw Error(ErrorCode::kInvalidFile,
                  expected_found(where, concat("a list of at most ", kMaxPages, " pages"), "more"));
    }
    const Document document = fetch_document(client, request, kPageBytes, name.base(), fetch, events);
    const nlohmann::json list = parse_hub_json(document.text, where);
    if (!list.is_array())
      throw Error(ErrorCode::kInvalidFile, expected_found(where, "a list of files", list.type_name()));
    for (const nlohmann::json& entry : list) {
      RemoteFile file;
      if (!read_entry(entry, where, file)) continue;
      file.url = below(endpoint, concat("/", name.repo, "/resolve/main/", percent_encoded_path(file.path)));
      file.token = options.token;
      files.push_back(std::move(file));
      if (files.size() > kMaxFiles)
        throw Error(ErrorCode::kInvalidFile, expected_found(where, "at most 20,000 files", "more"));
    }
    const std::string next = next_page(document.head.get("link"));
    if (next.empty()) return files;
    const std::optional<Url> url = resolve_url(document.head.url, next);
    if (!url || !url->same_origin(document.head.url)) {
      throw Error(ErrorCode::kInvalidFile,
                  expected_found(where, "a next page on the same server", printable(next, 100)));
    }
    // A token goes only to the endpoint itself.
    request.token = url->same_origin(endpoint) ? options.token : "";
    request.url = *url;
  }
}

}  // namespace infer
