#include "ggml-like/error.h"
#include "src/hub/byte_stream.h"

namespace infer {

std::unique_ptr<ByteStream> start_tls(std::unique_ptr<Socket>, const std::string&) {
  throw Error(ErrorCode::kUnsupported,
              "This program was built without OpenSSL and cannot use https. Build it with OpenSSL.");
}

}  // namespace infer
