#include "src/hub/download.h"

#include <algorithm>
#include <cstring>

#include "ggml-like/message.h"
#include "ggml-like/printable.h"
#include "src/hub/part_file.h"
#include "src/hub/probe.h"
#include "src/hub/sha256.h"
#include "src/hub/transfer.h"

namespace infer {
namespace {

constexpr uint64_t kLeastSegment = uint64_t{1} << 20, kMostSegment = uint64_t{64} << 20;
constexpr int kMaxRestarts = 3;

// Several for each connection, so that all of them end at about the same time; not so large that the hash, which
// follows in order, falls far behind.
uint64_t segment_bytes(const FileProbe& probe, int connections) {
  if (!probe.has_ranges) return probe.size;
  const uint64_t wanted = probe.size / static_cast<uint64_t>(4 * std::max(connections, 1));
  const uint64_t rounded = (wanted + kLeastSegment - 1) / kLeastSegment * kLeastSegment;
  return std::clamp(rounded, kLeastSegment, kMostSegment);
}

class FileDownload {
 public:
  FileDownload(const RemoteFile& file, const std::filesystem::path& target, const std::string& name,
               const DownloadOptions& options, const HubEvents& events)
      : file_(file), name_(name), options_(options), events_(events), part_(target, events) {}

  DownloadedFile run() {
    if (const std::optional<DownloadedFile> there = check_target()) return *there;
    for (int restart = 0;; ++restart) {
      probe();
      if (const std::optional<DownloadedFile> there = check_waited()) return *there;
      const bool resumed = prepare_state();
      Transfer transfer(file_, probe_, part_, state_, options_, events_);
      const TransferEnd end = transfer.run();
      if (end == TransferEnd::kComplete) {
        const bool right = probe_.sha256.empty() || transfer.sha256() == probe_.sha256;
        if (right) return finish(transfer.sha256());
        if (!resumed || restart >= kMaxRestarts) {
          part_.discard();
          throw wrong_hash(transfer.sha256());
        }
        note(concat(printable(file_.path), " was damaged or changed while it was downloaded; starting over"));
      } else {
        start_over(end, restart);
      }
      part_.start_over(state_.size);
    }
  }

 private:
  void note(const std::string& line) const {
    if (events_.note) events_.note(line);
  }

  Error wrong_hash(const std::string& found) const {
    return {ErrorCode::kInvalidFile, expected_found(probe_.url.host, printable(file_.path, 200),
                                                    "SHA-256 " + probe_.sha256, found + ". The download was removed")};
  }

  // The file may be there: another process has just finished it, or this one was ended between the file's rename and
  // its record.
  std::optional<DownloadedFile> check_target() {
    std::error_code error;
    const uint64_t size = std::filesystem::file_size(part_.target(), error);
    if (error || file_.sha256.empty() || (file_.size > 0 && size != file_.size)) return std::nullopt;
    const std::string hash = sha256_of_file(part_.target(), events_.cancelled);
    if (hash != file_.sha256) return std::nullopt;
    part_.discard();
    return DownloadedFile{size, hash, "", true};
  }

  // The same for a file whose hash the server does not say.
  std::optional<DownloadedFile> check_waited() {
    std::error_code error;
    const uint64_t size = std::filesystem::file_size(part_.target(), error);
    if (error || !part_.waited() || size != probe_.size || part_.state()) return std::nullopt;
    const std::string hash = sha256_of_file(part_.target(), events_.cancelled);
    if (!probe_.sha256.empty() && hash != probe_.sha256) return std::nullopt;
    part_.discard();
    return DownloadedFile{size, hash, probe_.etag, !probe_.sha256.empty()};
  }

  void start_over(TransferEnd end, int restart) {
    const std::string name = printable(file_.path);
    if (end == TransferEnd::kRangesIgnored) {
      if (restart >= kMaxRestarts) {
        throw Error(ErrorCode::kIo, concat(probe_.url.host, " breaks off in the middle of ", name,
                                           " and cannot continue there (it ignores Range). Try again later."));
      }
      whole_ = true;
      return;
    }
    if (restart >= kMaxRestarts) {
      throw Error(ErrorCode::kIo, concat(name, " keeps changing on ", probe_.url.host, ". Try again later."));
    }
    note(concat(name, " has changed on ", probe_.url.host, "; starting over"));
  }

  void probe() {
    HttpClient client(options_.fetch.http);
    probe_ = probe_file(client, file_, options_.fetch, events_);
    if (whole_) probe_.has_ranges = false;
  }

  // Whether bytes of an earlier run are used.
  bool prepare_state() {
    PartState fresh = PartState::empty(probe_.size, segment_bytes(probe_, options_.connections));
    fresh.name = name_;
    fresh.sha256 = probe_.sha256;
    fresh.etag = probe_.etag;
    const std::optional<PartState> before = part_.state();
    if (before && probe_.has_ranges && before->same_content(fresh)) {
      state_ = *before;
      state_.name = name_;
      state_.sha256 = probe_.sha256;
      state_.etag = probe_.etag;
      check_free_space(part_.target().parent_path(), state_.size - state_.total_done());
      return state_.total_done() > 0;
    }
    part_.start_over(probe_.size);
    state_ = fresh;
    return false;
  }

  DownloadedFile finish(const std::string& hash) {
    char magic[4] = {};
    if (probe_.size >= 4) part_.read(0, magic, 4);
    if (std::memcmp(magic, "GGUF", 4) != 0) {
      part_.discard();
      throw Error(ErrorCode::kInvalidFile,
                  expected_found(probe_.url.host, printable(file_.path, 200), "a GGUF file", "something else"));
    }
    part_.finish();
    return {probe_.size, hash, probe_.etag, !probe_.sha256.empty()};
  }

  const RemoteFile& file_;
  const std::string name_;
  const DownloadOptions& options_;
  const HubEvents& events_;
  PartFile part_;
  FileProbe probe_;
  PartState state_;
  bool whole_ = false;  // the server does not honour ranges, whatever it says
};

}  // namespace

DownloadedFile download_file(const RemoteFile& file, const std::filesystem::path& target, const std::string& name,
                             const DownloadOptions& options, const HubEvents& events) {
  return FileDownload(file, target, name, options, events).run();
}

}  // namespace infer
