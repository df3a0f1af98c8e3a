#include "src/text/jinja/time_format.h"

#include <algorithm>

namespace infer::jinja {
namespace {

constexpr const char* kDays[] = {"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"};
constexpr const char* kMonths[] = {"January", "February", "March",     "April",   "May",      "June",
                                   "July",    "August",   "September", "October", "November", "December"};

// Year and number of the ISO 8601 week.
std::pair<int, int> iso_week(const std::tm& t) {
  const int weekday = (t.tm_wday + 6) % 7;  // Monday is 0
  int year = t.tm_year + 1900, week = (t.tm_yday - weekday + 10) / 7;
  const auto leap = [](int y) { return (y % 4 == 0 && y % 100 != 0) || y % 400 == 0; };
  // Whether the year has 53 weeks, given the weekday of 1 January.
  const auto weeks = [&](int y, int first_weekday) {
    return first_weekday == 3 || (first_weekday == 2 && leap(y)) ? 53 : 52;
  };
  const int first = ((weekday - t.tm_yday) % 7 + 7) % 7;
  if (week < 1) {
    --year;
    week = weeks(year, ((first - (leap(year) ? 366 : 365)) % 7 + 7) % 7);
  } else if (week > weeks(year, first)) {
    ++year;
    week = 1;
  }
  return {year, week};
}

// Days from 1 January 1970 to a date.
int64_t days_since_epoch(int64_t year, int month, int day) {
  year -= month <= 2;
  const int64_t era = (year >= 0 ? year : year - 399) / 400;
  const int64_t year_of_era = year - era * 400;
  const int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  return era * 146097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719468;
}

class TimeFormat {
 public:
  TimeFormat(Heap& heap, const std::tm& time) : t_(time), out_(heap) {}

  void add(std::string_view format) {
    for (size_t i = 0; i < format.size(); ++i) {
      if (format[i] != '%' || i + 1 >= format.size()) {
        out_ += format[i];
        continue;
      }
      const size_t begin = i++;
      flag_ = 0, upper_ = swap_ = false, width_ = 0;
      for (; i < format.size() && std::string_view("-_0^#").find(format[i]) != std::string_view::npos; ++i) {
        if (format[i] == '^') upper_ = true;
        else if (format[i] == '#') swap_ = true;
        else flag_ = format[i];
      }
      for (; i < format.size() && format[i] >= '0' && format[i] <= '9'; ++i) {
        width_ = std::min(width_ * 10 + (format[i] - '0'), kMaxWidth);
      }
      if (i < format.size() && (format[i] == 'E' || format[i] == 'O')) ++i;
      if (i >= format.size() || !convert(format[i])) {
        out_ += format.substr(begin, std::min(i + 1, format.size()) - begin);
      }
    }
  }
  Text take() { return std::move(out_); }

 private:
  static constexpr int kMaxWidth = 1000;

  void number(int64_t value, int width, char pad = '0') {
    if (flag_ == '-') width = 0;
    if (flag_ == '_') pad = ' ';
    if (flag_ == '0') pad = '0';
    std::string digits = std::to_string(value < 0 ? -value : value);
    const auto wanted = static_cast<size_t>(std::max(width, width_) - (value < 0 ? 1 : 0));
    if (digits.size() < wanted) digits.insert(0, wanted - digits.size(), pad);
    if (value < 0) digits.insert(0, 1, '-');
    out_ += std::string_view(digits);
  }

  void word(std::string text) {
    if (upper_ || swap_) {
      for (char& c : text) c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 32 : c);
    }
    if (static_cast<int>(text.size()) < width_) text.insert(0, static_cast<size_t>(width_) - text.size(), ' ');
    out_ += std::string_view(text);
  }

  // Formats a composite conversion; its parts take no flags.
  bool parts(std::string_view format) {
    add(format);
    return true;
  }

  bool convert(char c) { return day_or_month(c) || year_or_week(c) || time_of_day(c) || other(c); }

