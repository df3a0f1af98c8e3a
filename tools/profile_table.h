// Where the time of a run went, as a table for people.
#pragma once

#include <string>

#include "ggml-like/backend.h"
#include "ggml-like/profile.h"
#include "src/engine/engine.h"

namespace infer {

// The least time a machine with these limits would need for the line's work, in seconds; 0 where nothing is known.
double least_seconds(const ProfileLine& line, const MachineLimits& limits);

// One row per line of the profile, with its share of the time and, where there is a limit, the fraction of it.
std::string profile_table(const Profile& profile, const MachineLimits& limits);

// The table of an engine that has a profile, with limits measured now, to stderr; else nothing.
void print_profile(Engine& engine);

}  // namespace infer
