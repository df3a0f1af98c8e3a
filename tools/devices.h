// infer devices: the devices that can run models on this machine, and the operations each implements.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace infer {

// Defines the flags on `app`; returns the function that runs the command.
std::function<int()> define_devices(CLI::App& app);

// --list-devices, for commands that load a model: prints what `infer devices` prints and ends the program.
void add_list_devices_flag(CLI::App& app);

}  // namespace infer
