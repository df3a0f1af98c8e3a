#include <openssl/evp.h>

#include "ggml-like/bytes_text.h"
#include "ggml-like/error.h"
#include "src/hub/sha256.h"

namespace infer {

struct Sha256::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  ~State() { EVP_MD_CTX_free(context); }
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  if (!state_->context || EVP_DigestInit_ex(state_->context, EVP_sha256(), nullptr) != 1) {
    throw Error(ErrorCode::kUnsupported, "OpenSSL on this machine offers no SHA-256.");
  }
}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::add(const void* data, size_t bytes) {
  CHECK_INTERNAL(EVP_DigestUpdate(state_->context, data, bytes) == 1);
}

std::string Sha256::finish() {
  unsigned char digest[32];
  CHECK_INTERNAL(EVP_DigestFinal_ex(state_->context, digest, nullptr) == 1);
  return hex_text(digest, sizeof(digest));
}

}  // namespace infer
