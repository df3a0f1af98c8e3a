#include "src/server/http_library.h"

#include <httplib.h>

#include <optional>

#include "ggml-like/bytes_text.h"
#include "ggml-like/error.h"
#include "ggml-like/message.h"
#include "src/server/api_error.h"
#include "src/server/chunked_body.h"
#include "src/server/http_server.h"

namespace infer {
namespace {

// An SSE comment, which clients ignore; sending it shows whether the client is still connected.
constexpr std::string_view kEmptyEvent = ":\n\n";

}  // namespace

// The library's view of a connection: the checked head as text, and the body. Chunks are reframed, because the library
// parses framing less strictly than ChunkedBody.
class HttpLibrary::Stream : public httplib::Stream {
 public:
  explicit Stream(HttpExchange& exchange) : connection_(exchange.connection), unread_(head_text(exchange.head)) {
    if (exchange.head.chunked) {
      chunks_.emplace([this](char* data, size_t size) { return connection_.read(data, size); });
    }
  }

  // Later versions use wait_readable, wait_writable and duration instead of the first two.
  bool is_readable() const { return true; }
  bool is_writable() const { return !failed_ && !connection_.peer_gone(); }
  bool wait_readable() const { return true; }
  bool wait_writable() const { return is_writable(); }
  time_t duration() const { return 0; }
  ssize_t read(char* data, size_t size) override {
    if (at_ == unread_.size()) {
      if (!chunks_) return connection_.read(data, size);
      if (!next_chunk()) return -1;
    }
    const size_t n = unread_.copy(data, size, at_);
    at_ += n;
    return static_cast<ssize_t>(n);
  }
  ssize_t write(const char* data, size_t size) override {
    if (!failed_) failed_ = !connection_.write({data, size});
    return failed_ ? -1 : static_cast<ssize_t>(size);
  }
  void get_remote_ip_and_port(std::string&, int&) const override {}
  void get_local_ip_and_port(std::string&, int&) const override {}
  socket_t socket() const override { return connection_.socket(); }

  bool failed() const { return failed_; }
  // The reason a body could not be read to its end.
  std::string body_error() const {
    if (chunks_ && !chunks_->error().empty()) return chunks_->error();
    return expected_found("http", "a complete body", "less");
  }

 private:
  bool next_chunk() {
    char data[16384];
    const ssize_t n = chunks_->read(data, sizeof(data));
    if (n < 0) return false;
    char size[32];
    std::snprintf(size, sizeof(size), "%zx\r\n", static_cast<size_t>(n));
    unread_.assign(size).append(data, static_cast<size_t>(n)).append("\r\n");
    at_ = 0;
    return true;
  }

  Connection& connection_;
  std::string unread_;  // unread from at_ on
  size_t at_ = 0;
  std::optional<ChunkedBody> chunks_;
  bool failed_ = false;
};

// The library's server without its sockets: process_request() on our own Stream class. Each connection has its own
// thread, so the current exchange is thread-local.
class HttpLibrary::Server : public httplib::Server {
 public:
  Server(const HttpServerOptions& options, HttpService& service, ByteBudget& bodies, int listener)
      : options_(options), service_(service), bodies_(bodies) {
    svr_sock_ = listener;  // the library ends streams early without one
    // Sent to clients; a connection serves any number of requests.
    set_keep_alive_timeout(options.timeouts.idle.count());
    set_keep_alive_max_count(1 << 20);
    set_pre_routing_handler([this](const httplib::Request&, httplib::Response& response) {
      HttpExchange& exchange = *current;
      if (exchange.admitted) {
        if (exchange.head.method == "POST") return HandlerResponse::Unhandled;
        service_.handle(request_of(exchange, {}, {}), exchange.response);
      }
      answer(exchange, response);
      return HandlerResponse::Handled;
    });
    for (const std::string& path : options.post_paths) {
      Post(path, [this](const httplib::Request&, httplib::Response& response, const httplib::ContentReader& read) {
        take_body(*current, response, read);
      });
    }
    // By default the library would send what() to the client.
    set_exception_handler(
        [](const httplib::Request&, httplib::Response&, std::exception_ptr error) { std::rethrow_exception(error); });
  }

