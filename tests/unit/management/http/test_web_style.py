"""The style of the web interface: scales for what it measures, and colours that can be read."""

from __future__ import annotations

import re

import pytest

from harebell.management.http.web_page import FILES

STYLE = (FILES / "style.css").read_text()
TEXT_RATIO = 4.5
"""AA of WCAG 2.2, 1.4.3."""
EDGE_RATIO = 3.0
"""AA of WCAG 2.2, 1.4.11: controls and lines of charts."""
_TEXTS = [
    *((name, back) for name in ("text", "muted") for back in ("back", "card", "hover")),
    *((name, back) for name in ("accent", "bad", "warn", "good") for back in ("back", "card")),
    *((name, f"{name}-back") for name in ("accent", "bad", "warn", "good")),
    ("accent-text", "accent"),
]
_EDGES = [(name, "card") for name in ("edge", *(f"series-{each}" for each in range(1, 5)))]


def _colours(selector: str) -> dict[str, str]:
    """The colours that a block of the style names."""
    block = STYLE[STYLE.index(f"{selector} {{") :].partition("}")[0]
    return dict(re.findall(r"--([\w-]+): #([0-9a-f]{6});", block))


def _luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _ratio(one: str, other: str) -> float:
    dark, light = sorted((_luminance(one), _luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", [":root", ':root[data-theme="dark"]'])
def test_colours_can_be_told_from_what_they_are_on(theme: str) -> None:
    colours = _colours(theme)
    for pairs, least in ((_TEXTS, TEXT_RATIO), (_EDGES, EDGE_RATIO)):
        for colour, ground in pairs:
            found = _ratio(colours[colour], colours[ground])
            assert found >= least, f"{colour} on {ground}: {found:.2f}"


def test_light_and_dark_have_the_same_names() -> None:
    assert _colours(":root").keys() == _colours(':root[data-theme="dark"]').keys()


@pytest.mark.parametrize(
    ("pattern", "allowed"),
    [
        (r"font-size: ([^;]+);", r"var\(--type-\w+\)|0"),
        (r"(?:padding|margin|gap)[\w-]*: ([^;]+);", r"(?:(?:0|auto|\d+vh|var\(--space-\d\))\s*)+"),
        (r"[^-]color: ([^;]+);", r"var\(--[\w-]+\)|inherit|currentcolor"),
    ],
    ids=["sizes of text", "distances", "colours"],
)
def test_the_style_measures_by_its_scales(pattern: str, allowed: str) -> None:
    rules = STYLE[STYLE.index("* {") :]
    for found in re.findall(pattern, rules):
        assert re.fullmatch(allowed, found), found


def test_what_moves_stands_still_for_those_who_ask_for_it() -> None:
    still = re.sub(
        r"@media \(prefers-reduced-motion: no-preference\) \{.*?\n\}", "", STYLE, flags=re.DOTALL
    )
    assert "transition" not in still
    assert "animation" not in still
