"""Draws the CPU time per message of each broker as a picture, an SVG that is light or dark.

    a128  |====          0.15
          |==============================          9.8
          0.1        1          10         100  us per message

The axis is logarithmic, so that the same distance is the same factor. `bench/page.py` draws the
picture of the documentation.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from html import escape

from bench.measure import Result
from bench.scenarios import OPENINGS, TOPICS

BROKERS = ("harebell", "rabbitmq")
NAMES = {"harebell": "Harebell", "rabbitmq": "RabbitMQ"}
WIDTH, LEFT, RIGHT, TOP = 760, 110, 70, 62
BAR, GAP = 13, 12
_STYLE = """
    .back { fill: #f6f8fa; stroke: #8c959f; }
    .harebell { fill: #0969da; }
    .rabbitmq { fill: #bc4c00; }
    .grid { stroke: #d0d7de; }
    text { fill: #1f2328; }
    .small { font-size: 12px; fill: #57606a; }
    @media (prefers-color-scheme: dark) {
      .back { fill: #0d1117; stroke: #6e7681; }
      .harebell { fill: #58a6ff; }
      .rabbitmq { fill: #f0883e; }
      .grid { stroke: #30363d; }
      text { fill: #e6edf3; }
      .small { fill: #9da7b3; }
    }
"""

Figures = dict[str, dict[str, float]]
"""Microseconds per message by the scenario and the broker."""


def figures_of(results: Iterable[Result]) -> Figures:
    """What the medians of a run say."""
    figures: Figures = {}
    for each in results:
        if each.us_per_message and each.scenario not in (*OPENINGS, TOPICS):
            figures.setdefault(each.scenario, {})[each.broker] = each.us_per_message
    return figures


def draw(figures: Figures) -> str:
    """The picture."""
    values = [value for each in figures.values() for value in each.values()]
    low = math.floor(math.log10(min(values)))
    high = math.ceil(math.log10(max(values)))
    scale = (WIDTH - LEFT - RIGHT) / (high - low)
    bars: list[str] = []
    y = TOP
    for scenario, brokers in figures.items():
        middle = y + len(brokers) * BAR / 2 + 4
        bars.append(f'  <text x="{LEFT - 10}" y="{middle:g}" {_END}>{escape(scenario)}</text>')
        for broker, value in brokers.items():
            width = max(1.0, (math.log10(value) - low) * scale)
            bars.append(
                f'  <rect class="{broker}" x="{LEFT}" y="{y}" width="{width:.1f}" '
                f'height="{BAR - 2}" rx="2"/>\n'
                f'  <text class="small" x="{LEFT + width + 6:.1f}" y="{y + 10}">{value:g}</text>'
            )
            y += BAR
        y += GAP
    grid = [_tick(power, LEFT + (power - low) * scale, y) for power in range(low, high + 1)]
    return _framed(y + 50, [*grid, *bars, _legend(), _axis(y)], figures)


_END = 'text-anchor="end"'


def _tick(power: int, x: float, bottom: int) -> str:
    return (
        f'  <path class="grid" d="M{x:.1f} {TOP - 8}V{bottom}"/>\n'
        f'  <text class="small" x="{x:.1f}" y="{bottom + 16}" text-anchor="middle">'
        f"{10.0**power:g}</text>"
    )


def _legend() -> str:
    return "\n".join(
        f'  <rect class="{broker}" x="{LEFT + 110 * n}" y="24" width="12" height="12" rx="2"/>\n'
        f'  <text x="{LEFT + 18 + 110 * n}" y="35">{NAMES[broker]}</text>'
        for n, broker in enumerate(BROKERS)
    )


def _axis(bottom: int) -> str:
    words = "microseconds of the broker's CPU time per message; less is better"
    return f'  <text class="small" x="{WIDTH - 20}" y="{bottom + 36}" {_END}>{words}</text>'


def _framed(height: int, parts: list[str], figures: Figures) -> str:
    said = "; ".join(
        f"{scenario}: " + ", ".join(f"{NAMES[name]} {value:g}" for name, value in each.items())
        for scenario, each in figures.items()
    )
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img"\n'
        '     aria-labelledby="t d" font-family="system-ui, sans-serif" font-size="14">\n'
        '  <title id="t">Microseconds of CPU time per message</title>\n'
        f'  <desc id="d">{escape(said)}</desc>\n'
        f"  <style>{_STYLE}  </style>\n"
        f'  <rect class="back" x="1" y="1" width="{WIDTH - 2}" height="{height - 2}" rx="10"/>\n'
        f"{body}\n</svg>\n"
    )
