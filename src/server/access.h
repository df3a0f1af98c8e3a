// Access control: API keys, the Host header, origins of web pages, and the addresses that may be bound without a key.
// Pure functions and plain data; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace infer {

// Reads keys, one per line, ignoring blank lines and lines that begin with #. Throws Error(kInvalidArgument) for keys
// with blanks or control characters and for a file without keys, and Error(kIo) if it cannot be read.
std::vector<std::string> read_api_keys(const std::string& path);
// Splits a comma-separated list of keys.
std::vector<std::string> split_api_keys(std::string_view text);

// The index of the key in the header `Authorization: Bearer KEY`. Takes the same time for wrong and right keys.
std::optional<size_t> find_api_key(const std::vector<std::string>& keys, std::string_view authorization);

// Whether only this machine can reach a bound address: localhost, 127.0.0.0/8, ::1.
bool is_loopback(std::string_view host);

// Whether to serve a request with this Host header. To keep a web page from reaching the server under its own name (DNS
// rebinding), only these are served, each with any port: localhost, literal addresses, `bound` and `allowed` ("*":
// all).
bool host_allowed(std::string_view header, std::string_view bound, const std::vector<std::string>& allowed);

// Whether a page of this origin may call: its origin is listed, or it is this server's own (`host`: Host header). The
// list holds origins ("https://a.example:8443"), hosts ("localhost", "a.example:8443": both schemes, and any port if
// none is given), and "*" for all.
bool origin_allowed(std::string_view origin, std::string_view host, const std::vector<std::string>& allowed);

// The value of Access-Control-Allow-Headers: the headers every client sends, plus those this client asks for. `asked`:
// the value of Access-Control-Request-Headers; invalid names and names beyond the 64th are dropped.
std::string allowed_request_headers(std::string_view asked);

}  // namespace infer
