#include "src/hub/probe.h"

#include <charconv>

#include "ggml-like/bytes_text.h"
#include "ggml-like/message.h"
#include "ggml-like/printable.h"
#include "src/hub/hub_error.h"
#include "src/hub/sha256.h"

namespace infer {
namespace {

bool parse_number(std::string_view text, uint64_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

std::string without_quotes(std::string text) {
  if (text.starts_with("W/")) text.erase(0, 2);
  if (text.size() > 1 && text.front() == '"' && text.back() == '"') text = text.substr(1, text.size() - 2);
  return text;
}

// Hugging Face's redirect to its file servers carries the hash of the content.
std::string hash_of_redirects(const FetchResult& result) {
  for (const ResponseHead& hop : result.hops) {
    for (const char* name : {"x-linked-etag", "etag"}) {
      if (const std::string tag = without_quotes(hop.get(name)); is_sha256(tag)) return tag;
    }
  }
  const std::string tag = without_quotes(result.head.get("x-linked-etag"));
  return is_sha256(tag) ? tag : "";
}

}  // namespace

bool parse_content_range(const std::string& header, ContentRange& range) {
  constexpr std::string_view kUnit = "bytes ";
  std::string_view text = header;
  if (!text.starts_with(kUnit)) return false;
  text.remove_prefix(kUnit.size());
  const size_t dash = text.find('-'), slash = text.find('/');
  if (dash == std::string_view::npos || slash == std::string_view::npos || dash > slash) return false;
  return parse_number(text.substr(0, dash), range.first) &&
         parse_number(text.substr(dash + 1, slash - dash - 1), range.last) &&
         parse_number(text.substr(slash + 1), range.total) && range.first <= range.last && range.last < range.total;
}

std::string strong_etag(const ResponseHead& head) {
  const std::string tag = head.get("etag");
  const bool valid = tag.size() > 2 && tag.size() < 512 && tag.front() == '"' && tag.back() == '"';
  return valid ? tag : "";
}

FileProbe probe_file(HttpClient& client, const RemoteFile& file, const FetchOptions& options, const HubEvents& events) {
  const CancelWatch watch(client, events);
  Attempts attempts(options.retries);
  const FetchRequest request{file.url, {{"Range", "bytes=0-0"}}, file.token};
  for (;;) {
    // The head is enough; with a 200, the whole file would follow.
    const FetchResult result = client.get(
        request, [](const ResponseHead& head) { return head.status != 200; }, [](const char*, size_t) { return true; });
    throw_if_cancelled(events);
    FileProbe probe;
    ContentRange range;
    if (result.head.status == 206 && parse_content_range(result.head.get("content-range"), range)) {
      probe.size = range.total;
      probe.has_ranges = range.first == 0 && range.last == 0;
    } else if (result.head.status == 200) {
      parse_number(result.head.get("content-length"), probe.size);
    }
    if (probe.size > 0) {
      probe.url = result.head.url;
      probe.etag = strong_etag(result.head);
      probe.sha256 = file.sha256.empty() ? hash_of_redirects(result) : file.sha256;
      if (file.size > 0 && probe.size != file.size) {
        throw Error(ErrorCode::kInvalidFile, expected_found(probe.url.host, printable(file.path, 200),
                                                            grouped(file.size) + " bytes", grouped(probe.size)));
      }
      return probe;
    }
    if (result.head.status / 100 == 2 || result.head.status == 416) {
      throw Error(ErrorCode::kInvalidFile,
                  expected_found(result.head.url.host, printable(file.path, 200), "a file with a known size", "none"));
    }
    const auto stopped = [&] { return events.cancelled && events.cancelled(); };
    if (!attempts.wait(result, stopped, events.note)) throw request_error(result, file.path, !file.token.empty());
    throw_if_cancelled(events);
  }
}

}  // namespace infer
