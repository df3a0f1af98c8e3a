#include "src/hub/http_client.h"

#include <optional>

#include "ggml-like/error.h"
#include "ggml-like/printable.h"
#include "src/hub/proxy.h"
#include "src/hub/response_reader.h"

namespace infer {
namespace {

constexpr int kMaxRedirects = 10;
constexpr size_t kMostSkipped = size_t{64} << 10;  // of a redirect's body; beyond, a new connection is cheaper

bool is_redirect(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

std::string base64(const std::string& text) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string result;
  for (size_t i = 0; i < text.size(); i += 3) {
    uint32_t bits = 0;
    for (size_t j = 0; j < 3; ++j) {
      bits = bits << 8 | (i + j < text.size() ? static_cast<unsigned char>(text[i + j]) : 0);
    }
    for (size_t j = 0; j < 4; ++j) result += i + j > text.size() ? '=' : kDigits[bits >> (18 - 6 * j) & 63];
  }
  return result;
}

// "host" or "host:port", as the Host header and CONNECT write it.
std::string authority(const Url& url, bool always_port) {
  const std::string origin = url.origin();
  std::string text = origin.substr(origin.find("://") + 3);
  const std::string port = ":" + std::to_string(url.port);
  return always_port && !text.ends_with(port) ? text + port : text;
}

std::string login_header(const Proxy& proxy) {
  if (proxy.user.empty()) return "";
  return concat("Proxy-Authorization: Basic ", base64(proxy.user + ":" + proxy.password), "\r\n");
}

std::string request_text(const Url& url, const FetchRequest& request, const std::optional<Proxy>& proxy) {
  const bool through_proxy = proxy && url.scheme == "http";
  std::string text = concat("GET ", through_proxy ? url.text() : url.target,
                            " HTTP/1.1\r\nHost: ", authority(url, false), "\r\nUser-Agent: infer\r\nAccept: */*\r\n",
                            "Accept-Encoding: identity\r\n", through_proxy ? login_header(*proxy) : "");
  for (const auto& [name, value] : request.headers) text += concat(name, ": ", value, "\r\n");
  if (!request.token.empty() && url.same_origin(request.url)) {
    text += concat("Authorization: Bearer ", request.token, "\r\n");
  }
  return text + "\r\n";
}

}  // namespace

std::string ResponseHead::get(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (key == name) return value;
  }
  return "";
}

struct HttpClient::Connection {
  Url url;  // its origin counts
  std::optional<Proxy> proxy;
  std::unique_ptr<ByteStream> stream;
  std::unique_ptr<ResponseReader> reader;
  bool used = false;  // for an earlier request: the server may have closed it since
};

HttpClient::HttpClient(const HttpClientOptions& options) : options_(options) {}
HttpClient::~HttpClient() = default;

void HttpClient::cancel() { stop_ = true; }

void HttpClient::connect(const Url& url) {
  if (connection_ && connection_->url.same_origin(url)) return;
  connection_.reset();
  auto connection = std::make_unique<Connection>();
  connection->url = url;
  connection->proxy = proxy_for(url);
  const std::optional<Proxy>& proxy = connection->proxy;
  auto socket = std::make_unique<Socket>(proxy ? proxy->host : url.host, proxy ? proxy->port : url.port,
                                         options_.connect_seconds, options_.stall_seconds, stop_);
  if (url.scheme == "http") {
    connection->stream = std::move(socket);
  } else {
    if (proxy) {
      const std::string target = authority(url, true);
      socket->write(concat("CONNECT ", target, " HTTP/1.1\r\nHost: ", target, "\r\n", login_header(*proxy), "\r\n"));
      const int status = ResponseReader(*socket).read_head().status;
      if (status / 100 != 2) throw StreamError(concat("the proxy ", proxy->host, " answered with HTTP ", status));
    }
    connection->stream = start_tls(std::move(socket), url.host);
  }
  connection->reader = std::make_unique<ResponseReader>(*connection->stream);
  connection_ = std::move(connection);
}

ResponseHead HttpClient::send_request(const Url& url, const std::string& text) {
  connection_->stream->write(text);
  ResponseHead head = connection_->reader->read_head();
  head.url = url;
  return head;
}

bool HttpClient::exchange(const Url& url, const FetchRequest& request, const OnHead& on_head, const OnBody& on_body,
                          FetchResult& result) {
  connect(url);
  try {
    result.head = send_request(url, request_text(url, request, connection_->proxy));
  } catch (const StreamError&) {
    // A server may close a connection at any time between two requests.
    if (!connection_->used || connection_->reader->has_begun()) throw;
    connection_.reset();
    connect(url);
    result.head = send_request(url, request_text(url, request, connection_->proxy));
  }
  connection_->used = true;
  bool whole = false;
  if (is_redirect(result.head.status)) {
    size_t skipped = 0;
    whole = connection_->reader->read_body([&](const char*, size_t n) { return (skipped += n) < kMostSkipped; });
  } else {
    whole = on_head(result.head) && connection_->reader->read_body(on_body);
  }
  if (!whole || !connection_->reader->can_continue()) connection_.reset();
  return whole;
}

FetchResult HttpClient::get_once(const Url& url, const FetchRequest& request, const OnHead& on_head,
                                 const OnBody& on_body) {
  FetchResult result;
  result.head.url = url;
  try {
    const bool whole = exchange(url, request, on_head, on_body, result);
    result.end = whole || is_redirect(result.head.status) ? FetchResult::End::kComplete : FetchResult::End::kStopped;
  } catch (const StreamError& error) {
    connection_.reset();
    result.failure = error.what();
    result.may_pass = error.may_pass();
  } catch (const StreamStopped&) {
    connection_.reset();
    result.end = FetchResult::End::kStopped;
  } catch (...) {  // of a callback
    connection_.reset();
    throw;
  }
  return result;
}

FetchResult HttpClient::get(const FetchRequest& request, const OnHead& on_head, const OnBody& on_body) {
  Url url = request.url;
  std::vector<ResponseHead> hops;
  for (;;) {
    FetchResult result = get_once(url, request, on_head, on_body);
    const bool redirected = result.end == FetchResult::End::kComplete && is_redirect(result.head.status);
    if (redirected) {
      hops.push_back(result.head);
      const std::optional<Url> next = resolve_url(url, result.head.get("location"));
      result.end = FetchResult::End::kFailed;
      result.may_pass = false;
      if (!next) {
        result.failure = concat(url.host, " redirects to an address that is not valid");
      } else if (url.scheme == "https" && next->scheme == "http") {
        result.failure = concat(url.host, " redirects from https to http, to ", printable(next->origin()));
      } else if (hops.size() > kMaxRedirects) {
        result.failure = concat(request.url.host, " redirects more than ", kMaxRedirects, " times");
      } else {
        url = *next;
        continue;
      }
    }
    result.hops = std::move(hops);
    return result;
  }
}

}  // namespace infer
