"""Lines over the hours of a day as an SVG picture, readable on light and dark pages."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

Hours = Mapping[int, float]
"""A value for each hour that has one."""

_WIDTH, _HEIGHT = 760, 420
_LEFT, _RIGHT, _TOP, _BOTTOM = 60, 110, 64, 48
_COLOURS = ("#4b49b8", "#0b7a75", "#b4540a", "#8a1c7c")
_STEPS = (1, 2, 5, 10, 20, 50, 100, 200)
_LINES_MAX = 6


def picture(title: str, unit: str, series: Mapping[str, Hours]) -> str:
    """Return the picture.

    Args:
        title: what it shows.
        unit: of the values.
        series: the lines by their names.
    """
    hours = sorted({hour for line in series.values() for hour in line})
    highest = max((value for line in series.values() for value in line.values()), default=1.0)
    step = next((each for each in _STEPS if highest / each <= _LINES_MAX), _STEPS[-1])
    top = step * (int(highest / step) + 1)
    first, last = (hours[0], hours[-1]) if hours else (0, 23)
    wide = _WIDTH - _LEFT - _RIGHT
    tall = _HEIGHT - _TOP - _BOTTOM

    def x(hour: float) -> float:
        return _LEFT + wide * (hour - first) / max(last - first, 1)

    def y(value: float) -> float:
        return _TOP + tall * (1 - max(value, 0.0) / top)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        f'width="{_WIDTH}" height="{_HEIGHT}" role="img" font-family="sans-serif" font-size="12">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#ffffff"/>',
        f'<text x="{_LEFT}" y="28" font-size="17" fill="#1d1e26">{escape(title)}</text>',
        f'<text x="{_LEFT}" y="48" fill="#5b5e6e">{escape(unit)}, by hour of the day</text>',
    ]
    for value in range(0, top + 1, step):
        at = y(value)
        parts.append(
            f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{at:.1f}" y2="{at:.1f}" '
            'stroke="#e2e3ea"/>'
            f'<text x="{_LEFT - 8}" y="{at + 4:.1f}" text-anchor="end" '
            f'fill="#5b5e6e">{value}</text>'
        )
    parts += [
        f'<text x="{x(hour):.1f}" y="{_HEIGHT - _BOTTOM + 20}" text-anchor="middle" '
        f'fill="#5b5e6e">{hour}:00</text>'
        for hour in hours[::2]
    ]
    for colour, line in zip(_COLOURS, series.values(), strict=False):
        points = [(x(hour), y(value)) for hour, value in sorted(line.items())]
        if not points:
            continue
        shown = " ".join(f"{a:.1f},{b:.1f}" for a, b in points)
        parts.append(
            f'<polyline points="{shown}" fill="none" stroke="{colour}" stroke-width="2.5"/>'
        )
    for (at, name), colour in zip(_labels(series, y), _COLOURS, strict=False):
        parts.append(
            f'<text x="{_WIDTH - _RIGHT + 8}" y="{at:.1f}" fill="{colour}" '
            f'font-weight="bold">{escape(name)}</text>'
        )
    return "\n".join([*parts, "</svg>", ""])


def _labels(series: Mapping[str, Hours], y: object) -> list[tuple[float, str]]:
    """Return where the names stand at the ends of their lines, none upon another."""
    assert callable(y)
    wanted = []
    for number, (name, line) in enumerate(series.items()):
        end = y(line[max(line)]) + 4 if line else _TOP
        wanted.append((end, number, name))
    placed: dict[int, tuple[float, str]] = {}
    before = 0.0
    for at, number, name in sorted(wanted):
        before = max(at, before + 15)
        placed[number] = (before, name)
    return [placed[number] for number in sorted(placed)]
