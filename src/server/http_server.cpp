#include "src/server/http_server.h"

#include <httplib.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "ggml-like/error.h"
#include "ggml-like/printable.h"
#include "src/server/api_error.h"

namespace infer {
namespace {

constexpr int kBacklog = 512;

// A listening socket for the host's first address that can be bound.
int listen_on(const std::string& host, int port) {
  addrinfo hints = {}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  const int status = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (status != 0) {
    throw Error(ErrorCode::kIo, concat("[serve] host ", printable(host), ": ", gai_strerror(status)));
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> addresses(found, freeaddrinfo);
  int error = 0;
  for (const addrinfo* a = found; a; a = a->ai_next) {
    const int fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, a->ai_protocol);
    const int on = 1;
    if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0 &&
        bind(fd, a->ai_addr, a->ai_addrlen) == 0 && listen(fd, kBacklog) == 0) {
      return fd;
    }
    error = errno;
    if (fd >= 0) close(fd);
  }
  throw Error(ErrorCode::kIo, concat("[serve] ", printable(host), " port ", port, ": ", std::strerror(error)));
}

int port_of(int socket) {
  sockaddr_storage address = {};
  socklen_t length = sizeof(address);
  char port[NI_MAXSERV] = "0";
  getsockname(socket, reinterpret_cast<sockaddr*>(&address), &length);
  getnameinfo(reinterpret_cast<sockaddr*>(&address), length, nullptr, 0, port, sizeof(port), NI_NUMERICSERV);
  return std::atoi(port);
}

const char* reason_phrase(int status) {
  switch (status) {
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 411:
      return "Length Required";
    case 413:
      return "Payload Too Large";
    case 414:
      return "URI Too Long";
    case 431:
      return "Request Header Fields Too Large";
    case 501:
      return "Not Implemented";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Bad Request";
  }
}

}  // namespace

// A request on its connection, with the head that serve_one() read.
struct HttpServer::Exchange {
  Connection& connection;
  const HttpHead& head;
  std::string peer;
  bool admitted = false;
  HttpResponse response;
  bool close = false;  // the connection ends with this request
};

// The library's view of a connection: the head once more, as text, and what follows it.
class HttpServer::Stream : public httplib::Stream {
 public:
  Stream(Connection& connection, std::string head) : connection_(connection), head_(std::move(head)) {}

  // Later versions ask for wait_readable, wait_writable and duration in place of the first two.
  bool is_readable() const { return true; }
  bool is_writable() const { return !failed_ && !connection_.peer_gone(); }
  bool wait_readable() const { return true; }
  bool wait_writable() const { return is_writable(); }
  time_t duration() const { return 0; }
  ssize_t read(char* data, size_t size) override {
    if (at_ == head_.size()) return connection_.read(data, size);
    const size_t n = head_.copy(data, size, at_);
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

 private:
  Connection& connection_;
  const std::string head_;
  size_t at_ = 0;
  bool failed_ = false;
};

// cpp-httplib's server without its sockets: process_request() on streams of ours. A connection has a thread of its
// own, so the exchange that a handler belongs to is that of its thread.
class HttpServer::Library : public httplib::Server {
 public:
  Library(const HttpServerOptions& options, HttpService& service, int listener) : options_(options), service_(service) {
    svr_sock_ = listener;  // streams end early without one
    // What clients are told; a connection serves any number of requests.
    set_keep_alive_timeout(options.timeouts.idle.count());
    set_keep_alive_max_count(1 << 20);
    set_pre_routing_handler([this](const httplib::Request&, httplib::Response& response) {
      Exchange& exchange = *current;
      if (exchange.admitted) {
        if (exchange.head.method == "POST") return HandlerResponse::Unhandled;
        service_.handle(request_of(exchange, {}), exchange.response);
      }
      answer(exchange, response);
      return HandlerResponse::Handled;
    });
    for (const std::string& path : options.post_paths) {
      Post(path, [this](const httplib::Request&, httplib::Response& response, const httplib::ContentReader& read) {
        take_body(*current, response, read);
      });
    }
  }

