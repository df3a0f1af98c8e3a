// How the hidden states of a text, after the final norm, are reduced to one vector.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace infer {

enum class Pooling : uint8_t {
  kNone,
  kMean,  // over all positions
  kLast,  // of the last position
  kCls,   // of the first position
  kRank,  // the scores of the model's classifier
};

// "mean", "last", "cls" or "rank"; nullopt for another name.
constexpr std::optional<Pooling> pooling_of(std::string_view name) {
  if (name == "mean") return Pooling::kMean;
  if (name == "last") return Pooling::kLast;
  if (name == "cls") return Pooling::kCls;
  if (name == "rank") return Pooling::kRank;
  return std::nullopt;
}

}  // namespace infer
