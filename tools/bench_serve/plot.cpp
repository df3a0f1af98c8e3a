#include "tools/bench_serve/plot.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "ggml-like/error.h"

namespace infer {
namespace {

constexpr double kWidth = 860, kHeight = 380;
constexpr double kPanelWidth = 330, kPanelHeight = 240, kTop = 70;
struct Line {
  const char* name;
  const char* colour;
  double Latency::*value;
};
constexpr Line kLines[] = {
    {"p50", "#2a78d6", &Latency::p50}, {"p95", "#e08214", &Latency::p95}, {"p99", "#b2182b", &Latency::p99}};

std::string number_text(double x) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.6g", x);
  return text;
}

std::string coordinate_text(double x) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.1f", x);
  return text;
}

std::string xml_escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '&') out += "&amp;";
    else if (c == '<') out += "&lt;";
    else if (c == '>') out += "&gt;";
    else if (c == '"') out += "&quot;";
    else out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return out;
}

std::string text_at(double x, double y, const char* anchor, const std::string& text) {
  return concat("<text x=\"", coordinate_text(x), "\" y=\"", coordinate_text(y), "\" text-anchor=\"", anchor, "\">",
                xml_escaped(text), "</text>\n");
}

std::string line_between(double x1, double y1, double x2, double y2, const char* colour) {
  return concat("<line x1=\"", coordinate_text(x1), "\" y1=\"", coordinate_text(y1), "\" x2=\"", coordinate_text(x2),
                "\" y2=\"", coordinate_text(y2), "\" stroke=\"", colour, "\"/>\n");
}

// One panel with its left edge at `left`: milliseconds over evenly spaced levels of concurrency.
std::string panel(double left, const std::string& title, const std::vector<LevelResult>& levels,
                  Latency LevelResult::*latency) {
  double largest = 0;
  for (const LevelResult& level : levels) largest = std::max(largest, 1000 * (level.*latency).p99);
  const double step = axis_step(largest), top = step * std::max(1.0, std::ceil(largest / step - 1e-9));
  const double bottom = kTop + kPanelHeight, right = left + kPanelWidth;
  const auto x_of = [&](size_t i) { return left + kPanelWidth * (static_cast<double>(i) + 0.5) / levels.size(); };
  const auto y_of = [&](double ms) { return bottom - kPanelHeight * ms / top; };

  std::string svg = text_at((left + right) / 2, kTop - 16, "middle", title);
  for (double ms = 0; ms <= top * (1 + 1e-9); ms += step) {
    svg += line_between(left, y_of(ms), right, y_of(ms), "#dddddd");
    svg += text_at(left - 8, y_of(ms) + 4, "end", number_text(ms));
  }
  svg += line_between(left, bottom, right, bottom, "#444444");
  for (size_t i = 0; i < levels.size(); ++i) {
    svg += text_at(x_of(i), bottom + 18, "middle", std::to_string(levels[i].concurrency));
  }
  svg += text_at((left + right) / 2, bottom + 40, "middle", "concurrent requests");
  for (const Line& line : kLines) {
    std::string points;
    for (size_t i = 0; i < levels.size(); ++i) {
      if (levels[i].answered == 0) continue;  // no measurements
      const std::string x = coordinate_text(x_of(i)),
                        y = coordinate_text(y_of(1000 * ((levels[i].*latency).*line.value)));
      points += concat(points.empty() ? "" : " ", x, ",", y);
      svg += concat("<circle cx=\"", x, "\" cy=\"", y, "\" r=\"3\" fill=\"", line.colour, "\"/>\n");
    }
    svg +=
        concat("<polyline points=\"", points, "\" fill=\"none\" stroke=\"", line.colour, "\" stroke-width=\"2\"/>\n");
  }
  return svg;
}

}  // namespace

double axis_step(double largest) {
  if (!(largest > 0)) return 1;
  const double power = std::pow(10, std::floor(std::log10(largest / 5)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (5 * factor * power >= largest * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}

std::string latency_plot(const std::string& title, const std::vector<LevelResult>& levels) {
  CHECK_INTERNAL(!levels.empty());
  std::string svg =
      concat("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 ", kWidth, " ", kHeight, "\" width=\"", kWidth,
             "\" height=\"", kHeight, "\" font-family=\"sans-serif\" font-size=\"12\">\n",
             "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n");
  svg += text_at(kWidth / 2, 24, "middle", title);
  svg += panel(70, "time to first token, ms", levels, &LevelResult::first_token);
  svg += panel(500, "time per output token, ms", levels, &LevelResult::per_output_token);
  double x = 350;
  for (const Line& line : kLines) {
    svg += line_between(x, kHeight - 14, x + 18, kHeight - 14, line.colour);
    svg += text_at(x + 24, kHeight - 10, "start", line.name);
    x += 70;
  }
  return svg + "</svg>\n";
}

}  // namespace infer