  bool day_or_month(char c) {
    const char* day = kDays[((t_.tm_wday % 7) + 7) % 7];
    const char* month = kMonths[((t_.tm_mon % 12) + 12) % 12];
    switch (c) {
      case 'a':
        return word(std::string(day, 3)), true;
      case 'A':
        return word(day), true;
      case 'b':
      case 'h':
        return word(std::string(month, 3)), true;
      case 'B':
        return word(month), true;
      case 'd':
        return number(t_.tm_mday, 2), true;
      case 'e':
        return number(t_.tm_mday, 2, ' '), true;
      case 'j':
        return number(t_.tm_yday + 1, 3), true;
      case 'm':
        return number(t_.tm_mon + 1, 2), true;
      case 'u':
        return number(t_.tm_wday == 0 ? 7 : t_.tm_wday, 1), true;
      case 'w':
        return number(t_.tm_wday, 1), true;
      default:
        return false;
    }
  }

  bool year_or_week(char c) {
    const int64_t year = int64_t{t_.tm_year} + 1900;
    switch (c) {
      case 'C':
        return number(year / 100, 2), true;
      case 'g':
        return number(iso_week(t_).first % 100, 2), true;
      case 'G':
        return number(iso_week(t_).first, 4), true;
      case 'U':
        return number((t_.tm_yday + 7 - t_.tm_wday) / 7, 2), true;
      case 'V':
        return number(iso_week(t_).second, 2), true;
      case 'W':
        return number((t_.tm_yday + 7 - (t_.tm_wday + 6) % 7) / 7, 2), true;
      case 'y':
        return number((year % 100 + 100) % 100, 2), true;
      case 'Y':
        return number(year, 1), true;
      default:
        return false;
    }
  }

  bool time_of_day(char c) {
    const int hour12 = t_.tm_hour % 12 == 0 ? 12 : t_.tm_hour % 12;
    switch (c) {
      case 'f':
        return number(0, 6), true;
      case 'H':
        return number(t_.tm_hour, 2), true;
      case 'I':
        return number(hour12, 2), true;
      case 'k':
        return number(t_.tm_hour, 2, ' '), true;
      case 'l':
        return number(hour12, 2, ' '), true;
      case 'M':
        return number(t_.tm_min, 2), true;
      case 'p': {
        const bool lower = std::exchange(swap_, false);
        return word(t_.tm_hour < 12 ? (lower ? "am" : "AM") : (lower ? "pm" : "PM")), true;
      }
      case 'P':
        return word(t_.tm_hour < 12 ? "am" : "pm"), true;
      case 's': {
        const int64_t days = days_since_epoch(int64_t{t_.tm_year} + 1900, t_.tm_mon + 1, t_.tm_mday);
        return number(days * 86400 + t_.tm_hour * 3600 + t_.tm_min * 60 + t_.tm_sec, 1), true;
      }
      case 'S':
        return number(t_.tm_sec, 2), true;
      default:
        return false;
    }
  }

  bool other(char c) {
    switch (c) {
      case 'c':
        return parts("%a %b %e %H:%M:%S %Y");
      case 'D':
      case 'x':
        return parts("%m/%d/%y");
      case 'F':
        return parts("%Y-%m-%d");
      case 'r':
        return parts("%I:%M:%S %p");
      case 'R':
        return parts("%H:%M");
      case 'T':
      case 'X':
        return parts("%H:%M:%S");
      case 'n':
        return out_ += '\n', true;
      case 't':
        return out_ += '\t', true;
      case '%':
        return out_ += '%', true;
      case 'z':
      case 'Z':
        return true;
      default:
        return false;
    }
  }

  const std::tm& t_;
  Text out_;
  char flag_ = 0;  // - _ or 0; 0: none
  bool upper_ = false, swap_ = false;
  int width_ = 0;
};

}  // namespace

Text format_time(Heap& heap, std::string_view format, const std::tm& time) {
  heap.work(format.size() * 64);
  TimeFormat out(heap, time);
  out.add(format);
  return out.take();
}

}  // namespace infer::jinja
