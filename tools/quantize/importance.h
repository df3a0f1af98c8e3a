// Importance matrices as encoding needs them: for each weight matrix, the mean square of what its columns are
// multiplied with. Immutable after load(); any thread may read it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace infer {

class Importance {
 public:
  struct Entry {
    std::vector<float> weights;  // [n_matrices, row]: of one expert behind the other
  };

  Importance() = default;
  // Of a file that ImportanceSums::read takes. Throws what that throws.
  static Importance load(const std::filesystem::path& path);

  bool empty() const { return entries_.empty(); }
  size_t size() const { return entries_.size(); }
  const Entry* find(std::string_view tensor) const;        // nullptr when there is none
  const std::string& dataset() const { return dataset_; }  // the first; "" when the file does not say
  int64_t n_chunks() const { return n_chunks_; }           // 0 when the file does not say

 private:
  std::map<std::string, Entry, std::less<>> entries_;
  std::string dataset_;
  int64_t n_chunks_ = 0;
};

}  // namespace infer
