// The models in a repository: its GGUF files, with the parts of a split model taken together, named by their
// quantization. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "src/hub/url.h"

namespace infer {

// A file on a server.
struct RemoteFile {
  std::string path;    // in the repository; safe, see is_safe_relative_path()
  uint64_t size = 0;   // 0: not known yet
  std::string sha256;  // "": not known
  std::string etag;    // "": not known, or none that identifies the bytes
  Url url;
  std::string token;  // for the origin of `url`
};

struct Variant {
  std::string label;              // "Q4_K_M"; "" if the name of the file says none
  std::vector<RemoteFile> files;  // in the order of the parts

  uint64_t size() const;
};

// The quantization in a file's name or else in its folder's, in capitals: "UD-Q4_K_XL" of
// a/x-UD-Q4_K_XL-00001-of-00003.gguf.
std::string quantization_of(std::string_view path);

// Groups files into variants, in the order of their names. Leaves out what is no model of its own (image projectors,
// importance matrices, draft heads) and split models with parts missing.
std::vector<Variant> group_variants(std::vector<RemoteFile> files);

// Variants with this quantization, whatever its case and with or without "UD-"; all for "".
std::vector<Variant> matching_variants(const std::vector<Variant>& variants, std::string_view tag);

// The name of one of `all`: its quantization after `base`, or its file where that is not unique.
std::string variant_name(const std::string& base, const Variant& variant, const std::vector<Variant>& all);

// Best first: Q4_K_M and its like, a compromise between size and quality, then more bits, then fewer.
void sort_by_preference(std::vector<Variant>& variants);
bool is_preferred(std::string_view label, std::string_view other);  // strictly before the other

}  // namespace infer
