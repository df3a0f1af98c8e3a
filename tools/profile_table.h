// Prints a profile as a table.
#pragma once

#include <string>

#include "ggml-like/backend.h"
#include "ggml-like/profile.h"
#include "src/engine/engine.h"

namespace infer {

// The minimum time, in seconds, that a machine with these limits needs for the line's work; 0 if unknown.
double least_seconds(const ProfileLine& line, const MachineLimits& limits);

// One row per line of the profile, with its share of the time and, if there is a limit, the fraction of the limit
// reached.
std::string profile_table(const Profile& profile, const MachineLimits& limits);

// Prints the profile of an engine, if it has one, to stderr, with limits measured now.
void print_profile(Engine& engine);

}  // namespace infer
