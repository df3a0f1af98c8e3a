// GET requests over HTTP/1.1 and HTTPS, streamed: redirects, proxies, stalls, cancellation.
//
// Not cpp-httplib's client: version 0.11.4 decodes the escapes in response headers, which makes signed addresses in
// Location useless, and reads 4 KiB at a time. libcurl cannot be linked in without some twenty shared libraries.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/hub/url.h"

namespace infer {

using FetchHeaders = std::vector<std::pair<std::string, std::string>>;

struct HttpClientOptions {
  int connect_seconds = 10;
  int stall_seconds = 30;  // a response that delivers nothing for this long has failed
};

struct FetchRequest {
  Url url;
  FetchHeaders headers;
  std::string token;  // sent as a bearer token to the origin of `url` only, never to the target of a redirect elsewhere
};

// The status line and headers of a response.
struct ResponseHead {
  Url url;  // that answered, after redirects
  int status = 0;
  FetchHeaders headers;  // names in lower case

  std::string get(std::string_view name) const;  // "" if absent; `name` in lower case
};

struct FetchResult {
  enum class End {
    kComplete,  // the whole response was read
    kStopped,   // by a callback or cancel()
    kFailed,    // see `failure`; the head may be there
  };
  End end = End::kFailed;
  ResponseHead head;               // status 0: no response
  std::vector<ResponseHead> hops;  // the redirects that led to it
  std::string failure;             // a sentence without a full stop
  bool may_pass = true;            // whether trying again can help
};

class HttpClient {
 public:
  explicit HttpClient(const HttpClientOptions& options);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // Sees the head of the final response; returns whether to read the body.
  using OnHead = std::function<bool(const ResponseHead& head)>;
  // Gets a piece of the body; returns whether to go on.
  using OnBody = std::function<bool(const char* data, size_t bytes)>;

  // Follows at most 10 redirects, none from https to http. One thread at a time.
  FetchResult get(const FetchRequest& request, const OnHead& on_head, const OnBody& on_body);
  // Ends the request in progress and all later ones. Any thread. A look-up of a name is not interrupted.
  void cancel();

 private:
  struct Connection;
  FetchResult get_once(const Url& url, const FetchRequest& request, const OnHead& on_head, const OnBody& on_body);
  // One exchange on a connection; `result` holds the head as soon as it has arrived. Returns whether the body is whole.
  bool exchange(const Url& url, const FetchRequest& request, const OnHead& on_head, const OnBody& on_body,
                FetchResult& result);
  void connect(const Url& url);
  ResponseHead send_request(const Url& url, const std::string& text);

  const HttpClientOptions options_;
  std::atomic<bool> stop_ = false;
  std::unique_ptr<Connection> connection_;  // null if the next request needs a new one
};

}  // namespace infer
