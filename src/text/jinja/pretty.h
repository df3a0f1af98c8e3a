// Lays out values over several lines, as Python's pprint.pformat does.
#pragma once

#include "src/text/jinja/value.h"

namespace infer::jinja {

void append_pretty(const Value& value, Text& out);

}  // namespace infer::jinja
