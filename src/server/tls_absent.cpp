#include "ggml-like/error.h"
#include "src/server/tls.h"

namespace infer {

std::unique_ptr<TlsContext> make_tls_context(const std::string&, const std::string&) {
  throw Error(
      ErrorCode::kUnsupported,
      "This program was built without OpenSSL and cannot serve HTTPS. Leave out --tls-cert, or build it with OpenSSL.");
}

}  // namespace infer
