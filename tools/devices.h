// infer devices: the devices that can run models on this machine, and the operations each implements.
#pragma once

namespace infer {

struct DevicesOptions {
  bool ops = false;
  bool json = false;
};

// Returns the exit code; throws Error.
int run_devices(const DevicesOptions& options);

}  // namespace infer
