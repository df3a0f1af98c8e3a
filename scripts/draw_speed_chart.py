#!/usr/bin/env python3
"""Draws docs/speed.svg, the README's chart of speeds beside llama.cpp, from the table of docs/performance.md.

    usage: scripts/draw_speed_chart.py [--check]      --check: fails if the chart is not that of the table

The bars are the pairs of the table's last column, "infer and llama.cpp in the same run", of Q4_K_M and Q8_0.
"""

import html
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TABLE, CHART = ROOT / "docs" / "performance.md", ROOT / "docs" / "speed.svg"
TYPES = ("Q4_K_M", "Q8_0")
WIDTH, LEFT, RIGHT, ROW, BAR = 760, 190, 180, 40, 14  # pixels


def pairs(text):
    """[(machine, test, type, infer's tokens/s, llama.cpp's)] of the first table whose last column has such pairs."""
    found, machine = [], ""
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []
        if len(cells) != 6 or cells[0] in ("Machine", "---"):
            continue
        machine = cells[0] or machine
        numbers = re.sub("[⁰¹²³⁴⁵⁶⁷⁸⁹]", " ", cells[5])
        for kind, rates in re.findall(r"(Q\d\w+|F16)((?:[\s,]+[\d.]+ and [\d.]+)+)", numbers):
            if kind in TYPES:
                for ours, theirs in re.findall(r"([\d.]+) and ([\d.]+)", rates):
                    found.append((machine, cells[1], kind, float(ours), float(theirs)))
    return found


def number(value):
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}"


def draw(rows):
    longest = max(ours / theirs for *_, ours, theirs in rows)
    scale = (WIDTH - LEFT - RIGHT) / max(longest, 1)
    machines = list(dict.fromkeys(row[0] for row in rows))
    height = 58 + ROW * len(rows) + 30 * len(machines)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
           'role="img" aria-label="Speed of infer beside llama.cpp">',
           "<style>text{font:13px system-ui,sans-serif;fill:#24292f}.h{font-weight:600}.s{fill:#57606a}"
           "@media(prefers-color-scheme:dark){text{fill:#e6edf3}.s{fill:#9198a1}}</style>",
           '<text x="0" y="18" class="h">Speed beside llama.cpp, two threads</text>',
           f'<rect x="{LEFT + 90}" y="8" width="12" height="12" fill="#2f81f7"/><text x="{LEFT + 108}" y="18">infer</text>',
           f'<rect x="{LEFT + 170}" y="8" width="12" height="12" fill="#9198a1"/>'
           f'<text x="{LEFT + 188}" y="18">llama.cpp</text>']
    y = 34
    for machine in machines:
        y += 30
        out.append(f'<text x="0" y="{y - 8}" class="h">{html.escape(machine)}</text>')
        for _, test, kind, ours, theirs in (row for row in rows if row[0] == machine):
            out.append(f'<text x="12" y="{y + 19}">{html.escape(test)}, {kind}</text>')
            for top, value, colour in ((2, ours, "#2f81f7"), (2 + BAR, theirs, "#9198a1")):
                length = scale * value / theirs
                out.append(f'<rect x="{LEFT}" y="{y + top}" width="{length:.1f}" height="{BAR - 1}" fill="{colour}"/>'
                           f'<text x="{LEFT + length + 6:.1f}" y="{y + top + 11}" class="s">{number(value)} tokens/s'
                           f'{f", {ours / theirs:.2f} times" if value == ours and top == 2 else ""}</text>')
            y += ROW
    out.append("</svg>\n")
    return "\n".join(out)


def main():
    if sys.argv[1:] not in ([], ["--check"]):
        sys.exit(__doc__)
    rows = pairs(TABLE.read_text(encoding="utf-8"))
    if not rows:
        sys.exit(f"draw_speed_chart.py: {TABLE.name} has no pairs of speeds")
    chart = draw(rows)
    if sys.argv[1:] == ["--check"]:
        if not CHART.exists() or CHART.read_text(encoding="utf-8") != chart:
            sys.exit("docs/speed.svg is not that of docs/performance.md: run scripts/draw_speed_chart.py")
        return
    CHART.write_text(chart, encoding="utf-8")
    print(f"{CHART.relative_to(ROOT)}: {len(rows)} pairs")


main()
