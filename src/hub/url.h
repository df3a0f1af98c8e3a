// Addresses of HTTP servers. Pure functions; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace infer {

// http or https, without user, password and fragment.
struct Url {
  std::string scheme = "https";
  std::string host;  // lower case; an IPv6 address without its brackets
  int port = 443;
  std::string target = "/";  // path and query, percent-encoded

  std::string origin() const;  // "https://host", with the port if it is not the scheme's own
  std::string path() const;    // of the target
  std::string text() const { return origin() + target; }
  std::string shown() const { return origin() + path(); }  // for messages: a query may hold a signature

  bool same_origin(const Url& other) const;
};

// Nothing if it is not an http or https URL, names a user, or has characters that a URL cannot have.
std::optional<Url> parse_url(std::string_view text);
// What a Location header with this value means in a response from `base`: a URL, or a path on the same server.
std::optional<Url> resolve_url(const Url& base, std::string_view location);

// Encodes all but letters, digits, "-._~" and, in a path, "/".
std::string percent_encoded_path(std::string_view path);
// Nothing for an incomplete escape.
std::optional<std::string> percent_decoded(std::string_view text);

std::string lower_case(std::string_view text);  // of ASCII letters

}  // namespace infer
