#include "ggml-like/error.h"
#include "src/server/tls.h"

namespace infer {

std::unique_ptr<TlsContext> make_tls_context(const std::string&, const std::string&) {
  throw Error(ErrorCode::kUnsupported, "[tls] a build with OpenSSL for --tls-cert, found one without");
}

}  // namespace infer
