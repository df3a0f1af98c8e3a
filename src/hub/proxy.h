// Which proxy a request goes through, as curl reads the environment: http_proxy, https_proxy, all_proxy, no_proxy. Pure
// functions of the environment; any thread.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "src/hub/url.h"

namespace infer {

struct Proxy {
  std::string host;
  int port = 0;
  std::string user, password;  // decoded; "" if there is none

  bool operator==(const Proxy&) const = default;
};

// The value of a variable, "" if it is not set.
using Environment = std::function<std::string(const char* name)>;
std::string process_environment(const char* name);

// Nothing: directly. In capitals, HTTP_PROXY is ignored, because in a CGI program a client's header could set it.
// Throws Error(kInvalidArgument) for a value that is not an http:// address (of a proxy that speaks TLS or SOCKS, for
// example).
std::optional<Proxy> proxy_for(const Url& url, const Environment& environment = process_environment);

}  // namespace infer
