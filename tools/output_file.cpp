#include "tools/output_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "ggml-like/error.h"
#include "ggml-like/printable.h"

namespace infer {

void check_output_file(const std::string& path, const std::string& how) {
  const auto refuse = [&](const std::string& reason) {
    throw Error(ErrorCode::kIo,
                concat("Cannot write ", path.empty() ? "a file without a name" : printable(path, 4096), ": ", reason));
  };
  const std::string other_name = concat("give another name ", how, ".");
  if (path.empty()) refuse(concat("name one ", how, "."));
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) refuse(concat("it is a folder; ", other_name));
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  const std::filesystem::path folder = parent.empty() ? "." : parent;
  const std::string shown = printable_path(folder);
  if (!std::filesystem::exists(folder, ignored)) {
    refuse(concat("there is no folder ", shown, ". Create it, or ", other_name));
  }
  if (!std::filesystem::is_directory(folder, ignored)) refuse(concat(shown, " is not a folder; ", other_name));
  if (access(folder.c_str(), W_OK | X_OK) != 0) {
    refuse(concat("no file can be created in ", shown, " (", std::strerror(errno), "); ", other_name));
  }
}

AtomicFile::AtomicFile(const std::string& path, bool private_to_owner)
    : path_(path), beside_(concat(path, ".part", getpid())), file_(nullptr) {
  const int descriptor =
      open(beside_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, private_to_owner ? 0600 : 0666);
  if (descriptor >= 0) file_ = fdopen(descriptor, "wb");
  if (!file_) fail();
}

AtomicFile::~AtomicFile() {
  if (!file_) return;
  std::fclose(file_);
  std::remove(beside_.c_str());
}

void AtomicFile::fail() const {
  throw Error(ErrorCode::kIo, concat("Cannot write ", printable(path_, 4096), ": ", std::strerror(errno), "."));
}

void AtomicFile::write(const void* data, size_t bytes) {
  if (std::fwrite(data, 1, bytes, file_) != bytes) fail();
}

void AtomicFile::finish() {
  if (std::fflush(file_) != 0 || fsync(fileno(file_)) != 0) fail();
  const bool closed = std::fclose(file_) == 0;
  file_ = nullptr;
  if (closed && std::rename(beside_.c_str(), path_.c_str()) == 0) return;
  const int error = errno;
  std::remove(beside_.c_str());
  errno = error;
  fail();
}

}  // namespace infer
