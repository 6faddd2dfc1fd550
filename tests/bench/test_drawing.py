"""The picture of the figures is an SVG of both brokers, and the documentation has its table's."""

from __future__ import annotations

from bench.drawing import draw
from bench.page import PAGE, PICTURE, figures_of_day, page_with, recorded

SVG = "{http://www.w3.org/2000/svg}"


def test_the_page_and_its_picture_are_made_from_the_recorded_figures() -> None:
    days = recorded()
    figures = figures_of_day(list(days.values())[-1])
    assert figures["a128"].keys() == {"harebell", "rabbitmq"}
    assert figures["o128"].keys() == {"harebell"}
    assert PICTURE.read_text() == draw(figures), "run: .venv/bin/python -m bench.page"
    text = PAGE.read_text()
    assert page_with(text, days) == text, "run: .venv/bin/python -m bench.page"
