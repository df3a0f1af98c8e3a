// infer devices: what this machine can run models on, and which operations each device implements.
#pragma once

namespace infer {

struct DevicesOptions {
  bool ops = false;
  bool json = false;
};

// Returns the exit code; throws Error.
int run_devices(const DevicesOptions& options);

}  // namespace infer
