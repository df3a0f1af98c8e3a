#include <arpa/inet.h>
#include <openssl/x509v3.h>
#include <poll.h>

#include <algorithm>
#include <filesystem>

#include "ggml-like/error.h"
#include "src/hub/byte_stream.h"
#include "src/hub/proxy.h"
#include "src/tls/openssl_handles.h"

namespace infer {
namespace {

// The certificates that the system trusts, where OpenSSL does not find them by itself: it may have been built for
// another distribution. "" if it does.
std::string certificate_bundle() {
  const auto exists = [](const char* path) {
    std::error_code ignored;
    return path && std::filesystem::exists(path, ignored);
  };
  const auto set = [](const char* variable) { return !process_environment(variable).empty(); };
  if (set(X509_get_default_cert_file_env()) || set(X509_get_default_cert_dir_env())) return "";
  if (exists(X509_get_default_cert_file())) return "";
  for (const char* path : {"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt",
                           "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", "/etc/ssl/ca-bundle.pem",
                           "/etc/ssl/cert.pem", "/usr/local/share/certs/ca-root-nss.crt"}) {
    if (exists(path)) return path;
  }
  return "";
}

TlsContextHandle make_context() {
  TlsContextHandle context(SSL_CTX_new(TLS_client_method()));
  if (!context) throw StreamError("TLS cannot be used: " + take_tls_error(), false);
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  SSL_CTX_set_mode(context.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  // Several records per call of read(2).
  SSL_CTX_set_read_ahead(context.get(), 1);
  SSL_CTX_set_default_read_buffer_len(context.get(), size_t{128} << 10);
  const std::string bundle = certificate_bundle();
  const int loaded = bundle.empty() ? SSL_CTX_set_default_verify_paths(context.get())
                                    : SSL_CTX_load_verify_locations(context.get(), bundle.c_str(), nullptr);
  if (loaded != 1) {
    throw StreamError("the trusted certificates of this system cannot be read; SSL_CERT_FILE names a file with them",
                      false);
  }
  return context;
}

bool is_address(const std::string& host) {
  in6_addr ignored;
  return inet_pton(AF_INET, host.c_str(), &ignored) == 1 || inet_pton(AF_INET6, host.c_str(), &ignored) == 1;
}

class TlsStream final : public ByteStream {
 public:
  TlsStream(std::unique_ptr<Socket> socket, const std::string& host)
      : host_(host), socket_(std::move(socket)), context_(make_context()), ssl_(SSL_new(context_.get())) {
    if (!ssl_ || SSL_set_fd(ssl_.get(), socket_->descriptor()) != 1) {
      throw StreamError("TLS cannot be used: " + take_tls_error(), false);
    }
    X509_VERIFY_PARAM* expected = SSL_get0_param(ssl_.get());
    const bool named = is_address(host) ? X509_VERIFY_PARAM_set1_ip_asc(expected, host.c_str()) == 1
                                        : X509_VERIFY_PARAM_set1_host(expected, host.c_str(), 0) == 1 &&
                                              SSL_set_tlsext_host_name(ssl_.get(), host.c_str()) == 1;
    if (!named) throw StreamError("TLS cannot be used: " + take_tls_error(), false);
    run([&] { return SSL_connect(ssl_.get()); }, "does not answer with TLS");
  }

  size_t read(char* data, size_t bytes) override {
    const int n = static_cast<int>(std::min<size_t>(bytes, size_t{1} << 30));
    return static_cast<size_t>(run([&] { return SSL_read(ssl_.get(), data, n); }, "broke off the connection"));
  }

  void write(std::string_view data) override {
    while (!data.empty()) {
      const int n = static_cast<int>(std::min<size_t>(data.size(), size_t{1} << 30));
      const int written = run([&] { return SSL_write(ssl_.get(), data.data(), n); }, "broke off the connection");
      data.remove_prefix(static_cast<size_t>(written));
    }
  }

 private:
  // Calls until it is done; 0 at the end of the stream.
  template <typename Call>
  int run(const Call& call, const char* failure) {
    for (;;) {
      ERR_clear_error();
      const int n = call();
      if (n > 0) return n;
      switch (SSL_get_error(ssl_.get(), n)) {
        case SSL_ERROR_WANT_READ:
          socket_->wait(POLLIN);
          break;
        case SSL_ERROR_WANT_WRITE:
          socket_->wait(POLLOUT);
          break;
        case SSL_ERROR_ZERO_RETURN:
          return 0;
        default:
          fail(failure);
      }
    }
  }

  [[noreturn]] void fail(const char* failure) {
    const long verified = SSL_get_verify_result(ssl_.get());
    if (verified != X509_V_OK) {
      throw StreamError(
          concat("the certificate of ", host_, " is not trusted here (", X509_verify_cert_error_string(verified),
                 "); SSL_CERT_FILE names a file with further trusted certificates"),
          false);
    }
    throw StreamError(concat(host_, " ", failure));
  }

  const std::string host_;
  const std::unique_ptr<Socket> socket_;
  const TlsContextHandle context_;
  const TlsHandle ssl_;
};

}  // namespace

std::unique_ptr<ByteStream> start_tls(std::unique_ptr<Socket> socket, const std::string& host) {
  return std::make_unique<TlsStream>(std::move(socket), host);
}

}  // namespace infer
