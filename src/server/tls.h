// TLS for the server's connections, by OpenSSL. Without it tls_absent.cpp is built instead, and certificates are
// refused.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

namespace infer {

// One side of a connection, over a non-blocking socket. One thread.
class TlsSession {
 public:
  virtual ~TlsSession() = default;
  // As read(2) and write(2): bytes moved, 0 at the end, -1 with kWantsRead or kWantsWrite in `wants` when the socket is
  // not ready, -1 with kFailed otherwise.
  enum Wants { kFailed, kWantsRead, kWantsWrite };
  virtual ssize_t handshake(Wants& wants) = 0;  // 1 when it is done
  virtual ssize_t read(char* data, size_t size, Wants& wants) = 0;
  virtual ssize_t write(const char* data, size_t size, Wants& wants) = 0;
  virtual void close() = 0;  // tells the peer that nothing follows
};

// A certificate chain and its key. Any thread.
class TlsContext {
 public:
  virtual ~TlsContext() = default;
  virtual std::unique_ptr<TlsSession> accept(int socket) = 0;
};

// Error(kIo) when the files (PEM) do not serve, Error(kUnsupported) in a build without OpenSSL.
std::unique_ptr<TlsContext> make_tls_context(const std::string& certificate_file, const std::string& key_file);

}  // namespace infer
