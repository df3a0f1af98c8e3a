#include "src/hub/proxy.h"

#include <cstdlib>
#include <string_view>

#include "ggml-like/error.h"
#include "ggml-like/printable.h"

namespace infer {
namespace {

// Whether an entry of no_proxy covers the URL: "*", a domain with all below it (with or without a leading dot), an
// address; each may have a port.
bool covers(std::string_view entry, const Url& url) {
  if (entry == "*") return true;
  std::string text = lower_case(entry);
  const size_t colon = text.rfind(':');
  const bool has_port = colon != std::string::npos && text.find(':') == colon;  // else an IPv6 address
  if (text.starts_with('[')) {
    const size_t end = text.find(']');
    if (text.substr(std::min(end, text.size())) != "]" &&
        text.substr(std::min(end, text.size())) != "]:" + std::to_string(url.port)) {
      return false;
    }
    text = text.substr(1, end - 1);
  } else if (has_port) {
    if (text.substr(colon + 1) != std::to_string(url.port)) return false;
    text.resize(colon);
  }
  if (text.starts_with("*.")) text.erase(0, 1);
  if (text.starts_with('.')) text.erase(0, 1);
  if (text.empty()) return false;
  return url.host == text || url.host.ends_with("." + text);
}

bool is_direct(const Url& url, std::string_view list) {
  while (!list.empty()) {
    const size_t end = std::min(list.find_first_of(", \t"), list.size());
    if (covers(list.substr(0, end), url)) return true;
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return false;
}

Proxy parse_proxy(const std::string& name, const std::string& value) {
  const auto refuse = [&] {
    return Error(ErrorCode::kInvalidArgument, concat(name, " is not the address of an HTTP proxy. Write ", name,
                                                     "=http://HOST:PORT, with USER:PASSWORD@ before HOST if needed."));
  };
  std::string text = value.find("://") == std::string::npos ? "http://" + value : value;
  Proxy proxy;
  const size_t start = text.find("://") + 3;
  if (const size_t at = text.rfind('@'); at != std::string::npos) {
    const std::string login = text.substr(start, at - start);
    const size_t colon = std::min(login.find(':'), login.size());
    const auto user = percent_decoded(login.substr(0, colon));
    const auto password = percent_decoded(login.substr(std::min(colon + 1, login.size())));
    if (!user || !password) throw refuse();
    proxy.user = *user;
    proxy.password = *password;
    text.erase(start, at + 1 - start);
  }
  const std::optional<Url> url = parse_url(text);
  if (!url || url->scheme != "http") throw refuse();
  proxy.host = url->host;
  // As curl does: 1080 unless a port is given.
  proxy.port = text.find(':', start) == std::string::npos ? 1080 : url->port;
  return proxy;
}

}  // namespace

std::string process_environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

std::optional<Proxy> proxy_for(const Url& url, const Environment& environment) {
  const auto first_of = [&](std::initializer_list<const char*> names) -> std::pair<std::string, std::string> {
    for (const char* name : names) {
      if (std::string value = environment(name); !value.empty()) return {name, value};
    }
    return {};
  };
  if (is_direct(url, first_of({"no_proxy", "NO_PROXY"}).second)) return std::nullopt;
  const auto [name, value] = url.scheme == "http" ? first_of({"http_proxy", "all_proxy", "ALL_PROXY"})
                                                  : first_of({"https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"});
  if (value.empty()) return std::nullopt;
  return parse_proxy(name, value);
}

}  // namespace infer
