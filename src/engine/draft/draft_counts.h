// What became of drafts. Plain data.
#pragma once

#include <cstdint>

namespace infer {

struct DraftCounts {
  int64_t verifications = 0;  // sequences of steps that verified any
  int64_t proposed = 0;       // drafts verified
  int64_t accepted = 0;       // of these, those that the model chose too

  DraftCounts& operator+=(const DraftCounts& other) {
    verifications += other.verifications;
    proposed += other.proposed;
    accepted += other.accepted;
    return *this;
  }
  DraftCounts operator-(const DraftCounts& other) const {
    return {verifications - other.verifications, proposed - other.proposed, accepted - other.accepted};
  }
};

}  // namespace infer
