#include "tools/input.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "ggml-like/error.h"
#include "ggml-like/message.h"

namespace infer {
namespace {

constexpr size_t kMaxBytes = size_t{1} << 30;

std::string read_all(std::FILE* file, const std::string& name) {
  std::string text;
  char buffer[65536];
  for (size_t n; (n = std::fread(buffer, 1, sizeof(buffer), file)) > 0;) {
    text.append(buffer, n);
    if (text.size() > kMaxBytes)
      throw Error(ErrorCode::kInvalidArgument, expected_found("input", name, "at most 1 GiB of text", "more"));
  }
  if (std::ferror(file)) throw Error(ErrorCode::kIo, concat("Cannot read ", name, ": ", std::strerror(errno), "."));
  return text;
}

}  // namespace

std::string read_text_file(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), std::fclose);
  if (!file) throw Error(ErrorCode::kIo, concat("Cannot read ", path, ": ", std::strerror(errno), "."));
  return read_all(file.get(), path);
}

std::string read_stdin() { return read_all(stdin, "standard input"); }

std::string read_piped_stdin() {
  struct stat info = {};
  if (fstat(STDIN_FILENO, &info) != 0) return "";
  if (!S_ISFIFO(info.st_mode) && !S_ISREG(info.st_mode) && !S_ISSOCK(info.st_mode)) return "";
  return read_stdin();
}

}  // namespace infer
