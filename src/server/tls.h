// TLS for the server's connections, using OpenSSL. Builds without it use tls_absent.cpp, which refuses certificates.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

namespace infer {

// One connection over a non-blocking socket. One thread.
class TlsSession {
 public:
  virtual ~TlsSession() = default;
  // Like read(2) and write(2): bytes moved, 0 at the end, -1 with kWantsRead or kWantsWrite in `wants` if the socket is
  // not ready, otherwise -1 with kFailed.
  enum Wants { kFailed, kWantsRead, kWantsWrite };
  virtual ssize_t handshake(Wants& wants) = 0;  // 1 when done
  virtual ssize_t read(char* data, size_t size, Wants& wants) = 0;
  virtual ssize_t write(const char* data, size_t size, Wants& wants) = 0;
  virtual void close() = 0;  // tells the peer that no more data follows
};

// A certificate chain and its key. Any thread.
class TlsContext {
 public:
  virtual ~TlsContext() = default;
  virtual std::unique_ptr<TlsSession> accept(int socket) = 0;
};

// Throws Error(kIo) if the files (PEM) cannot be used, Error(kUnsupported) in a build without OpenSSL.
std::unique_ptr<TlsContext> make_tls_context(const std::string& certificate_file, const std::string& key_file);

}  // namespace infer
