#include "src/hub/part_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

#include "ggml-like/bytes_text.h"
#include "ggml-like/error.h"
#include "ggml-like/printable.h"
#include "src/hub/json.h"
#include "src/hub/sha256.h"

namespace infer {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxStateBytes = size_t{16} << 20;

Error io_error(const std::string& what, const fs::path& path, int error) {
  const bool full = error == ENOSPC || error == EDQUOT;
  const bool limit = error == EFBIG;
  return {ErrorCode::kIo, concat(what, " ", printable_path(path), ": ", std::strerror(error),
                                 full    ? ". Free some space and run the same command; it continues."
                                 : limit ? ". The limit on file sizes (ulimit -f) is too low."
                                         : ".")};
}

fs::path with_suffix(const fs::path& path, const char* suffix) { return path.string() + suffix; }

}  // namespace

fs::path part_path(const fs::path& target) { return with_suffix(target, ".part"); }
fs::path part_state_path(const fs::path& target) { return with_suffix(target, ".part.json"); }

PartState PartState::empty(uint64_t size, uint64_t segment) {
  PartState state;
  state.size = size;
  state.segment = segment;
  state.done.assign(static_cast<size_t>((size + segment - 1) / segment), 0);
  return state;
}

uint64_t PartState::bytes(size_t index) const { return std::min(segment, size - begin(index)); }

uint64_t PartState::total_done() const {
  uint64_t sum = 0;
  for (const uint64_t n : done) sum += n;
  return sum;
}

bool PartState::same_content(const PartState& other) const {
  if (size != other.size) return false;
  if (!sha256.empty() && !other.sha256.empty()) return sha256 == other.sha256;
  return !etag.empty() && etag == other.etag;
}

void write_whole_file(const fs::path& path, const std::string& text) {
  const fs::path beside = with_suffix(path, concat(".new", getpid()).c_str());
  const int file = open(beside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file < 0) throw io_error("Cannot write", path, errno);
  size_t written = 0;
  int error = 0;
  while (written < text.size() && error == 0) {
    const ssize_t n = ::write(file, text.data() + written, text.size() - written);
    if (n >= 0) written += static_cast<size_t>(n);
    else if (errno != EINTR) error = errno;
  }
  if (close(file) != 0 && error == 0) error = errno;
  if (error == 0 && rename(beside.c_str(), path.c_str()) == 0) return;
  if (error == 0) error = errno;
  unlink(beside.c_str());
  throw io_error("Cannot write", path, error);
}

std::string read_whole_file(const fs::path& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0 && (errno == ENOENT || errno == ENOTDIR)) return "";
  if (file < 0) throw io_error("Cannot read", path, errno);
  std::string text;
  char buffer[65536];
  int error = 0;
  for (;;) {
    const ssize_t n = ::read(file, buffer, sizeof(buffer));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) error = errno;
    if (n <= 0 || text.size() > kMaxStateBytes) break;
    text.append(buffer, static_cast<size_t>(n));
  }
  close(file);
  if (error != 0) throw io_error("Cannot read", path, error);
  if (text.size() > kMaxStateBytes)
    throw Error(ErrorCode::kInvalidFile, concat(printable_path(path), " is too large."));
  return text;
}

void sync_folder(const fs::path& folder) {
  const int file = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0) return;
  fsync(file);
  close(file);
}

void check_free_space(const fs::path& folder, uint64_t bytes) {
  std::error_code error;
  const fs::space_info space = fs::space(folder, error);
  if (error || space.available >= bytes) return;
  throw Error(ErrorCode::kIo, concat("The download needs ", bytes_text(bytes), " in ", printable_path(folder), "; ",
                                     bytes_text(space.available),
                                     " are free. Free some space (infer rm NAME removes a model), or name another "
                                     "folder with INFER_MODELS."));
}

