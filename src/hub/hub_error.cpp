#include "src/hub/hub_error.h"

#include <algorithm>
#include <charconv>
#include <ctime>
#include <iomanip>
#include <locale>
#include <sstream>

#include "ggml-like/printable.h"

namespace infer {
namespace {

constexpr int kLongestWait = 300;

// A date of HTTP (RFC 9110, IMF-fixdate), in seconds since 1970; -1 for anything else.
int64_t parse_http_date(const std::string& text) {
  std::istringstream stream(text);
  stream.imbue(std::locale::classic());
  std::tm date = {};
  stream >> std::get_time(&date, "%a, %d %b %Y %H:%M:%S GMT");
  return stream.fail() ? -1 : static_cast<int64_t>(timegm(&date));
}

std::string access_message(const std::string& what, int status, bool had_token) {
  const std::string start = concat(what, " cannot be read (HTTP ", status, "): ");
  if (had_token) return start + "it does not exist, or the token gives no access. Check the name, and HF_TOKEN.";
  return start +
         "it does not exist, or is private or gated. Check the name; for a private model, set HF_TOKEN to a token that "
         "may read it.";
}

}  // namespace

bool may_pass(const FetchResult& result) {
  if (result.head.status == 0 || result.head.status / 100 == 2) return result.may_pass;
  const int status = result.head.status;
  return status == 408 || status == 425 || status == 429 || (status >= 500 && status != 501 && status != 505);
}

int retry_after(const ResponseHead& head) {
  const std::string text = head.get("retry-after");
  int seconds = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error == std::errc() && end == text.data() + text.size())
    return seconds < 0 ? -1 : std::min(seconds, kLongestWait);
  const int64_t date = parse_http_date(text);
  if (date < 0) return -1;
  // By the server's clock if it says what that shows.
  const int64_t server = parse_http_date(head.get("date"));
  const int64_t wait = date - (server >= 0 ? server : static_cast<int64_t>(std::time(nullptr)));
  return static_cast<int>(std::clamp<int64_t>(wait, 0, kLongestWait));
}

Error request_error(const FetchResult& result, const std::string& what, bool had_token) {
  const std::string name = printable(what, 300);
  const int status = result.head.status;
  if (result.end == FetchResult::End::kFailed && (status == 0 || status / 100 == 2 || !result.failure.empty())) {
    return {ErrorCode::kIo, concat("Cannot download ", name, ": ", printable(result.failure, 300), ".")};
  }
  if (status == 401 || status == 403) return {ErrorCode::kIo, access_message(name, status, had_token)};
  if (status == 404 || status == 410) {
    return {ErrorCode::kIo,
            concat(name, " was not found on ", result.head.url.host, " (HTTP ", status, "). Check the name.")};
  }
  if (status == 429) {
    return {ErrorCode::kIo, concat(result.head.url.host, " limits the rate of requests (HTTP 429). Try again later",
                                   had_token ? "." : "; with HF_TOKEN set, the limit is higher.")};
  }
  return {ErrorCode::kIo, concat("Cannot download ", name, ": ", result.head.url.host, " answered with HTTP ", status,
                                 ". Try again later.")};
}

}  // namespace infer
