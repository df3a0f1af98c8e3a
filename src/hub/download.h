// Downloads one file: in parallel ranges, resumable, with its hash verified before it gets its final name.
#pragma once

#include <filesystem>
#include <string>

#include "src/hub/fetch.h"
#include "src/hub/variants.h"

namespace infer {

struct DownloadOptions {
  FetchOptions fetch;
  int connections = 4;
};

struct DownloadedFile {
  uint64_t size = 0;
  std::string sha256;     // of what is on the disk
  std::string etag;       // of the server's file; "" if it has none that identifies its bytes
  bool verified = false;  // the server named the same hash
};

// Downloads `file` to `target`, unless `target` has the expected hash already. `name`: the model's, for lists of
// unfinished downloads. After an error or a cancellation, the bytes that arrived stay in the part file, and the next
// call continues. Throws Error(kIo) for the network, the server and the disk, Error(kInvalidFile) for content that is
// not what was promised, Error(kCancelled).
DownloadedFile download_file(const RemoteFile& file, const std::filesystem::path& target, const std::string& name,
                             const DownloadOptions& options, const HubEvents& events);

}  // namespace infer
