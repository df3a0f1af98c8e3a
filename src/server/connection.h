// One client's connection: a socket, with TLS or without, that never blocks longer than its deadlines say. One thread;
// another may shut the socket down.
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
  std::chrono::seconds read{30};   // from there to its last byte
  std::chrono::seconds write{30};  // without the client taking anything
};

class Connection {
 public:
  // Owns the socket from now on, which is non-blocking. `tls` may be null.
  Connection(int socket, TlsContext* tls, const ConnectionTimeouts& timeouts) noexcept
      : socket_(socket), tls_context_(tls), timeouts_(timeouts) {}
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  int socket() const { return socket_; }
  std::string peer() const;  // "127.0.0.1:51234"

  // Does the handshake where there is one; false when it fails.
  bool open();
  // Waits for the first byte of a request; false at the end of the connection or when the time is over.
  bool wait_for_request(std::chrono::seconds timeout);
  enum class Head { kComplete, kClosed, kTimeout, kTooLong };
  // Reads up to the empty line that ends a request's head; starts the clock of the whole request.
  Head read_head(size_t max_bytes, std::string& head);

  // Bytes that follow: 0 at the end, -1 when the time for the request is over or the connection broken.
  ssize_t read(char* data, size_t size);
  bool has_unread() const { return at_ < buffer_.size(); }
  bool read_timed_out() const { return read_timed_out_; }  // and not the connection broken

  // All of a part of the response; false when the client is gone or takes nothing for too long.
  bool write(std::string_view data);
  bool responding() const { return responding_; }  // whether part of the response was written
  // "100 Continue", before the response.
  bool write_continue();

  // Whether the client is gone, as far as can be known. Never waits. A client that closed its side may still read, and
  // only what is sent to it tells: where it is gone, its system answers with a reset. So the first call that sees the
  // end of the client's side sends what does no harm to a client that reads: the beginning of the response or, within
  // one, what `probe` writes.
  bool peer_gone();
  void set_probe(std::function<void()> probe) { probe_ = std::move(probe); }

  // Ends the connection so that the last response arrives even if the client is still sending.
  void close_gently();

 private:
  using Time = std::chrono::steady_clock::time_point;
  bool wait(short events, Time until) const;
  ssize_t receive(char* data, size_t size, Time until);
  bool fill(Time until);  // appends to buffer_; false at the end, an error or when the time is over
  bool send_all(std::string_view data);

  const int socket_;
  TlsContext* const tls_context_;
  std::unique_ptr<TlsSession> tls_;  // from open() on
  const ConnectionTimeouts timeouts_;
  std::string buffer_;  // received, from at_ on not yet read
  size_t at_ = 0;
  Time read_until_;
  bool read_timed_out_ = false;

  // Of the request under way.
  bool probed_ = false, responding_ = false;
  size_t sent_ahead_ = 0;  // bytes of the response
  std::function<void()> probe_;
};

}  // namespace infer
