// The memory that this process may use: the machine's, or less if a control group (a container, a service with a memory
// limit) limits it.
#pragma once

#include <filesystem>

#include "ggml-like/backend.h"

namespace infer {

// host_memory() of a system whose files are under `root` (proc/meminfo, proc/self/cgroup, sys/fs/cgroup).
// https://docs.kernel.org/admin-guide/cgroup-v2.html, and cgroup-v1/memory.html
DeviceMemory host_memory_under(const std::filesystem::path& root);

}  // namespace infer