  // False when the connection has to end.
  bool serve(Stream& stream, Exchange& exchange) {
    current = &exchange;
    bool closed = false;
    const bool served = process(*this, stream, exchange.close, closed);
    current = nullptr;
    return served && !closed && !stream.failed();
  }

 private:
  // Later versions take the addresses of both ends as well.
  template <typename Self>
  static bool process(Self& self, httplib::Stream& stream, bool close, bool& closed) {
    if constexpr (requires { self.process_request(stream, close, closed, nullptr); }) {
      return self.process_request(stream, close, closed, nullptr);
    } else {
      return self.process_request(stream, "", 0, "", 0, close, closed, nullptr);
    }
  }

  static HttpRequest request_of(Exchange& exchange, std::string body) {
    const Connection& connection = exchange.connection;
    return {exchange.head, std::move(body), exchange.peer, [&connection] { return connection.peer_gone(); }};
  }

  void take_body(Exchange& exchange, httplib::Response& response, const httplib::ContentReader& read) {
    std::string body;
    bool too_large = false;
    const bool complete = read([&](const char* data, size_t size) {
      too_large = size > options_.max_body_bytes - body.size();
      if (!too_large) body.append(data, size);
      return !too_large;
    });
    if (complete && !too_large) {
      service_.handle(request_of(exchange, std::move(body)), exchange.response);
    } else {
      const int status = too_large ? 413 : 400;
      const std::string reason =
          too_large ? concat("[http] a body of at most ", options_.max_body_bytes, " bytes, found more")
                    : std::string("[http] a complete body in time, found less");
      exchange.close = true;
      exchange.response.status = status;
      exchange.response.body = ApiError(status, "invalid_request_error", reason).to_json().dump();
      exchange.response.headers = {{"Connection", "close"}};
      service_.refused(exchange.peer, status, reason);
    }
    answer(exchange, response);
  }

  static void answer(Exchange& exchange, httplib::Response& response) {
    HttpResponse& ours = exchange.response;
    response.status = ours.status;
    for (const auto& [name, value] : ours.headers) response.set_header(name, value);
    if (!ours.stream) {
      response.set_content(ours.body, ours.content_type);
      return;
    }
    response.set_chunked_content_provider(ours.content_type, [stream = ours.stream](size_t, httplib::DataSink& sink) {
      bool open = true;
      stream([&](std::string_view text) { return open = open && sink.write(text.data(), text.size()); });
      if (open) sink.done();
      return open;
    });
  }

  static thread_local Exchange* current;
  const HttpServerOptions& options_;
  HttpService& service_;
};

thread_local HttpServer::Exchange* HttpServer::Library::current = nullptr;

HttpServer::HttpServer(const HttpServerOptions& options, HttpService& service) : options_(options), service_(service) {
  if (!options.tls_certificate.empty()) tls_ = make_tls_context(options.tls_certificate, options.tls_key);
  listener_ = listen_on(options.host, options.port);
  port_ = port_of(listener_);
  wake_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  library_ = std::make_unique<Library>(options_, service_, listener_);
  acceptor_ = std::thread([this] { accept_all(); });
}

HttpServer::~HttpServer() {
  stop();
  close(wake_);
}

void HttpServer::accept_all() {
  for (uint64_t id = 1;; ++id) {
    pollfd waited[2] = {{listener_, POLLIN, 0}, {wake_, POLLIN, 0}};
    if (poll(waited, 2, -1) < 0 && errno != EINTR) break;
    const int client = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (client < 0) {
      // Whoever connected before the end is still accepted.
      if (waited[1].revents != 0) break;
      // No descriptors left: those of others have to be closed first.
      if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) usleep(10000);
      continue;
    }
    const int on = 1;
    setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    bool room = false;
    {
      const std::lock_guard lock(mutex_);
      room = connections_.size() < static_cast<size_t>(options_.max_connections);
      if (room) connections_[id] = {client, false};
    }
    if (!room) {
      refuse_connection(client);
      continue;
    }
    try {
      std::thread([this, id, client] { serve(id, client); }).detach();
    } catch (const std::system_error&) {
      {
        const std::lock_guard lock(mutex_);
        connections_.erase(id);
      }
      refuse_connection(client);
    }
  }
  close(listener_);
}

