// What every use of OpenSSL for TLS needs: handles that free themselves, and the text of an error. Only for sources
// that are built where OpenSSL is.
#pragma once

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <memory>
#include <string>

namespace infer {

struct FreeTls {
  void operator()(SSL* ssl) const { SSL_free(ssl); }
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
};
using TlsHandle = std::unique_ptr<SSL, FreeTls>;
using TlsContextHandle = std::unique_ptr<SSL_CTX, FreeTls>;

// The reason for the last failed call on this thread. Forgets all of the thread's errors.
inline std::string take_tls_error() {
  char text[256] = "unknown error";
  if (const unsigned long code = ERR_get_error()) ERR_error_string_n(code, text, sizeof(text));
  ERR_clear_error();
  return text;
}

}  // namespace infer
