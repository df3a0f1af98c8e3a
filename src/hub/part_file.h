// A file that is being downloaded: NAME.part, of its full size with holes, and NAME.part.json, which says which bytes
// are there. A lock on the part makes other processes wait.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/hub/fetch.h"

namespace infer {

// How much of a file is there. It is divided into segments, each downloaded from its start.
struct PartState {
  std::string name;            // of the model; for lists
  uint64_t size = 0;           // of the file
  uint64_t segment = 0;        // bytes; the last one may be shorter
  std::string sha256, etag;    // of the content, as far as the server says; one must match to go on
  std::vector<uint64_t> done;  // bytes of each segment

  // Nothing is done yet.
  static PartState empty(uint64_t size, uint64_t segment);

  uint64_t begin(size_t index) const { return index * segment; }
  uint64_t bytes(size_t index) const;  // of a whole segment
  uint64_t total_done() const;
  // Whether bytes of `other` are bytes of the same content.
  bool same_content(const PartState& other) const;
};

// Written under another name and renamed. Throws Error(kIo).
void write_whole_file(const std::filesystem::path& path, const std::string& text);
// "" if there is no such file. Throws Error(kIo), Error(kInvalidFile) above 16 MiB.
std::string read_whole_file(const std::filesystem::path& path);
void sync_folder(const std::filesystem::path& folder);  // makes renames in it durable, if the system can

class PartFile {
 public:
  // Locks the part of `target`, and creates it with its folders if there is none. Waits while another process has it.
  // Throws Error(kIo), Error(kCancelled).
  PartFile(std::filesystem::path target, const HubEvents& events);
  ~PartFile();  // unlocks
  PartFile(const PartFile&) = delete;
  PartFile& operator=(const PartFile&) = delete;

  const std::filesystem::path& target() const { return target_; }
  bool waited() const { return waited_; }  // another process had it

  // What is there; nothing if there is no valid state or the part has another size.
  std::optional<PartState> state() const;
  void save(const PartState& state) const;
  // Forgets all bytes. Throws Error(kIo) if the disk has no room for `size` bytes.
  void start_over(uint64_t size);

  // Any thread. Throw Error(kIo).
  void write(uint64_t offset, const char* data, size_t bytes);
  void read(uint64_t offset, char* data, size_t bytes) const;

  void finish();   // syncs, and renames to the target
  void discard();  // removes part and state

 private:
  [[noreturn]] void fail(const char* what) const;
  bool lock();  // false: another process has it
  void wait_for_lock(const HubEvents& events);

  const std::filesystem::path target_, part_, state_;
  int file_ = -1;
  bool waited_ = false;
};

std::filesystem::path part_path(const std::filesystem::path& target);
std::filesystem::path part_state_path(const std::filesystem::path& target);
std::optional<PartState> load_part_state(const std::filesystem::path& target);
// Whether a process is downloading this file now.
bool is_being_downloaded(const std::filesystem::path& target);

// Throws Error(kIo) if the file system of `folder` has less than `bytes` free.
void check_free_space(const std::filesystem::path& folder, uint64_t bytes);

}  // namespace infer