void HttpServer::refuse_connection(int socket) {
  service_.refused("?", 503, concat("[http] at most ", options_.max_connections, " connections, found more"));
  if (!tls_) {
    static constexpr std::string_view kText =
        "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n";
    send(socket, kText.data(), kText.size(), MSG_NOSIGNAL);
    shutdown(socket, SHUT_WR);
  }
  close(socket);
}

bool HttpServer::set_idle(uint64_t id, bool idle) {
  const std::lock_guard lock(mutex_);
  connections_.at(id).idle = idle;
  return !draining_;
}

void HttpServer::serve(uint64_t id, int socket) {
  try {
    Connection connection(socket, tls_.get(), options_.timeouts);
    try {
      bool open = connection.open();
      while (open) {
        // What has arrived by the time the server drains is still answered.
        const bool stays = set_idle(id, true);
        open = connection.wait_for_request(stays ? options_.timeouts.idle : std::chrono::seconds(0));
        set_idle(id, false);
        open = open && serve_one(connection);
      }
      connection.close_gently();
    } catch (const std::exception& error) {
      service_.refused(connection.peer(), 0, error.what());
    }
    const std::lock_guard lock(mutex_);
    connections_.at(id).socket = -1;
  } catch (const std::exception& error) {
    close(socket);
    service_.refused("?", 0, error.what());
  }
  const std::lock_guard lock(mutex_);
  connections_.erase(id);
  closed_.notify_all();
}

bool HttpServer::serve_one(Connection& connection) {
  std::string text;
  const Connection::Head got = connection.read_head(options_.head.bytes, text);
  if (got == Connection::Head::kTimeout) send_error(connection, 408, "[http] a complete head in time, found less");
  if (got == Connection::Head::kTooLong) {
    send_error(connection, 431, concat("[http] a head of at most ", options_.head.bytes, " bytes, found more"));
  }
  if (got != Connection::Head::kComplete) return false;
  HttpHead head;
  try {
    head = parse_http_head(text, options_.head);
  } catch (const ApiError& error) {
    send_error(connection, error.status(), error.what());
    return false;
  }
  Exchange exchange{connection, head, connection.peer(), false, {}, false};
  if (head.content_length.value_or(0) > options_.max_body_bytes) {
    send_error(connection, 413,
               concat("[http] a body of at most ", options_.max_body_bytes, " bytes, found ", *head.content_length));
    return false;
  }
  exchange.admitted = service_.admit(head, exchange.peer, exchange.response);
  {
    const std::lock_guard lock(mutex_);
    exchange.close = draining_;
  }
  // A body that nobody reads would be taken for the next request.
  if (head.has_body() && (!exchange.admitted || head.method != "POST")) exchange.close = true;
  const bool close = exchange.close;
  Stream stream(connection, head_text(head));
  return library_->serve(stream, exchange) && !close && !exchange.close;
}

void HttpServer::send_error(Connection& connection, int status, const std::string& reason) {
  service_.refused(connection.peer(), status, reason);
  const std::string body = ApiError(status, "invalid_request_error", reason).to_json().dump();
  connection.write(concat("HTTP/1.1 ", status, " ", reason_phrase(status),
                          "\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: ", body.size(),
                          "\r\n\r\n", body));
}

void HttpServer::drain() {
  const std::lock_guard lock(mutex_);
  if (!draining_) {
    draining_ = true;
    const uint64_t one = 1;
    [[maybe_unused]] const auto n = write(wake_, &one, sizeof(one));
  }
  for (const auto& [id, open] : connections_) {
    if (open.idle && open.socket >= 0) shutdown(open.socket, SHUT_RD);
  }
}

bool HttpServer::wait_until_closed(std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  return closed_.wait_for(lock, timeout, [&] { return connections_.empty(); });
}

void HttpServer::stop() {
  drain();
  if (acceptor_.joinable()) acceptor_.join();
  std::unique_lock lock(mutex_);
  for (const auto& [id, open] : connections_) {
    if (open.socket >= 0) shutdown(open.socket, SHUT_RDWR);
  }
  closed_.wait(lock, [&] { return connections_.empty(); });
}

}  // namespace infer
