// Flags for the processors that CPU threads are pinned to: -C, -Cr and --numa.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace infer {

// The processors that the system lets this process run on; empty if it does not say.
std::vector<int> allowed_processors();

// Parses the flags into `processors`: thread i is pinned to processors[i % size]; empty: not pinned.
void add_processor_flags(CLI::App& app, std::vector<int>& processors);

// The processors of each node with memory of its own. `folder`: /sys/devices/system/node, or a copy of it.
std::vector<std::vector<int>> numa_nodes(const std::string& folder);

// How threads are spread over nodes, as in llama.cpp: distribute (thread i on node i % nodes), isolate (on the node of
// processor `current`), numactl (on `allowed`, the processors that the process may use). `chosen`: those of -C and -Cr,
// empty: all allowed. Empty if there is only one node, where the order makes no difference and nothing was chosen.
std::vector<int> numa_processors(const std::string& word, const std::vector<std::vector<int>>& nodes,
                                 const std::vector<int>& chosen, const std::vector<int>& allowed, int current);

}  // namespace infer
