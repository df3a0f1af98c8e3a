#include "src/text/tool_calls/call_ids.h"

#include <cstdint>

namespace infer {

std::string make_call_id(std::string_view seed, size_t index, bool short_id) {
  constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
  uint64_t state = 0xcbf29ce484222325;  // FNV-1a over the seed
  for (const char c : seed) state = (state ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  state += index * 0xd1342543de82ef95;
  std::string id = short_id ? "" : "call_";
  for (int i = 0; i < (short_id ? 9 : 24); ++i) {
    state += 0x9e3779b97f4a7c15;  // splitmix64
    uint64_t z = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    id += kLetters[(z ^ (z >> 31)) % kLetters.size()];
  }
  return id;
}

}  // namespace infer
