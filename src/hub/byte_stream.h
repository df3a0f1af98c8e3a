// A connection to a server: TCP, with TLS on top for https. Every wait ends when the client is cancelled.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

struct addrinfo;

namespace infer {

// A broken connection, or an answer that is not HTTP: ends one attempt.
class StreamError : public std::runtime_error {
 public:
  explicit StreamError(const std::string& what, bool may_pass = true) : std::runtime_error(what), may_pass_(may_pass) {}
  bool may_pass() const { return may_pass_; }  // whether another attempt can succeed

 private:
  bool may_pass_;
};

// The client was cancelled.
class StreamStopped : public std::runtime_error {
 public:
  StreamStopped() : std::runtime_error("stopped") {}
};

class ByteStream {
 public:
  virtual ~ByteStream() = default;
  // Waits for at least one byte; 0 at the end. Both throw StreamError and StreamStopped.
  virtual size_t read(char* data, size_t bytes) = 0;
  virtual void write(std::string_view data) = 0;
};

// A TCP connection, not blocking. Closes its descriptor.
class Socket final : public ByteStream {
 public:
  // Tries the addresses of a host one after the other. `stop` outlives the socket.
  Socket(const std::string& host, int port, int connect_seconds, int stall_seconds, const std::atomic<bool>& stop);
  ~Socket() override;
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  size_t read(char* data, size_t bytes) override;
  void write(std::string_view data) override;

  int descriptor() const { return socket_; }
  // Waits for POLLIN or POLLOUT, at most `stall_seconds`.
  void wait(short events) const { wait(events, stall_seconds_); }

 private:
  void wait(short events, int seconds) const;
  std::string try_connect(const addrinfo& address, int seconds);  // "" or why not

  const std::string host_;
  const int stall_seconds_;
  const std::atomic<bool>& stop_;
  int socket_ = -1;
};

// Speaks TLS over `socket`, and verifies the certificate for `host` against those that the system trusts.
std::unique_ptr<ByteStream> start_tls(std::unique_ptr<Socket> socket, const std::string& host);

}  // namespace infer
