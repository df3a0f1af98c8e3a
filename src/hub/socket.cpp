#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "ggml-like/error.h"
#include "src/hub/byte_stream.h"

namespace infer {
namespace {

constexpr int kPollMilliseconds = 50;

int open_socket(int family) {
  const int socket = ::socket(family, SOCK_STREAM, 0);
  if (socket < 0) return socket;
  fcntl(socket, F_SETFD, FD_CLOEXEC);
  fcntl(socket, F_SETFL, fcntl(socket, F_GETFL) | O_NONBLOCK);
  const int on = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  return socket;
}

}  // namespace

Socket::Socket(const std::string& host, int port, int connect_seconds, int stall_seconds, const std::atomic<bool>& stop)
    : host_(host), stall_seconds_(stall_seconds), stop_(stop) {
  addrinfo hints = {}, *addresses = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_ADDRCONFIG;
  int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &addresses);
  if (error == EAI_NONAME || error == EAI_ADDRFAMILY) {  // without a network, addresses of this machine still work
    hints.ai_flags = 0;
    error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &addresses);
  }
  if (error != 0) throw StreamError(concat("the name ", host, " is not known (", gai_strerror(error), ")"));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(addresses, freeaddrinfo);
  std::string reason = "no address";
  for (const addrinfo* address = addresses; address; address = address->ai_next) {
    reason = try_connect(*address, connect_seconds);
    if (reason.empty()) return;
  }
  throw StreamError(concat("no connection to ", host, ", port ", port, " (", reason, ")"));
}

Socket::~Socket() {
  if (socket_ >= 0) close(socket_);
}

std::string Socket::try_connect(const addrinfo& address, int seconds) {
  if (socket_ >= 0) close(socket_);
  socket_ = open_socket(address.ai_family);
  if (socket_ < 0) return std::strerror(errno);
  if (connect(socket_, address.ai_addr, address.ai_addrlen) == 0) return "";
  if (errno != EINPROGRESS && errno != EINTR) return std::strerror(errno);
  try {
    wait(POLLOUT, seconds);
  } catch (const StreamError&) {
    return concat("no answer for ", seconds, " s");
  }
  int error = 0;
  socklen_t size = sizeof(error);
  getsockopt(socket_, SOL_SOCKET, SO_ERROR, &error, &size);
  return error == 0 ? "" : std::strerror(error);
}

void Socket::wait(short events, int seconds) const {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point end = Clock::now() + std::chrono::seconds(seconds);
  for (;;) {
    if (stop_) throw StreamStopped();
    pollfd entry = {socket_, events, 0};
    const int n = poll(&entry, 1, kPollMilliseconds);
    if (n > 0) return;  // errors show in the call that follows
    if (n < 0 && errno != EINTR) throw StreamError(std::strerror(errno));
    if (Clock::now() >= end) throw StreamError(concat(host_, " sent no data for ", seconds, " s"));
  }
}

size_t Socket::read(char* data, size_t bytes) {
  for (;;) {
    if (stop_) throw StreamStopped();
    const ssize_t n = recv(socket_, data, bytes, 0);
    if (n >= 0) return static_cast<size_t>(n);
    if (errno == EAGAIN || errno == EWOULDBLOCK) wait(POLLIN);
    else if (errno != EINTR) throw StreamError(concat("the connection to ", host_, " broke: ", std::strerror(errno)));
  }
}

void Socket::write(std::string_view data) {
  while (!data.empty()) {
    const ssize_t n = send(socket_, data.data(), data.size(), MSG_NOSIGNAL);
    if (n >= 0) data.remove_prefix(static_cast<size_t>(n));
    else if (errno == EAGAIN || errno == EWOULDBLOCK) wait(POLLOUT);
    else if (errno != EINTR) throw StreamError(concat("the connection to ", host_, " broke: ", std::strerror(errno)));
  }
}

}  // namespace infer
