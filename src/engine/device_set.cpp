#include "src/engine/device_set.h"

#include <algorithm>

#include "ggml-like/error.h"
#include "ggml-like/message.h"

namespace infer {
namespace {

// Two backends on one card would each plan to use all of its memory.
void check_cards(const std::vector<std::string>& names) {
  for (size_t a = 0; a < names.size(); ++a) {
    for (size_t b = a + 1; b < names.size(); ++b) {
      const std::string card = device_card(names[a]);
      if (names[a] == names[b] || card.empty() || card != device_card(names[b])) continue;
      throw Error(ErrorCode::kInvalidArgument,
                  concat(names[a], " and ", names[b], " are the same card. Use one of them."));
    }
  }
}

}  // namespace

int DeviceSet::find(const std::string& name) const {
  for (size_t d = 0; d < devices.size(); ++d) {
    if (devices[d]->name() == name) return static_cast<int>(d);
  }
  return -1;
}

std::string DeviceSet::names() const {
  std::string names;
  for (const auto& device : devices) names += (names.empty() ? "" : ", ") + device->name();
  return names;
}

std::vector<Device*> DeviceSet::list() const {
  std::vector<Device*> list;
  for (const auto& device : devices) list.push_back(device.get());
  return list;
}

std::string DeviceSet::description() const {
  std::string text;
  for (size_t d = 1; d < devices.size(); ++d) {
    text += concat(d > 1 ? ", " : "", devices[d]->name(), " (", devices[d]->description(), ")");
  }
  return text + (text.empty() ? "" : " and ") + devices[0]->description();
}

std::shared_ptr<DeviceSet> open_devices(const std::vector<std::string>& names, const DeviceOptions& options) {
  if (names.empty()) throw Error(ErrorCode::kInvalidArgument, expected_found("device", "at least one name", "none"));
  check_cards(names);
  auto set = std::make_shared<DeviceSet>();
  set->devices.push_back(open_device("cpu", options));
  for (const std::string& name : names) {
    if (name != "cpu") set->devices.push_back(open_device(name, options));
    const int index = name == "cpu" ? 0 : static_cast<int>(set->devices.size()) - 1;
    const bool known = set->find(set->devices[static_cast<size_t>(index)]->name()) != index ||
                       std::count(set->of_layers.begin(), set->of_layers.end(), index) > 0;
    if (known)
      throw Error(ErrorCode::kInvalidArgument, expected_found("device", "each device once", concat(name, " twice")));
    set->of_layers.push_back(index);
  }
  return set;
}

std::shared_ptr<DeviceSet> open_default_devices(const std::string& gpu, const DeviceOptions& options,
                                                const std::function<void(const std::string& line)>& note) {
  if (gpu.empty()) return open_devices({"cpu"}, options);
  try {
    return open_devices({gpu}, options);
  } catch (const Error& error) {
    if (note) note(concat("[offload] all on the CPU, since ", gpu, " cannot be used: ", error.what()));
    return open_devices({"cpu"}, options);
  }
}

}  // namespace infer
