#include "src/hub/sha256.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "ggml-like/error.h"
#include "ggml-like/printable.h"

namespace infer {

bool is_sha256(std::string_view text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::string sha256_of_file(const std::filesystem::path& path, const std::function<bool()>& cancelled) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const auto fail = [&] {
    return Error(ErrorCode::kIo, concat("Cannot read ", printable_path(path), ": ", std::strerror(errno), "."));
  };
  if (file < 0) throw fail();
  struct Closer {
    int file;
    ~Closer() { close(file); }
  } const closer{file};
  Sha256 hash;
  std::vector<char> buffer(size_t{1} << 20);
  for (;;) {
    if (cancelled && cancelled()) throw Error(ErrorCode::kCancelled, "Stopped.");
    const ssize_t n = read(file, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw fail();
    if (n == 0) return hash.finish();
    hash.add(buffer.data(), static_cast<size_t>(n));
  }
}

}  // namespace infer
