#include "ggml-like/host_memory.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>

namespace infer {
namespace {

namespace fs = std::filesystem;

// Reads a file that holds one number; nullopt if it does not exist or holds "max".
std::optional<uint64_t> read_number(const fs::path& file) {
  std::ifstream in(file);
  uint64_t number = 0;
  if (!(in >> number)) return std::nullopt;
  return number;
}

// The number after `key` in a file whose lines are a key and a number.
uint64_t number_of(const fs::path& file, const std::string& key) {
  std::ifstream in(file);
  std::string name;
  for (uint64_t number = 0; in >> name >> number; in.ignore(64, '\n')) {
    if (name == key) return number;
  }
  return 0;
}

// File names, which differ between versions 1 and 2 of control groups.
struct Names {
  const char *limit, *used, *unused_pages;  // unused_pages is a key in memory.stat
};
constexpr Names kV1 = {"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"};
constexpr Names kV2 = {"memory.max", "memory.current", "inactive_file"};

// Applies the limits of the group in `folder` and of all groups above it, up to `top`.
void apply_limits(DeviceMemory& memory, const Names& names, const fs::path& top, fs::path folder) {
  const uint64_t of_machine = memory.total;
  for (;; folder = folder.parent_path()) {
    const std::optional<uint64_t> limit = read_number(folder / names.limit), used = read_number(folder / names.used);
    if (limit && used && *limit < of_machine) {
      // Inactive file pages count as used, but the kernel reclaims them on demand.
      const uint64_t held = *used - std::min(*used, number_of(folder / "memory.stat", names.unused_pages));
      memory.total = std::min(memory.total, *limit);
      memory.free = std::min(memory.free, *limit - std::min(*limit, held));
    }
    if (folder == top) return;
  }
}

}  // namespace

DeviceMemory host_memory_under(const fs::path& root) {
  DeviceMemory memory;
  std::ifstream file(root / "proc/meminfo");
  std::string key;
  for (uint64_t kib = 0; file >> key >> kib; file.ignore(64, '\n')) {
    if (key == "MemTotal:") memory.total = kib * 1024;
    if (key == "MemAvailable:") memory.free = kib * 1024;
  }
  // Lines of NUMBER:CONTROLLERS:/PATH; version 2 has no controllers. In a container without a cgroup namespace of its
  // own, the path is the host's, but only the container's group is mounted, at the top.
  std::ifstream groups(root / "proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    std::istringstream list(controllers);
    bool of_memory = controllers.empty();
    for (std::string name; std::getline(list, name, ',');) of_memory = of_memory || name == "memory";
    if (!of_memory) continue;
    const fs::path top = root / (controllers.empty() ? "sys/fs/cgroup" : "sys/fs/cgroup/memory");
    const fs::path path = fs::path(line.substr(second + 1)).relative_path().lexically_normal();
    const bool is_below = !path.empty() && path != "." && *path.begin() != "..";
    apply_limits(memory, controllers.empty() ? kV2 : kV1, top, is_below ? top / path : top);
  }
  return memory;
}

DeviceMemory host_memory() {
  DeviceMemory memory = host_memory_under("/");
  const uint64_t page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  if (memory.total == 0) memory.total = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * page;
  if (memory.free == 0) memory.free = static_cast<uint64_t>(sysconf(_SC_AVPHYS_PAGES)) * page;
  return memory;
}

}  // namespace infer
