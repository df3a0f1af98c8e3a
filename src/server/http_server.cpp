#include "src/server/http_server.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <new>
#include <optional>

#include "ggml-like/bytes_text.h"
#include "ggml-like/error.h"
#include "ggml-like/message.h"
#include "ggml-like/printable.h"
#include "src/server/api_error.h"

namespace infer {
namespace {

constexpr int kBacklog = 512;

// A listening socket on the host's first address that can be bound.
int listen_on(const std::string& host, int port) {
  addrinfo hints = {}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  const int status = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (status != 0) {
    throw Error(ErrorCode::kIo, concat("Cannot resolve --host ", printable(host), ": ", gai_strerror(status),
                                       ". Give an address of this machine, such as 127.0.0.1."));
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
  throw Error(ErrorCode::kIo, concat("Cannot listen on ", printable(host), " port ", port, ": ", std::strerror(error),
                                     ". Choose another --host or --port."));
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

// The key for limits per client address: for IPv6 the first 64 bits, the prefix that one client controls.
std::string address_of(const sockaddr_storage& client) {
  char text[INET6_ADDRSTRLEN] = "?";
  if (client.ss_family == AF_INET) {
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in&>(client).sin_addr, text, sizeof(text));
  } else if (client.ss_family == AF_INET6) {
    in6_addr address = reinterpret_cast<const sockaddr_in6&>(client).sin6_addr;
    const bool is_v4 = IN6_IS_ADDR_V4MAPPED(&address);
    if (!is_v4) std::memset(address.s6_addr + 8, 0, 8);
    inet_ntop(AF_INET6, &address, text, sizeof(text));
  }
  return text;
}

constexpr std::string_view kNoRoom =
    "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n";
// Sent if there is not enough memory to build a response.
#define INFER_OUT_OF_MEMORY                                                                              \
  R"({"error":{"message":"The server has too little memory for this request. Try again later, or send )" \
  R"(less.","type":"server_error","param":null,"code":"out_of_memory"}})"
constexpr std::string_view kOutOfMemory =
    "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 1\r\nContent-Type: application/json\r\n"
    "Content-Length: 163\r\n\r\n" INFER_OUT_OF_MEMORY;
static_assert(sizeof(INFER_OUT_OF_MEMORY) - 1 == 163);

}  // namespace

HttpServer::HttpServer(const HttpServerOptions& options, HttpService& service)
    : options_(options), service_(service), connections_(static_cast<size_t>(options.max_connections)) {
  if (!options.tls_certificate.empty()) tls_ = make_tls_context(options.tls_certificate, options.tls_key);
  listener_ = listen_on(options.host, options.port);
  port_ = port_of(listener_);
  wake_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  library_ = std::make_unique<HttpLibrary>(options_, service_, listener_);
  acceptor_ = std::thread([this] { accept_all(); });
}

HttpServer::~HttpServer() {
  while (!stop(std::chrono::hours(1))) {
  }
  close(wake_);
}

void HttpServer::accept_all() {
  // Clients that connected before shutdown are still accepted; there can be no more than the backlog.
  for (int late = 0; late <= kBacklog;) {
    pollfd waited[2] = {{listener_, POLLIN, 0}, {wake_, POLLIN, 0}};
    if (poll(waited, 2, -1) < 0 && errno != EINTR) break;
    if ((waited[0].revents & POLLIN) != 0) {
      accept_one();
    } else if (waited[1].revents != 0) {
      break;
    }
    late += waited[1].revents != 0 ? 1 : 0;
  }
  close(listener_);
}

void HttpServer::accept_one() {
  sockaddr_storage address = {};
  socklen_t length = sizeof(address);
  const int client = accept4(listener_, reinterpret_cast<sockaddr*>(&address), &length, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (client < 0) {
    // Out of descriptors: others must be closed first.
    if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) usleep(10000);
    return;
  }
  const int on = 1;
  setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  std::optional<uint64_t> id;
  std::string_view refusal = kNoRoom;
  try {
    id = connections_.add(client, address_of(address));
    if (id) {
      std::thread([this, id = *id, client] { serve(id, client); }).detach();
      return;
    }
  } catch (const std::exception&) {  // out of memory or threads
    if (id) connections_.remove(*id);
    refusal = kOutOfMemory;
  }
  refuse_connection(client, refusal);
}

void HttpServer::refuse_connection(int socket, std::string_view response) noexcept {
  report(nullptr, 503,
         response == kNoRoom
             ? "[http] The server has no room for another connection (--max-connections). Try again later."
             : "The server has too little memory for another connection. Try again later.");
  if (!tls_) {
    send(socket, response.data(), response.size(), MSG_NOSIGNAL);
    shutdown(socket, SHUT_WR);
  }
  close(socket);
}

void HttpServer::report(const Connection* connection, int status, const char* reason) noexcept {
  try {
    service_.refused(connection ? connection->peer() : "?", nullptr, status, reason);
  } catch (const std::exception&) {
    // Not enough memory to report it.
  }
}

void HttpServer::serve(uint64_t id, int socket) noexcept {
  {
    Connection connection(socket, tls_.get(), options_.timeouts);
    try {
      serve_requests(id, connection);
    } catch (const std::exception& error) {
      const bool no_memory = dynamic_cast<const std::bad_alloc*>(&error) != nullptr;
      const bool told = no_memory && !connection.responding() && connection.write(kOutOfMemory);
      report(&connection, told ? 503 : 0, error.what());
      if (told) connection.close_gently();
    }
    connections_.closing(id);
  }
  connections_.remove(id);
}

void HttpServer::serve_requests(uint64_t id, Connection& connection) {
  using Phase = ConnectionTable::Phase;
  bool open = connection.open();
  while (open) {
    // A request that has arrived when the server starts draining is still answered.
    const bool stays = connections_.set_phase(id, Phase::kIdle);
    open = connection.wait_for_request(stays ? options_.timeouts.idle : std::chrono::seconds(0)) &&
           connections_.set_phase(id, Phase::kHead) && serve_one(id, connection);
  }
  connection.close_gently();
}

bool HttpServer::serve_one(uint64_t id, Connection& connection) {
  std::string text;
  const Connection::Head got = connection.read_head(options_.head.bytes, text);
  if (!connections_.set_phase(id, ConnectionTable::Phase::kRequest)) return false;
  if (got == Connection::Head::kTimeout) {
    send_error(connection, nullptr, 408, expected_found("http", "a complete head in time (--read-timeout)", "less"));
  }
  if (got == Connection::Head::kTooLong) {
    send_error(connection, nullptr, 431,
               expected_found("http", concat("a head of at most ", grouped(options_.head.bytes), " bytes (--max-head)"),
                              "more"));
  }
  if (got != Connection::Head::kComplete) return false;
  HttpHead head;
  try {
    head = parse_http_head(text, options_.head);
  } catch (const ApiError& error) {
    send_error(connection, nullptr, error.status(), error.what());
    return false;
  }
  HttpExchange exchange{connection, head, connection.peer(), false, {}, false};
  if (head.content_length.value_or(0) > options_.max_body_bytes) {
    send_error(
        connection, &head, 413,
        expected_found("http", concat("a body of at most ", grouped(options_.max_body_bytes), " bytes (--max-body)"),
                       grouped(*head.content_length)));
    return false;
  }
  exchange.admitted = service_.admit(head, exchange.peer, exchange.response);
  exchange.close = connections_.draining();
  // An unread body would be taken for the next request.
  if (head.has_body() && (!exchange.admitted || head.method != "POST")) exchange.close = true;
  if (exchange.admitted && head.expects_continue && head.has_body() && !connection.has_unread() &&
      !connection.write_continue()) {
    return false;
  }
  const bool close = exchange.close;
  return library_->serve(exchange) && !close && !exchange.close;
}

void HttpServer::send_error(Connection& connection, const HttpHead* head, int status, const std::string& reason) {
  service_.refused(connection.peer(), head, status, reason);
  const std::string body = ApiError(status, "invalid_request_error", reason).to_json().dump();
  connection.write(concat("HTTP/1.1 ", status, " ", reason_phrase(status),
                          "\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: ", body.size(),
                          "\r\n\r\n", body));
}

void HttpServer::drain() {
  const uint64_t one = 1;
  if (!connections_.draining()) [[maybe_unused]]
    const auto n = write(wake_, &one, sizeof(one));
  connections_.drain();
}

bool HttpServer::stop(std::chrono::milliseconds timeout) {
  drain();
  if (acceptor_.joinable()) acceptor_.join();
  connections_.break_all();
  return wait_until_closed(timeout);
}

}  // namespace infer
