// Who may talk to the server: API keys, the Host header, origins of web pages, and the addresses it may bind without a
// key. Pure functions and plain data; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace infer {

// Keys of a file: one per line, blank lines and lines that begin with # are ignored. Throws Error(kInvalidArgument) for
// keys with blanks or control characters and for a file without any. Error(kIo) when it cannot be read.
std::vector<std::string> read_api_keys(const std::string& path);
// Keys separated by commas.
std::vector<std::string> split_api_keys(std::string_view text);

// Which of the keys the header `Authorization: Bearer KEY` holds. Takes as long for a wrong key as for a right one.
std::optional<size_t> find_api_key(const std::vector<std::string>& keys, std::string_view authorization);

// Whether an address to bind reaches this machine alone: localhost, 127.0.0.0/8, ::1.
bool is_loopback(std::string_view host);

// Whether a Host header may be served. Names that were not chosen by whoever started the server are refused, so that a
// web page cannot reach it under a name of its own: allowed are localhost, literal addresses, `bound` and `allowed`
// ("*": all), each with any port.
bool host_allowed(std::string_view header, std::string_view bound, const std::vector<std::string>& allowed);

// Whether a page of this origin may call: it is listed, or it is this server's own (`host`: Host header). Listed are
// origins ("https://a.example:8443"), hosts, for both schemes and, where they name none, any port ("localhost",
// "a.example:8443"), and "*" for all.
bool origin_allowed(std::string_view origin, std::string_view host, const std::vector<std::string>& allowed);

// The value of Access-Control-Allow-Headers: what every client sends, and what this one asks for. `asked`: the value of
// Access-Control-Request-Headers; what is no name of a header in it is left out, and so is what exceeds 64 names.
std::string allowed_request_headers(std::string_view asked);

}  // namespace infer
