#include "ggml-like/error.h"
#include "ggml-like/printable.h"
#include "src/server/tls.h"
#include "src/tls/openssl_handles.h"

namespace infer {
namespace {

class OpensslSession : public TlsSession {
 public:
  OpensslSession(SSL_CTX* context, int socket) : ssl_(SSL_new(context)) {
    if (!ssl_ || SSL_set_fd(ssl_.get(), socket) != 1) throw Error(ErrorCode::kOutOfMemory, "[tls] " + take_tls_error());
    SSL_set_accept_state(ssl_.get());
  }

  ssize_t handshake(Wants& wants) override { return result(SSL_do_handshake(ssl_.get()), wants); }
  ssize_t read(char* data, size_t size, Wants& wants) override {
    return result(SSL_read(ssl_.get(), data, static_cast<int>(std::min<size_t>(size, INT32_MAX))), wants);
  }
  ssize_t write(const char* data, size_t size, Wants& wants) override {
    return result(SSL_write(ssl_.get(), data, static_cast<int>(std::min<size_t>(size, INT32_MAX))), wants);
  }
  void close() override {
    if (!failed_) SSL_shutdown(ssl_.get());
    ERR_clear_error();
  }

 private:
  ssize_t result(int n, Wants& wants) {
    if (n > 0) return n;
    switch (SSL_get_error(ssl_.get(), n)) {
      case SSL_ERROR_WANT_READ:
        wants = kWantsRead;
        return -1;
      case SSL_ERROR_WANT_WRITE:
        wants = kWantsWrite;
        return -1;
      case SSL_ERROR_ZERO_RETURN:
        return 0;
      default:
        wants = kFailed;
        failed_ = true;
        ERR_clear_error();
        return -1;
    }
  }

  TlsHandle ssl_;
  bool failed_ = false;
};

class OpensslContext : public TlsContext {
 public:
  OpensslContext(const std::string& certificate, const std::string& key) : context_(SSL_CTX_new(TLS_server_method())) {
    if (!context_) throw Error(ErrorCode::kOutOfMemory, "[tls] " + take_tls_error());
    SSL_CTX_set_min_proto_version(context_.get(), TLS1_2_VERSION);
    SSL_CTX_set_mode(context_.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    if (SSL_CTX_use_certificate_chain_file(context_.get(), certificate.c_str()) != 1) {
      throw Error(ErrorCode::kIo, "Cannot read a certificate from --tls-cert " + printable(certificate) + " (" +
                                      take_tls_error() + "). Give a certificate in PEM format.");
    }
    if (SSL_CTX_use_PrivateKey_file(context_.get(), key.c_str(), SSL_FILETYPE_PEM) != 1 ||
        SSL_CTX_check_private_key(context_.get()) != 1) {
      throw Error(ErrorCode::kIo, "Cannot read the certificate's key from --tls-key " + printable(key) + " (" +
                                      take_tls_error() + "). Give its private key in PEM format.");
    }
  }

  std::unique_ptr<TlsSession> accept(int socket) override {
    return std::make_unique<OpensslSession>(context_.get(), socket);
  }

 private:
  TlsContextHandle context_;
};

}  // namespace

std::unique_ptr<TlsContext> make_tls_context(const std::string& certificate_file, const std::string& key_file) {
  return std::make_unique<OpensslContext>(certificate_file, key_file);
}

}  // namespace infer
