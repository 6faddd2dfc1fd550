"""The picture of the figures is an SVG of both brokers, and the documentation has its table's."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

from bench.drawing import PAGE, PICTURE, draw, figures_of, figures_of_page
from bench.measure import Result

SVG = "{http://www.w3.org/2000/svg}"


def test_the_picture_of_the_documentation_is_drawn_from_the_table_of_its_page() -> None:
    figures = figures_of_page(PAGE.read_text())
    assert figures["a128"].keys() == {"harebell", "rabbitmq"}
    assert figures["o128"].keys() == {"harebell"}
    assert PICTURE.read_text() == draw(figures), "run: .venv/bin/python -m bench.drawing"


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


def test_it_is_readable_in_the_dark_and_without_eyes() -> None:
    text = draw({"a <b>": {"harebell": 0.5}})
    root = ET.fromstring(text)
    assert "prefers-color-scheme: dark" in text
    assert root.get("role") == "img"
    said = root.find(f"{SVG}desc")
    assert said is not None
    assert said.text == "a <b>: Harebell 0.5"
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "")
