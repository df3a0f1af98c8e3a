// strftime in the C locale, whatever the program's locale.
#pragma once

#include <ctime>

#include "src/text/jinja/heap.h"

namespace infer::jinja {

// Supports %a %A %b %B %c %C %d %D %e %f %F %g %G %h %H %I %j %k %l %m %M %n %p %P %r %R %s %S %t %T %u %U %V %w %W %x
// %X %y %Y %z %Z and %%, with glibc's flags - _ 0 ^ # and a width. %z and %Z are empty, as for a time without a zone.
// Other conversions are left unchanged.
Text format_time(Heap& heap, std::string_view format, const std::tm& time);

}  // namespace infer::jinja
