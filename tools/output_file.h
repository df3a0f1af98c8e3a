// Output files: checked before long work begins, so that problems are reported early, and written so that a file with
// the final name is always complete.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace infer {

// Throws Error(kIo) if `path` cannot be created as a file (written under a temporary name in the same folder and
// renamed): its folder is missing or not writable, or it is itself a folder. Creates nothing. `how`: how the user names
// it, "with -o" or "as OUT".
void check_output_file(const std::string& path, const std::string& how);

// A file that is written under a temporary name next to `path` and renamed when it is finished. One thread. All
// functions throw Error(kIo) with the path and the system's reason.
class AtomicFile {
 public:
  // `private_to_owner`: nobody else may read it.
  explicit AtomicFile(const std::string& path, bool private_to_owner = false);
  ~AtomicFile();  // removes an unfinished file
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(const void* data, size_t bytes);
  void write(std::string_view text) { write(text.data(), text.size()); }
  // Syncs and renames; nothing may be written afterwards.
  void finish();

 private:
  [[noreturn]] void fail() const;

  const std::string path_, beside_;
  std::FILE* file_;  // null once finished
};

}  // namespace infer
