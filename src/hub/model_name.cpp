#include "src/hub/model_name.h"

#include <algorithm>
#include <cctype>
#include <vector>

#include "ggml-like/printable.h"

namespace infer {
namespace {

bool is_word(std::string_view text) {
  return !text.empty() && text.size() <= 128 && text[0] != '.' && text[0] != '-' &&
         std::all_of(text.begin(), text.end(),
                     [](unsigned char c) { return std::isalnum(c) || c == '-' || c == '.' || c == '_'; });
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(separator, at), text.size());
    parts.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

// The part after the last colon, which is removed from `text`; false if that is no tag.
bool take_tag(std::string_view& text, std::string& tag) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return true;
  tag = std::string(text.substr(colon + 1));
  text = text.substr(0, colon);
  return is_word(tag);
}

// What follows the host: ORG/REPO[:TAG], ORG/REPO/FILE, ORG/REPO/resolve/main/FILE.
std::optional<ModelName> parse_hugging_face(std::string_view text) {
  ModelName name;
  std::vector<std::string_view> parts = split(text.substr(0, text.find('?')), '/');
  if (parts.size() > 2 && parts.back().empty()) parts.pop_back();
  if (parts.size() == 2 && !take_tag(parts[1], name.tag)) return std::nullopt;
  if (parts.size() < 2 || !is_word(parts[0]) || !is_word(parts[1])) return std::nullopt;
  name.repo = std::string(parts[0]) + "/" + std::string(parts[1]);
  size_t first = 2;  // part of the file's path
  if (parts.size() > 2 && (parts[2] == "resolve" || parts[2] == "blob" || parts[2] == "tree" || parts[2] == "raw")) {
    if (parts.size() < 4 || parts[3] != "main") return std::nullopt;
    first = 4;
  }
  for (size_t i = first; i < parts.size(); ++i) {
    const std::optional<std::string> part = percent_decoded(parts[i]);
    if (!part) return std::nullopt;
    name.file += (name.file.empty() ? "" : "/") + *part;
  }
  if (!name.file.empty() && (!is_safe_relative_path(name.file) || !name.file.ends_with(".gguf"))) return std::nullopt;
  return name;
}

// What follows the host: NAME[:TAG], NAMESPACE/NAME[:TAG].
std::optional<ModelName> parse_ollama(std::string_view text) {
  ModelName name;
  name.source = HubSource::kOllama;
  if (!take_tag(text, name.tag)) return std::nullopt;
  std::vector<std::string_view> parts = split(text, '/');
  if (parts.size() == 1) parts.insert(parts.begin(), "library");
  if (parts.size() != 2 || !is_word(parts[0]) || !is_word(parts[1])) return std::nullopt;
  name.repo = std::string(parts[0]) + "/" + std::string(parts[1]);
  if (name.tag.empty()) name.tag = "latest";
  return name;
}

std::optional<ModelName> parse_file_url(const Url& url) {
  const std::optional<std::string> path = percent_decoded(url.path().substr(1));
  ModelName name;
  name.source = HubSource::kUrl;
  name.url = url;
  if (!path || !is_safe_relative_path(*path)) return std::nullopt;
  std::string host = url.host;  // as part of a path
  std::replace(host.begin(), host.end(), ':', '_');
  const std::string port = url.origin().substr(url.origin().rfind(':') + 1);
  if (port.find_first_not_of("0123456789") == std::string::npos) host += "_" + port;
  name.repo = host + "/" + *path;
  return name;
}

// Whether a name ends as files do. Names of models have versions after a dot: llama3.2.
bool has_suffix(std::string_view name) {
  name = name.substr(0, name.find(':'));
  const size_t dot = name.rfind('.');
  return dot != std::string_view::npos && dot + 1 < name.size() &&
         std::isalpha(static_cast<unsigned char>(name[dot + 1])) != 0;
}

bool take_prefix(std::string_view& text, std::string_view prefix) {
  if (lower_case(text.substr(0, prefix.size())) != prefix) return false;
  text.remove_prefix(prefix.size());
  return true;
}

}  // namespace

bool is_safe_relative_path(std::string_view path) {
  size_t at = 0;
  char32_t ignored = 0;
  while (at < path.size()) {
    const size_t n = utf8_character(path.substr(at), ignored);
    if (n == 0) return false;
    at += n;
  }
  if (path.empty() || path.size() > 1024 || printable(path, 4096) != path) return false;
  const std::vector<std::string_view> parts = split(path, '/');
  return std::all_of(parts.begin(), parts.end(), [](std::string_view part) {
    // Room for what the cache appends to names.
    return !part.empty() && part[0] != '.' && part.size() <= 200 && part.find('\\') == std::string_view::npos;
  });
}

std::string ModelName::base() const {
  switch (source) {
    case HubSource::kHuggingFace:
      return "hf.co/" + repo;
    case HubSource::kOllama:
      return "ollama.com/" + repo;
    case HubSource::kUrl:
      return url.shown();
  }
  return "";
}

std::string ModelName::with_tag(const std::string& with) const {
  if (!file.empty()) return base() + "/" + file;
  return with.empty() ? base() : base() + ":" + with;
}

std::string ModelName::folder() const {
  if (source == HubSource::kUrl) return "url/" + repo.substr(0, repo.rfind('/'));
  return base();
}

std::optional<ModelName> parse_model_name(std::string_view text, bool bare) {
  std::string_view rest = text;
  const std::optional<Url> url = parse_url(text);
  if (url) {
    rest.remove_prefix(rest.find("://") + 3);
  } else if (text.find("://") != std::string_view::npos) {
    return std::nullopt;
  }
  for (const char* host : {"hf.co/", "huggingface.co/", "www.huggingface.co/"}) {
    if (take_prefix(rest, host)) return parse_hugging_face(rest);
  }
  for (const char* host : {"ollama.com/", "www.ollama.com/", "registry.ollama.ai/"}) {
    if (take_prefix(rest, host)) return parse_ollama(rest);
  }
  if (url) return parse_file_url(*url);
  if (!bare) return std::nullopt;
  if (text.find('/') == std::string_view::npos) return has_suffix(text) ? std::nullopt : parse_ollama(text);
  // A path, unless there is exactly one slash.
  if (std::count(text.begin(), text.end(), '/') != 1) return std::nullopt;
  std::optional<ModelName> name = parse_hugging_face(text);
  return name && name->repo.ends_with(".gguf") ? std::nullopt : name;
}

}  // namespace infer
