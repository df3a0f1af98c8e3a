// Counts of drafts verified and accepted. Plain data.
#pragma once

#include <cstdint>

namespace infer {

struct DraftCounts {
  int64_t verifications = 0;  // sequence-steps that verified at least one draft
  int64_t proposed = 0;       // drafts verified
  int64_t accepted = 0;       // of these, drafts that matched the token the model sampled

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
