#include "tools/processor_flags.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <memory>

#include "ggml-like/error.h"
#include "ggml-like/printable.h"
#include "tools/arguments.h"
#include "tools/option_names.h"

namespace infer {
namespace {

constexpr const char* kNodes = "/sys/devices/system/node";

int n_processors() { return static_cast<int>(sysconf(_SC_NPROCESSORS_CONF)); }

// The processors lo .. hi of "lo-hi".
std::vector<int> parse_cpu_range(const std::string& text) {
  int low = -1, high = -1;
  const char* end = text.data() + text.size();
  const auto [dash, first] = std::from_chars(text.data(), end, low);
  if (first == std::errc() && dash != end && *dash == '-') {
    const auto [at, second] = std::from_chars(dash + 1, end, high);
    if (second != std::errc() || at != end) high = -1;
  }
  if (low < 0 || high < low || high >= n_processors()) {
    throw Error(
        ErrorCode::kInvalidArgument,
        concat("--cpu-range: ", printable(text, 40),
               " is not a range of this machine's processors. Write LO-HI, from 0 to ", n_processors() - 1, "."));
  }
  std::vector<int> range;
  for (int i = low; i <= high; ++i) range.push_back(i);
  return range;
}

// The processors whose bits are set in a hexadecimal number, lowest first.
std::vector<int> parse_cpu_mask(const std::string& text) {
  const bool prefixed = text.starts_with("0x") || text.starts_with("0X");
  const std::string digits = text.substr(prefixed ? 2 : 0);
  std::vector<int> processors;
  bool valid = !digits.empty();
  for (size_t i = 0; i < digits.size() && valid; ++i) {
    const char* digit = digits.data() + digits.size() - 1 - i;
    int value = 0;
    valid = std::from_chars(digit, digit + 1, value, 16).ec == std::errc();
    for (int bit = 0; bit < 4; ++bit) {
      if (value >> bit & 1) processors.push_back(static_cast<int>(4 * i) + bit);
    }
  }
  if (!valid || processors.empty() || processors.back() >= n_processors()) {
    throw Error(ErrorCode::kInvalidArgument,
                concat("--cpu-mask: ", printable(text, 40),
                       " is not a mask of this machine's processors. Write a hexadecimal number with a bit for each of "
                       "the processors 0 to ",
                       n_processors() - 1, "."));
  }
  return processors;
}

void add_to(std::vector<int>& processors, const std::vector<int>& more) {
  processors.insert(processors.end(), more.begin(), more.end());
  std::sort(processors.begin(), processors.end());
  processors.erase(std::unique(processors.begin(), processors.end()), processors.end());
}

bool contains(const std::vector<int>& list, int processor) {
  return std::find(list.begin(), list.end(), processor) != list.end();
}

}  // namespace

std::vector<int> allowed_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> allowed;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return allowed;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &set)) allowed.push_back(i);
  }
  return allowed;
}

std::vector<std::vector<int>> numa_nodes(const std::string& folder) {
  std::vector<std::vector<int>> nodes;
  for (int node = 0;; ++node) {
    std::ifstream file(concat(folder, "/node", node, "/cpulist"));
    std::string list;
    if (!std::getline(file, list)) return nodes;  // a node without processors has an empty line
    std::vector<int> processors;
    for (const std::string& range : CLI::detail::split(list, ',')) {
      int low = 0;
      const char* end = range.data() + range.size();
      const char* dash = std::from_chars(range.data(), end, low).ptr;
      int high = low;
      if (dash != end && *dash == '-') std::from_chars(dash + 1, end, high);
      for (int i = low; i <= high && !range.empty(); ++i) processors.push_back(i);
    }
    if (!processors.empty()) nodes.push_back(std::move(processors));
  }
}

std::vector<int> numa_processors(const std::string& word, const std::vector<std::vector<int>>& nodes,
                                 const std::vector<int>& chosen, const std::vector<int>& allowed, int current) {
  const std::vector<int>& usable = chosen.empty() ? allowed : chosen;
  if (word == "numactl") return usable;
  if (nodes.size() < 2) return chosen;
  std::vector<std::vector<int>> parts;
  for (const std::vector<int>& node : nodes) {
    if (word == "isolate" && !contains(node, current)) continue;
    std::vector<int> part;
    std::copy_if(node.begin(), node.end(), std::back_inserter(part), [&](int i) { return contains(usable, i); });
    if (!part.empty()) parts.push_back(std::move(part));
  }
  std::vector<int> spread;
  for (size_t i = 0; spread.size() < usable.size(); ++i) {
    bool any = false;
    for (const std::vector<int>& part : parts) {
      if (i < part.size()) spread.push_back(part[i]);
      any = any || i < part.size();
    }
    if (!any) break;
  }
  return spread.empty() ? chosen : spread;
}

void add_processor_flags(CLI::App& app, std::vector<int>& processors) {
  // Together, the two flags name the union of their processors.
  app.add_option_function<std::string>(
         flag_names("-C,--cpu-mask"),
         [&processors](const std::string& text) { add_to(processors, parse_cpu_mask(text)); },
         "Pin CPU threads to the processors in this hexadecimal mask, besides those of -Cr (default: any)")
      ->check(not_empty())
      ->type_name("M");
  app.add_option_function<std::string>(
         flag_names("-Cr,--cpu-range"),
         [&processors](const std::string& text) { add_to(processors, parse_cpu_range(text)); },
         "Pin CPU threads to these processors: 0-7 (default: any)")
      ->check(not_empty())
      ->type_name("LO-HI");
  app.add_option_function<std::string>(
         "--numa",
         [&processors](const std::string& word) {
           processors = numa_processors(word, numa_nodes(kNodes), processors, allowed_processors(), sched_getcpu());
         },
         "On machines with several memory nodes, pin CPU threads: distribute (evenly over the nodes), isolate (to the "
         "node that infer was started on), numactl (to the processors it was started with)")
      ->check(one_of({"distribute", "isolate", "numactl"}))
      ->type_name("WORD");
}

}  // namespace infer
