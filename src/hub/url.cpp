#include "src/hub/url.h"

#include <algorithm>
#include <cctype>
#include <charconv>

namespace infer {
namespace {

int default_port(const std::string& scheme) { return scheme == "http" ? 80 : 443; }

bool is_host(std::string_view host) {
  return !host.empty() && host.size() <= 255 && std::all_of(host.begin(), host.end(), [](unsigned char c) {
    return std::isalnum(c) || c == '-' || c == '.' || c == '_';
  });
}

bool is_ipv6_address(std::string_view host) {
  return !host.empty() && std::all_of(host.begin(), host.end(),
                                      [](unsigned char c) { return std::isxdigit(c) || c == ':' || c == '.'; });
}

// "host", "host:port", "[address]:port" into `url`.
bool parse_authority(std::string_view text, Url& url) {
  std::string_view port;
  if (text.starts_with('[')) {
    const size_t end = text.find(']');
    if (end == std::string_view::npos || !is_ipv6_address(text.substr(1, end - 1))) return false;
    url.host = lower_case(text.substr(1, end - 1));
    text.remove_prefix(end + 1);
    if (!text.empty() && text[0] != ':') return false;
    port = text.empty() ? text : text.substr(1);
  } else {
    const size_t colon = text.find(':');
    if (!is_host(text.substr(0, colon))) return false;
    url.host = lower_case(text.substr(0, colon));
    if (colon != std::string_view::npos) port = text.substr(colon + 1);
  }
  if (port.empty()) return true;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), url.port);
  return error == std::errc() && end == port.data() + port.size() && url.port > 0 && url.port < 65536;
}

bool is_unreserved(unsigned char c) { return std::isalnum(c) || c == '-' || c == '.' || c == '_' || c == '~'; }

}  // namespace

std::string lower_case(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

std::string Url::origin() const {
  const bool address = host.find(':') != std::string::npos;
  std::string result = scheme + "://" + (address ? "[" + host + "]" : host);
  if (port != default_port(scheme)) result += ":" + std::to_string(port);
  return result;
}

std::string Url::path() const { return target.substr(0, target.find('?')); }

bool Url::same_origin(const Url& other) const {
  return scheme == other.scheme && host == other.host && port == other.port;
}

std::optional<Url> parse_url(std::string_view text) {
  if (std::any_of(text.begin(), text.end(), [](unsigned char c) { return c <= 0x20 || c >= 0x7F; }))
    return std::nullopt;
  Url url;
  const size_t separator = text.find("://");
  if (separator == std::string_view::npos) return std::nullopt;
  url.scheme = lower_case(text.substr(0, separator));
  if (url.scheme != "http" && url.scheme != "https") return std::nullopt;
  url.port = default_port(url.scheme);
  text.remove_prefix(separator + 3);
  text = text.substr(0, text.find('#'));
  const size_t end = std::min(text.find_first_of("/?"), text.size());
  if (!parse_authority(text.substr(0, end), url)) return std::nullopt;
  url.target = std::string(text.substr(end));
  if (!url.target.starts_with('/')) url.target.insert(0, "/");
  return url;
}

std::optional<Url> resolve_url(const Url& base, std::string_view location) {
  if (location.empty()) return std::nullopt;
  if (location.starts_with("//")) return parse_url(base.scheme + ":" + std::string(location));
  if (location.find("://") < location.find_first_of("/?#")) return parse_url(location);
  if (location.starts_with('/')) return parse_url(base.origin() + std::string(location));
  if (location.starts_with('?')) return parse_url(base.origin() + base.path() + std::string(location));
  // Relative to the folder of the base.
  const std::string path = base.path();
  return parse_url(base.origin() + path.substr(0, path.rfind('/') + 1) + std::string(location));
}

std::string percent_encoded_path(std::string_view path) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string result;
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte == '/' || is_unreserved(byte)) {
      result += c;
    } else {
      result += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  return result;
}

std::optional<std::string> percent_decoded(std::string_view text) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      result += text[i];
      continue;
    }
    unsigned byte = 0;
    const char* first = text.data() + i + 1;
    if (i + 2 >= text.size() || std::from_chars(first, first + 2, byte, 16).ptr != first + 2) return std::nullopt;
    result += static_cast<char>(byte);
    i += 2;
  }
  return result;
}

}  // namespace infer
