"""Simple values of a file are read, or complained of."""

from __future__ import annotations

import pytest

from harebell.pipeline.errors import Complaints
from harebell.pipeline.spec.values import flag_of, interval_of, list_of, seconds_of, texts_of
from harebell.pipeline.spec.yaml_nodes import parse


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("5s", 5), ("200ms", 0.2), ("2 minutes", 120), ("1h", 3600), ("0s", None), ("5", None)],
)
def test_times_are_written_with_their_unit(text: str, seconds: float | None) -> None:
    assert seconds_of(text) == seconds


def test_one_text_will_do_for_a_list() -> None:
    complaints = Complaints("p")
    root = parse("a: x\nb: [x, y]\nc: {d: 1}\n", "p", {}).value
    assert list_of(root["a"], "a", complaints) == ("x",)
    assert list_of(root["b"], "b", complaints) == ("x", "y")
    assert list_of(root["c"], "c", complaints) == ()
    assert [each.text for each in complaints.complaints] == ["c must be a text, not a mapping"]


def test_texts_and_flags_are_what_they_say() -> None:
    complaints = Complaints("p")
    root = parse("a: {x: 1, y: true}\nb: yes\nc: 1\n", "p", {}).value
    assert texts_of(root["a"], "a", complaints) == {"x": "1", "y": "true"}
    assert flag_of(root["b"], "b", False, complaints)
    assert not flag_of(root["c"], "c", False, complaints)
    assert complaints.complaints[0].text == "c must be true or false, not 1"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(5.0, "5000 milliseconds"), (0.2, "200 milliseconds"), (31_536_000.0, "31536000000 millis")],
)
def test_a_time_is_an_interval_of_spark(seconds: float, text: str) -> None:
    assert interval_of(seconds).startswith(text)