  bool serve(Stream& stream, HttpExchange& exchange) {
    struct Current {
      Current(HttpExchange& exchange, Stream& stream) {
        current = &exchange;
        current_stream = &stream;
      }
      ~Current() {
        current->connection.set_probe(nullptr);
        current = nullptr;
      }
    } const of_this_thread(exchange, stream);
    bool closed = false;
    return process(*this, stream, exchange.close, closed) && !closed && !stream.failed();
  }

 private:
  // Later versions also take the addresses of both ends.
  template <typename Self>
  static bool process(Self& self, httplib::Stream& stream, bool close, bool& closed) {
    if constexpr (requires { self.process_request(stream, close, closed, nullptr); }) {
      return self.process_request(stream, close, closed, nullptr);
    } else {
      return self.process_request(stream, "", 0, "", 0, close, closed, nullptr);
    }
  }

  static HttpRequest request_of(HttpExchange& exchange, std::string body, ByteBudget::Share share) {
    Connection& connection = exchange.connection;
    return {exchange.head, std::move(body), exchange.peer, [&connection] { return connection.peer_gone(); },
            std::move(share)};
  }

  void take_body(HttpExchange& exchange, httplib::Response& response, const httplib::ContentReader& read) {
    std::string body;
    ByteBudget::Share share(bodies_);
    bool too_large = false, no_room = false;
    const bool complete = read([&](const char* data, size_t size) {
      too_large = size > options_.max_body_bytes - body.size();
      no_room = !too_large && !share.try_grow(size);
      if (!too_large && !no_room) body.append(data, size);
      return !too_large && !no_room;
    });
    if (complete && !too_large && !no_room) {
      service_.handle(request_of(exchange, std::move(body), std::move(share)), exchange.response);
    } else if (too_large) {
      refuse(
          exchange, 413,
          expected_found("http", concat("a body of at most ", grouped(options_.max_body_bytes), " bytes (--max-body)"),
                         "more"));
    } else if (no_room) {
      refuse(exchange, 503, "[http] Too many large requests at once. Try again later.");
      exchange.response.headers.emplace_back("Retry-After", "1");
    } else if (exchange.connection.read_timed_out()) {
      refuse(exchange, 408, expected_found("http", "a complete body in time (--read-timeout)", "less"));
    } else {
      refuse(exchange, 400, current_stream->body_error());
    }
    answer(exchange, response);
  }

  void refuse(HttpExchange& exchange, int status, const std::string& reason) {
    const ApiError error(status, status == 503 ? "server_error" : "invalid_request_error", reason,
                         status == 503 ? "out_of_memory" : "");
    exchange.close = true;
    exchange.response.status = status;
    exchange.response.body = error.to_json().dump();
    exchange.response.headers = {{"Connection", "close"}};
    service_.refused(exchange.peer, &exchange.head, status, reason);
  }

  static void answer(HttpExchange& exchange, httplib::Response& response) {
    HttpResponse& ours = exchange.response;
    response.status = ours.status;
    for (const auto& [name, value] : ours.headers) response.set_header(name, value);
    if (!ours.stream) {
      response.set_content(std::move(ours.body), ours.content_type);
      return;
    }
    const bool events = ours.content_type == "text/event-stream";
    Connection& connection = exchange.connection;
    response.set_chunked_content_provider(
        ours.content_type, [stream = ours.stream, events, &connection](size_t, httplib::DataSink& sink) {
          bool open = true;
          const auto write = [&](std::string_view text) { return open = open && sink.write(text.data(), text.size()); };
          if (events) connection.set_probe([&] { write(kEmptyEvent); });
          stream(write);
          connection.set_probe(nullptr);
          if (open) sink.done();
          return open;
        });
  }

  static thread_local HttpExchange* current;
  static thread_local Stream* current_stream;
  const HttpServerOptions& options_;
  HttpService& service_;
  ByteBudget& bodies_;
};

thread_local HttpExchange* HttpLibrary::Server::current = nullptr;
thread_local HttpLibrary::Stream* HttpLibrary::Server::current_stream = nullptr;

HttpLibrary::HttpLibrary(const HttpServerOptions& options, HttpService& service, int listener)
    : bodies_(options.max_buffered_bytes), server_(std::make_unique<Server>(options, service, bodies_, listener)) {}

HttpLibrary::~HttpLibrary() = default;

bool HttpLibrary::serve(HttpExchange& exchange) {
  Stream stream(exchange);
  return server_->serve(stream, exchange);
}

}  // namespace infer
