#include "tests/cuda_stand_in/settings.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace cuda_stand_in {
namespace {

long long number(const char* name, long long otherwise) {
  const char* text = std::getenv(name);
  return text && *text ? std::strtoll(text, nullptr, 10) : otherwise;
}

Settings read_settings() {
  Settings s;
  s.driver = static_cast<int>(number("INFER_CUDA_STAND_IN_DRIVER", s.driver));
  s.devices = static_cast<int>(std::clamp<long long>(number("INFER_CUDA_STAND_IN_DEVICES", 1), 0, kMostDevices));
  if (const char* text = std::getenv("INFER_CUDA_STAND_IN_CAPABILITY")) std::sscanf(text, "%d.%d", &s.major, &s.minor);
  if (const char* text = std::getenv("INFER_CUDA_STAND_IN_UUID"); text && std::string_view(text).size() == 32) {
    s.uuid = text;
  }
  const long long megabytes = number("INFER_CUDA_STAND_IN_MEMORY_MB", 0);
  if (megabytes > 0) s.memory_bytes = std::min(s.memory_bytes, static_cast<size_t>(megabytes) << 20);
  s.pools = number("INFER_CUDA_STAND_IN_POOLS", 1) != 0;
  s.fail_allocation = number("INFER_CUDA_STAND_IN_FAIL_ALLOCATION", 0);
  s.lost = number("INFER_CUDA_STAND_IN_LOST", 0);
  return s;
}

}  // namespace

const Settings& settings() {
  static const Settings& read = *new Settings(read_settings());
  return read;
}

}  // namespace cuda_stand_in
