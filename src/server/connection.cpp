#include "src/server/connection.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace infer {
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::seconds kLinger{1};                // to drain what the client is still sending
constexpr size_t kMaxLingerBytes = 16 << 20;              // the most bytes drained
constexpr std::string_view kResponseStart = "HTTP/1.1 ";  // start of every response
constexpr size_t kSmallRead = 4096;                       // bytes; smaller reads go through the buffer

int milliseconds_until(steady_clock::time_point until) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - steady_clock::now()).count();
  return static_cast<int>(std::clamp<int64_t>(left, 0, 1 << 30));
}

}  // namespace

Connection::~Connection() { ::close(socket_); }

std::string Connection::peer() const {
  sockaddr_storage address = {};
  socklen_t length = sizeof(address);
  char host[NI_MAXHOST], port[NI_MAXSERV];
  if (getpeername(socket_, reinterpret_cast<sockaddr*>(&address), &length) != 0 ||
      getnameinfo(reinterpret_cast<sockaddr*>(&address), length, host, sizeof(host), port, sizeof(port),
                  NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return "?";
  }
  return std::string(host) + ":" + port;
}

bool Connection::wait(short events, Time until) const {
  for (;;) {
    pollfd ready = {socket_, events, 0};
    const int n = poll(&ready, 1, milliseconds_until(until));
    if (n > 0) return true;
    if (n == 0 || errno != EINTR) return false;
  }
}

bool Connection::open() {
  if (!tls_context_) return true;
  tls_ = tls_context_->accept(socket_);
  const Time until = steady_clock::now() + timeouts_.read;
  for (;;) {
    TlsSession::Wants wants = TlsSession::kFailed;
    if (tls_->handshake(wants) > 0) return true;
    if (wants == TlsSession::kFailed || !wait(wants == TlsSession::kWantsRead ? POLLIN : POLLOUT, until)) return false;
  }
}

ssize_t Connection::receive(char* data, size_t size, Time until) {
  for (;;) {
    short wanted = POLLIN;
    if (tls_) {
      TlsSession::Wants wants = TlsSession::kFailed;
      const ssize_t n = tls_->read(data, size, wants);
      if (n >= 0) return n;
      if (wants == TlsSession::kFailed) return -1;
      if (wants == TlsSession::kWantsWrite) wanted = POLLOUT;
    } else {
      const ssize_t n = recv(socket_, data, size, 0);
      if (n >= 0) return n;
      if (errno == EINTR) continue;
      if (errno != EAGAIN && errno != EWOULDBLOCK) return -1;
    }
    if (!wait(wanted, until)) {
      read_timed_out_ = true;
      return -1;
    }
  }
}

bool Connection::fill(Time until) {
  buffer_.erase(0, at_);
  at_ = 0;
  char chunk[16384];
  const ssize_t n = receive(chunk, sizeof(chunk), until);
  if (n <= 0) return false;
  buffer_.append(chunk, static_cast<size_t>(n));
  return true;
}

bool Connection::wait_for_request(std::chrono::seconds timeout) {
  return has_unread() || fill(steady_clock::now() + timeout);
}

Connection::Head Connection::read_head(size_t max_bytes, std::string& head) {
  read_until_ = steady_clock::now() + timeouts_.read;
  read_timed_out_ = probed_ = responding_ = false;
  constexpr std::string_view kEnd = "\r\n\r\n";
  // Empty lines before a request are skipped.
  for (size_t searched = 0;;) {
    while (buffer_.compare(at_, 2, "\r\n") == 0) at_ += 2;
    const size_t end = buffer_.find(kEnd, at_ + searched);
    if (end != std::string::npos && end + kEnd.size() - at_ <= max_bytes) {
      head = buffer_.substr(at_, end + kEnd.size() - at_);
      at_ = end + kEnd.size();
      return Head::kComplete;
    }
    const size_t unread = buffer_.size() - at_;
    if (unread >= max_bytes) return Head::kTooLong;
    searched = unread < kEnd.size() ? 0 : unread - kEnd.size() + 1;
    if (!fill(read_until_)) return read_timed_out_ ? Head::kTimeout : Head::kClosed;
  }
}

ssize_t Connection::read(char* data, size_t size) {
  if (size == 0) return 0;
  // Checked even if bytes are available: they may trickle in forever.
  if (steady_clock::now() >= read_until_) {
    read_timed_out_ = true;
    return -1;
  }
  if (!has_unread() && size >= kSmallRead) return receive(data, size, read_until_);
  if (!has_unread() && !fill(read_until_)) return read_timed_out_ ? -1 : 0;
  const size_t n = std::min(size, buffer_.size() - at_);
  buffer_.copy(data, n, at_);
  at_ += n;
  return static_cast<ssize_t>(n);
}

bool Connection::write(std::string_view data) {
  responding_ = true;
  const size_t ahead = std::min(sent_ahead_, data.size());
  sent_ahead_ -= ahead;
  return send_all(data.substr(ahead));
}

bool Connection::write_continue() { return send_all("HTTP/1.1 100 Continue\r\n\r\n"); }

bool Connection::send_all(std::string_view data) {
  while (!data.empty()) {
    const Time until = steady_clock::now() + timeouts_.write;
    ssize_t n = -1;
    short wanted = POLLOUT;
    if (tls_) {
      TlsSession::Wants wants = TlsSession::kFailed;
      n = tls_->write(data.data(), data.size(), wants);
      if (n <= 0 && wants == TlsSession::kFailed) return false;
      if (wants == TlsSession::kWantsRead) wanted = POLLIN;
    } else {
      n = send(socket_, data.data(), data.size(), MSG_NOSIGNAL);
      if (n < 0 && errno != EINTR && errno != EAGAIN && errno != EWOULDBLOCK) return false;
    }
    if (n > 0) {
      data.remove_prefix(static_cast<size_t>(n));
    } else if (!wait(wanted, until)) {
      return false;
    }
  }
  return true;
}

bool Connection::peer_gone() {
  pollfd state = {socket_, POLLRDHUP, 0};
  if (poll(&state, 1, 0) <= 0) return false;
  if ((state.revents & (POLLHUP | POLLERR)) != 0) return true;
  if (probed_) return false;
  probed_ = true;
  if (!responding_) {
    sent_ahead_ = kResponseStart.size();
    return !send_all(kResponseStart);
  }
  if (probe_) probe_();
  return false;
}

void Connection::close_gently() {
  if (tls_) tls_->close();
  shutdown(socket_, SHUT_WR);
  const Time until = steady_clock::now() + kLinger;
  char sink[16384];
  for (size_t total = 0; total < kMaxLingerBytes;) {
    const ssize_t n = recv(socket_, sink, sizeof(sink), 0);
    if (n > 0) {
      total += static_cast<size_t>(n);
      if (steady_clock::now() >= until) return;
    } else if (n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) || !wait(POLLIN, until)) {
      return;
    }
  }
}

}  // namespace infer
