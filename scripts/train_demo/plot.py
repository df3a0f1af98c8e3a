"""Draws the losses of training runs as SVG.

    plot.py OUT.svg TITLE=LOG.jsonl[+LOG.jsonl...] ...

Logs joined by + are the parts of one run.
"""

import json
import math
import sys

WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 720, 360, 56, 44, 20, 20
COLOURS = ["#1f6feb", "#d1541f", "#2a8a4a", "#8a3ab9"]


def read(paths):
    """[(tokens, loss)]"""
    points, before = [], 0
    for path in paths.split("+"):
        with open(path, encoding="utf-8") as file:
            points += [(before + line["tokens"], line["loss"]) for line in map(json.loads, file)]
        before = points[-1][0]
    return points


def main(out, *curves):
    curves = [(title, read(paths)) for title, paths in (curve.split("=", 1) for curve in curves)]
    most_tokens = max(points[-1][0] for _, points in curves)
    losses = [loss for _, points in curves for _, loss in points]
    low, high = (math.log(bound(losses)) for bound in (min, max))

    def x(tokens):
        return LEFT + (WIDTH - LEFT - RIGHT) * tokens / most_tokens

    def y(loss):
        return TOP + (HEIGHT - TOP - BOTTOM) * (high - math.log(loss)) / (high - low)

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
             'font-size="12">', f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>']
    for loss in (0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5):
        if low <= math.log(loss) <= high:
            parts.append(f'<path d="M{LEFT} {y(loss):.1f}H{WIDTH - RIGHT}" stroke="#ddd"/>'
                         f'<text x="{LEFT - 8}" y="{y(loss) + 4:.1f}" text-anchor="end">{loss}</text>')
    for million in range(0, int(most_tokens / 1e6) + 1):
        parts.append(f'<text x="{x(million * 1e6):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{million}'
                     '</text>')
    parts.append(f'<text x="{WIDTH / 2}" y="{HEIGHT - 8}" text-anchor="middle">million tokens</text>')
    for (title, points), colour, row in zip(curves, COLOURS, range(len(curves))):
        line = " ".join(f"{x(tokens):.1f},{y(loss):.1f}" for tokens, loss in points)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="1.5"/>'
                     f'<text x="{WIDTH - RIGHT - 8}" y="{TOP + 16 + 18 * row}" text-anchor="end" fill="{colour}">'
                     f'{title}</text>')
    with open(out, "w", encoding="utf-8") as file:
        file.write("\n".join(parts + ["</svg>"]) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
