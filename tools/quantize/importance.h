// An importance matrix in the form that encoding needs: for each weight matrix, the mean square of its input columns.
// Immutable after load(); thread-safe.
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
    std::vector<float> weights;  // [n_matrices, row]: one expert after another
  };

  Importance() = default;
  // Loads a file that ImportanceSums::read accepts. Throws what that throws.
  static Importance load(const std::filesystem::path& path);

  bool empty() const { return entries_.empty(); }
  size_t size() const { return entries_.size(); }
  const Entry* find(std::string_view tensor) const;        // nullptr if there is none
  const std::string& dataset() const { return dataset_; }  // the first one; "" if the file does not say
  int64_t n_chunks() const { return n_chunks_; }           // 0 if the file does not say

 private:
  std::map<std::string, Entry, std::less<>> entries_;
  std::string dataset_;
  int64_t n_chunks_ = 0;
};

}  // namespace infer
