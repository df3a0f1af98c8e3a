// What a server says about a file before it is downloaded.
#pragma once

#include <cstdint>
#include <string>

#include "src/hub/fetch.h"
#include "src/hub/variants.h"

namespace infer {

struct FileProbe {
  Url url;  // after redirects; later requests go there directly
  uint64_t size = 0;
  std::string etag;    // strong; "" if there is none
  std::string sha256;  // "" if the server does not say
  bool has_ranges = false;
};

// Throws what request_error() says, and Error(kInvalidFile) if the size is not file.size (unless that is 0).
FileProbe probe_file(HttpClient& client, const RemoteFile& file, const FetchOptions& options, const HubEvents& events);

// "bytes A-B/TOTAL" of a 206.
struct ContentRange {
  uint64_t first = 0, last = 0, total = 0;
};
bool parse_content_range(const std::string& header, ContentRange& range);
// The value of an ETag that identifies the bytes: not a weak one. With its quotes.
std::string strong_etag(const ResponseHead& head);

}  // namespace infer
