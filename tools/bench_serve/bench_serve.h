// infer bench-serve: the latency and throughput of an OpenAI endpoint under concurrent load.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace infer {

// Defines the flags on `app`; returns the function that runs the command. Its exit code is 1 if a level of
// concurrency had no answer at all, and 130 after Ctrl-C.
std::function<int()> define_bench_serve(CLI::App& app);

}  // namespace infer
