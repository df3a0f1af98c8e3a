#include "src/text/stop_strings.h"

#include <algorithm>
#include <utility>

namespace infer {

StopStrings::StopStrings(const std::vector<std::string>& stops) {
  std::copy_if(stops.begin(), stops.end(), std::back_inserter(stops_),
               [](const std::string& stop) { return !stop.empty(); });
}

std::string StopStrings::add(std::string_view text) {
  if (stopped_) return "";
  std::string all = std::exchange(pending_, "") + std::string(text);
  std::pair<size_t, size_t> found = {std::string::npos, 0};  // end and start of the stop string found
  for (const std::string& stop : stops_) {
    const size_t at = all.find(stop);
    if (at != std::string::npos) found = std::min(found, {at + stop.size(), at});
  }
  if (found.first != std::string::npos) {
    stopped_ = true;
    all.resize(found.second);
    return all;
  }
  // The first offset from which the text is a prefix of some stop string.
  size_t held = all.size();
  for (const std::string& stop : stops_) {
    for (size_t n = std::min(stop.size() - 1, all.size()); n > all.size() - held; --n) {
      if (std::string_view(all).ends_with(std::string_view(stop).substr(0, n))) {
        held = all.size() - n;
        break;
      }
    }
  }
  pending_ = all.substr(held);
  all.resize(held);
  return all;
}

std::string StopStrings::flush() { return std::exchange(pending_, ""); }

}  // namespace infer