std::optional<PartState> load_part_state(const fs::path& target) {
  const std::string where = part_state_path(target).string();
  try {
    const std::string text = read_whole_file(where);
    if (text.empty()) return std::nullopt;
    const nlohmann::json json = parse_hub_json(text, where);
    const uint64_t size = json_size(json, "size", where), segment = json_size(json, "segment", where);
    const nlohmann::json& done = json_member(json, "done", where);
    if (size == 0 || segment == 0 || size / segment > (1 << 20) || !done.is_array()) return std::nullopt;
    PartState state = PartState::empty(size, segment);
    if (done.size() != state.done.size()) return std::nullopt;
    for (size_t i = 0; i < done.size(); ++i) {
      if (!done[i].is_number_unsigned() || done[i].get<uint64_t>() > state.bytes(i)) return std::nullopt;
      state.done[i] = done[i].get<uint64_t>();
    }
    state.name = json_optional_string(json, "name");
    state.sha256 = json_optional_string(json, "sha256");
    state.etag = json_optional_string(json, "etag");
    return state;
  } catch (const Error& error) {
    // A damaged state is as good as none.
    if (error.code() != ErrorCode::kInvalidFile) throw;
    return std::nullopt;
  }
}

bool is_being_downloaded(const fs::path& target) {
  const int file = open(part_path(target).c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  const bool locked = flock(file, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  close(file);
  return locked;
}

PartFile::PartFile(fs::path target, const HubEvents& events)
    : target_(std::move(target)), part_(part_path(target_)), state_(part_state_path(target_)) {
  std::error_code error;
  fs::create_directories(target_.parent_path(), error);
  if (error) throw io_error("Cannot create", target_.parent_path(), error.value());
  wait_for_lock(events);
}

PartFile::~PartFile() {
  if (file_ >= 0) close(file_);
}

void PartFile::fail(const char* what) const { throw io_error(what, part_, errno); }

bool PartFile::lock() {
  file_ = open(part_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (file_ < 0) fail("Cannot write");
  if (flock(file_, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) fail("Cannot lock");
  } else {
    // The process that had it may have renamed or removed this file in between.
    struct stat mine = {}, named = {};
    if (fstat(file_, &mine) == 0 && stat(part_.c_str(), &named) == 0 && mine.st_ino == named.st_ino &&
        mine.st_dev == named.st_dev) {
      return true;
    }
  }
  close(file_);
  file_ = -1;
  return false;
}

void PartFile::wait_for_lock(const HubEvents& events) {
  while (!lock()) {
    if (!waited_ && events.note) {
      events.note(concat("Another process downloads ", printable(target_.filename().string()), "; waiting for it"));
    }
    waited_ = true;
    throw_if_cancelled(events);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

std::optional<PartState> PartFile::state() const {
  std::optional<PartState> state = load_part_state(target_);
  struct stat info = {};
  if (!state || fstat(file_, &info) != 0 || static_cast<uint64_t>(info.st_size) != state->size) return std::nullopt;
  return state;
}

void PartFile::save(const PartState& state) const {
  const nlohmann::json json = {{"name", state.name},     {"size", state.size}, {"segment", state.segment},
                               {"sha256", state.sha256}, {"etag", state.etag}, {"done", state.done}};
  write_whole_file(state_, json.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace));
}

void PartFile::start_over(uint64_t size) {
  unlink(state_.c_str());
  if (ftruncate(file_, 0) != 0) fail("Cannot write");
  check_free_space(target_.parent_path(), size);
  if (ftruncate(file_, static_cast<off_t>(size)) != 0) fail("Cannot write");
}

void PartFile::write(uint64_t offset, const char* data, size_t bytes) {
  while (bytes > 0) {
    const ssize_t n = pwrite(file_, data, bytes, static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail("Cannot write");
    offset += static_cast<uint64_t>(n);
    data += n;
    bytes -= static_cast<size_t>(n);
  }
}

void PartFile::read(uint64_t offset, char* data, size_t bytes) const {
  while (bytes > 0) {
    const ssize_t n = pread(file_, data, bytes, static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n == 0) errno = EIO;  // another program truncated it
    if (n <= 0) fail("Cannot read");
    offset += static_cast<uint64_t>(n);
    data += n;
    bytes -= static_cast<size_t>(n);
  }
}

void PartFile::finish() {
  if (fsync(file_) != 0) fail("Cannot write");
  if (rename(part_.c_str(), target_.c_str()) != 0) throw io_error("Cannot write", target_, errno);
  unlink(state_.c_str());
  sync_folder(target_.parent_path());
}

void PartFile::discard() {
  unlink(state_.c_str());
  unlink(part_.c_str());
}

}  // namespace infer
