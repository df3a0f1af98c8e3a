#include "tools/devices.h"

#include <iomanip>
#include <iostream>
#include <memory>

#include "backends/registry.h"
#include "ggml-like/bytes_text.h"
#include "ggml-like/error.h"
#include "src/text/ordered_json.h"

namespace infer {
namespace {

using nlohmann::ordered_json;

struct DevicesOptions {
  bool ops = false;
  bool json = false;
};

// Weight types for which a device has a matmul.
std::vector<std::string> product_types(const Device& device) {
  std::vector<std::string> names;
  for (const TypeTraits& type : all_types()) {
    if (!type.dot) continue;
    const TensorDesc x = make_desc(DataType::kF32, {1, 256}, RowKind::kTokens), w = make_desc(type.type, {256, 256});
    const TensorDesc y = make_desc(DataType::kF32, {1, 256}, RowKind::kTokens);
    const TensorDesc* inputs[] = {&x, &w, nullptr};
    const TensorDesc* outputs[] = {&y};
    const OpParams params = NoParams{};
    if (device.supports({Op::kMatMul, &params, inputs, outputs, nullptr})) names.emplace_back(type.name);
  }
  return names;
}

void print_text(const ordered_json& list) {
  std::cout << std::fixed << std::setprecision(1);
  for (const ordered_json& d : list) {
    const auto size = [&](const char* key) { return bytes_text(d[key].get<uint64_t>()); };
    std::cout << std::left << std::setw(8) << d["name"].get<std::string>() << d["description"].get<std::string>()
              << ", " << size("memory_free") << " of " << size("memory_total") << " free\n";
    if (d.contains("levels")) {
      std::cout << "        levels:";
      for (const auto& level : d["levels"]) std::cout << ' ' << level.get<std::string>();
      std::cout << " (choose one with INFER_CPU=NAME)\n";
    }
    if (d.contains("blas")) std::cout << "        --blas: " << d["blas"].get<std::string>() << '\n';
    for (const ordered_json& other : list) {
      if (&other == &d) break;
      if (d.contains("card") && other.value("card", "") == d["card"]) {
        std::cout << "        the same card as " << other["name"].get<std::string>() << '\n';
      }
    }
    if (!d.contains("operations")) continue;
    std::cout << "        operations:";
    for (const auto& [op, supported] : d["operations"].items()) {
      if (supported.get<bool>()) std::cout << ' ' << op;
    }
    std::cout << "\n        weight types for matmul:";
    for (const auto& type : d["product_types"]) std::cout << ' ' << type.get<std::string>();
    std::cout << '\n';
    for (const auto& [op, supported] : d["operations"].items()) {
      if (!supported.get<bool>()) std::cout << "        not implemented, runs on the CPU: " << op << '\n';
    }
  }
}

int run_devices(const DevicesOptions& options) {
  ordered_json list = ordered_json::array();
  for (const std::string& name : device_names()) {
    const std::unique_ptr<Device> device = open_device(name);
    const DeviceMemory memory = device->memory();
    ordered_json entry = {{"name", name},
                          {"description", device->description()},
                          {"memory_total", memory.total},
                          {"memory_free", memory.free}};
    if (const std::string card = device_card(name); !card.empty()) entry["card"] = card;
    if (name == "cpu") {
      entry["levels"] = cpu_level_names();
      if (const std::string blas = blas_description(); !blas.empty()) entry["blas"] = blas;
    }
    if (options.ops) {
      ordered_json ops = ordered_json::object();
      for (const OpInfo& op : all_ops()) ops[std::string(op.name)] = device->find(op.op) != nullptr;
      entry["operations"] = std::move(ops);
      entry["product_types"] = product_types(*device);
    }
    list.push_back(std::move(entry));
  }
  if (options.json) {
    ordered_json document = {{"devices", std::move(list)}};
    if (const std::vector<std::string> problems = device_problems(); !problems.empty()) document["problems"] = problems;
    std::cout << document.dump(2) << '\n';
    return 0;
  }
  print_text(list);
  for (const std::string& problem : device_problems()) std::cout << problem << '\n';
  return 0;
}

}  // namespace

void add_list_devices_flag(CLI::App& app) {
  app.add_flag_callback(
      "--list-devices",
      [] {
        run_devices({});
        throw CLI::Success();
      },
      "List the devices that can run models, as infer devices does, and exit");
}

std::function<int()> define_devices(CLI::App& app) {
  const auto o = std::make_shared<DevicesOptions>();
  app.add_flag("--ops", o->ops, "List the operations and weight types each device implements");
  app.add_flag("--json", o->json, "Print one JSON document");
  return [o] { return run_devices(*o); };
}

}  // namespace infer
