"""The picture of the figures is an SVG of both brokers, and the documentation has its table's."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from bench import page
from bench.drawing import draw, figures_of
from bench.measure import Result
from bench.page import DAYS_KEPT, PAGE, PICTURE, figures_of_day, page_with, record, recorded

SVG = "{http://www.w3.org/2000/svg}"


def test_the_page_and_its_picture_are_made_from_the_recorded_figures() -> None:
    days = recorded()
    figures = figures_of_day(list(days.values())[-1])
    assert figures["a128"].keys() == {"harebell", "rabbitmq"}
    assert figures["o128"].keys() == {"harebell"}
    assert PICTURE.read_text() == draw(figures), "run: .venv/bin/python -m bench.page"
    text = PAGE.read_text()
    assert page_with(text, days) == text, "run: .venv/bin/python -m bench.page"


def test_the_last_two_days_are_kept_and_a_day_is_measured_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "DATA", tmp_path / "figures.tsv")
    page.DATA.write_text("day\tbroker\tscenario\tfigure\tvalue\n")
    for day, us in (("2026-01-02", 2.0), ("2026-01-01", 1.0), ("2026-01-03", 3.0)):
        record([Result(broker="harebell", scenario="a128", us_per_message=us)], day)
    record([Result(broker="harebell", scenario="a128", messages=7)], "2026-01-03")
    key = ("harebell", "a128")
    assert recorded() == {
        "2026-01-02": {(*key, "us_per_message"): 2.0},
        "2026-01-03": {(*key, "us_per_message"): 3.0, (*key, "messages"): 7.0},
    }
    assert len(recorded()) == DAYS_KEPT
    tables = page_with("<!-- figures -->\n\nold\n\n<!-- end of the figures -->", recorded())
    assert "| a128 | 3.00 | - | - | - | 2.00 | - |" in tables


def test_a_factor_has_the_same_length_everywhere_and_small_is_short(tmp_path: Path) -> None:
    measured = [("a", "harebell", 0.2), ("a", "rabbitmq", 2.0), ("b", "harebell", 20.0)]
    results = [Result(scenario=s, broker=b, us_per_message=us) for s, b, us in measured]
    idle = Result(scenario="idle", broker="harebell")
    root = ET.fromstring(draw(figures_of([*results, idle])))
    bars = [each for each in root.iter(f"{SVG}rect") if each.get("height") == "11"]
    widths = [float(each.get("width", "0")) for each in bars]
    assert [each.get("class") for each in bars] == ["harebell", "rabbitmq", "harebell"]
    assert abs((widths[1] - widths[0]) - (widths[2] - widths[1])) < 0.2
    texts = {each.text for each in root.iter(f"{SVG}text")}
    assert {"a", "b", "0.2", "2", "20", "Harebell", "RabbitMQ"} <= texts


def test_the_picture_is_readable_in_the_dark_and_by_screen_readers() -> None:
    text = draw({"a <b>": {"harebell": 0.5}})
    root = ET.fromstring(text)
    assert "prefers-color-scheme: dark" in text
    assert root.get("role") == "img"
    said = root.find(f"{SVG}desc")
    assert said is not None
    assert said.text == "a <b>: Harebell 0.5"
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "")
