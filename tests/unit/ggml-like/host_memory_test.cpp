#include "ggml-like/host_memory.h"

#include <doctest/doctest.h>

#include "tests/unit/ggml-like/gguf_raw.h"

namespace infer {
namespace {

constexpr uint64_t kMiB = 1 << 20;

// The files of a machine with 8,000 MiB, of which 6,000 are free.
struct System {
  test::TemporaryFolder folder;
  System() { write("proc/meminfo", "MemTotal:        8192000 kB\nMemFree:  1024 kB\nMemAvailable:    6144000 kB\n"); }
  void write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories((folder.path / name).parent_path());
    folder.write(name, text);
  }
  // The limits of a group, in MiB.
  void limit_v2(const std::string& group, const std::string& limit, uint64_t used, uint64_t inactive) const {
    const std::string path = "sys/fs/cgroup/" + group;
    write(path + "/memory.max", limit + "\n");
    write(path + "/memory.current", std::to_string(used * kMiB) + "\n");
    write(path + "/memory.stat", "anon 1\ninactive_file " + std::to_string(inactive * kMiB) + "\nslab 2\n");
  }
  void check(uint64_t total, uint64_t free) const {
    const DeviceMemory memory = host_memory_under(folder.path);
    CHECK(memory.total == total * kMiB);
    CHECK(memory.free == free * kMiB);
  }
};
std::string bytes(uint64_t mib) { return std::to_string(mib * kMiB); }

TEST_CASE("host memory: the machine's, without a limit") {
  const System system;
  system.check(8000, 6000);
  system.write("proc/self/cgroup", "0::/user.slice\n");
  system.check(8000, 6000);
  system.limit_v2("user.slice", "max", 700, 0);
  system.check(8000, 6000);
  system.write("proc/self/cgroup", "broken\n4:memory\n0::\n0::/../..\n");
  system.check(8000, 6000);
}

TEST_CASE("host memory: a container's limit, less what is in use and cannot be reclaimed") {
  const System system;
  system.write("proc/self/cgroup", "0::/\n");
  system.limit_v2("", bytes(2048), 1024, 512);
  system.check(2048, 1536);
  system.limit_v2("", bytes(2048), 3000, 0);
  system.check(2048, 0);
  system.limit_v2("", bytes(9000), 100, 0);
  system.check(8000, 6000);
}

TEST_CASE("host memory: the lowest limit of all groups above") {
  const System system;
  system.write("proc/self/cgroup", "1:cpu:/x\n0::/machine/box/inner\n");
  system.limit_v2("machine", bytes(4000), 3900, 0);
  system.limit_v2("machine/box", bytes(3000), 100, 0);
  system.limit_v2("machine/box/inner", "max", 100, 0);
  system.check(3000, 100);
  // The host's path, in a container that mounts only its own group.
  system.write("proc/self/cgroup", "0::/docker/0123\n");
  system.limit_v2("", bytes(1000), 400, 0);
  system.check(1000, 600);
}

TEST_CASE("host memory: limits of version 1") {
  const System system;
  system.write("proc/self/cgroup", "5:cpu,memory:/a\n0::/\n");
  const std::string group = "sys/fs/cgroup/memory/a/";
  system.write(group + "memory.limit_in_bytes", bytes(512) + "\n");
  system.write(group + "memory.usage_in_bytes", bytes(300) + "\n");
  system.write(group + "memory.stat", "inactive_file 1\ntotal_inactive_file " + bytes(100) + "\n");
  system.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  system.write("sys/fs/cgroup/memory/memory.usage_in_bytes", "1\n");
  system.check(512, 312);
}

}  // namespace
}  // namespace infer
