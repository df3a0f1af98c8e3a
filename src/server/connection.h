// One client's connection: a socket, with or without TLS, that never blocks beyond its deadlines. One thread; another
// may shut down the socket.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "src/server/tls.h"

namespace infer {

struct ConnectionTimeouts {
  std::chrono::seconds idle{60};   // for the first byte of a request
  std::chrono::seconds read{30};   // from that byte to the last byte of the request
  std::chrono::seconds write{30};  // without the client reading anything
};

class Connection {
 public:
  // Takes ownership of the socket, which is non-blocking. `tls` may be null.
  Connection(int socket, TlsContext* tls, const ConnectionTimeouts& timeouts) noexcept
      : socket_(socket), tls_context_(tls), timeouts_(timeouts) {}
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  int socket() const { return socket_; }
  std::string peer() const;  // "127.0.0.1:51234"

  // Performs the TLS handshake, if any; false if it fails.
  bool open();
  // Waits for the first byte of a request; false if the connection ends or the time is up.
  bool wait_for_request(std::chrono::seconds timeout);
  enum class Head { kComplete, kClosed, kTimeout, kTooLong };
  // Reads up to the empty line that ends a request's head; starts the deadline of the whole request.
  Head read_head(size_t max_bytes, std::string& head);

  // Reads the bytes after the head: 0 at the end, -1 if the request's deadline has passed or the connection is broken.
  ssize_t read(char* data, size_t size);
  bool has_unread() const { return at_ < buffer_.size(); }
  bool read_timed_out() const { return read_timed_out_; }  // as opposed to a broken connection

  // Writes a part of the response completely; false if the client has disconnected or reads nothing for too long.
  bool write(std::string_view data);
  bool responding() const { return responding_; }  // part of the response has been written
  // Sends "100 Continue", before the response.
  bool write_continue();

  // Whether the client has disconnected, as far as can be known. Never waits. A client that has closed its sending side
  // may still be reading. Only sending shows it, because the system of a client that is gone replies with a reset. So
  // the first call that sees the sending side closed writes something harmless to a client that still reads: the start
  // of the response or, within one, whatever `probe` writes.
  bool peer_gone();
  void set_probe(std::function<void()> probe) { probe_ = std::move(probe); }

  // Closes the connection in such a way that the last response arrives even if the client is still sending.
  void close_gently();

 private:
  using Time = std::chrono::steady_clock::time_point;
  bool wait(short events, Time until) const;
  ssize_t receive(char* data, size_t size, Time until);
  bool fill(Time until);  // appends to buffer_; false at the end, on an error or timeout
  bool send_all(std::string_view data);

  const int socket_;
  TlsContext* const tls_context_;
  std::unique_ptr<TlsSession> tls_;  // set by open()
  const ConnectionTimeouts timeouts_;
  std::string buffer_;  // received bytes; unread from at_ on
  size_t at_ = 0;
  Time read_until_;
  bool read_timed_out_ = false;

  // Of the request in progress.
  bool probed_ = false, responding_ = false;
  size_t sent_ahead_ = 0;  // bytes of the response already sent
  std::function<void()> probe_;
};

}  // namespace infer
