// SHA-256, from OpenSSL where the program has it. One thread per object.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace infer {

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  void add(const void* data, size_t bytes);
  // 64 lower-case hex digits. Nothing may be added afterwards.
  std::string finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

bool is_sha256(std::string_view text);  // 64 lower-case hex digits

// Of a whole file. Stops with Error(kCancelled) once `cancelled` returns true; throws Error(kIo) if it cannot be read.
std::string sha256_of_file(const std::filesystem::path& path, const std::function<bool()>& cancelled = nullptr);

}  // namespace infer
