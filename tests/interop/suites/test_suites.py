"""What `make interop` reads, compares and writes; the suites themselves run only there."""

from __future__ import annotations

import json

import pytest

from tests.docs.markdown import rows
from tests.interop.suites.__main__ import PAGE, verdict
from tests.interop.suites.catalogue import SUITES
from tests.interop.suites.outcomes import from_go
from tests.interop.suites.page import Comparison


def test_a_test_that_passes_on_rabbitmq_alone_needs_a_reason(
    capsys: pytest.CaptureFixture[str],
) -> None:
    suite = SUITES[0]
    same = Comparison(suite, {"a": True}, {"a": True})
    worse = Comparison(suite, {"a": True}, {"a": True, "nobody knows why": True})
    assert verdict([same]) == 0
    assert verdict([same, worse]) == 1
    said = capsys.readouterr().out
    assert said == f"{suite.label}: worse than RabbitMQ: nobody knows why\n"
    assert (worse.worse, worse.better, worse.neither, worse.tests) == (
        ["nobody knows why"], [], [], 2,
    )  # fmt: skip


def test_of_gos_events_those_with_a_test_that_ended_count() -> None:
    events = (
        {"Action": "run", "Test": "TestA"},
        {"Action": "output", "Test": "TestA", "Output": "a"},
        {"Action": "pass", "Test": "TestA"},
        {"Action": "fail", "Test": "TestB"},
        {"Action": "skip", "Test": "TestC"},
        {"Action": "fail", "Package": "github.com/rabbitmq/amqp091-go"},
    )
    said = "".join(json.dumps(event) + "\n" for event in events)
    assert from_go(f"# a warning of the compiler\n{said}") == {"TestA": True, "TestB": False}


def test_the_page_in_the_documentation_tells_of_every_suite_and_no_difference_lacks_a_reason() -> (
    None
):
    table = [row for row in rows(PAGE.read_text()) if len(row) == 4]
    counts = {row[0]: row[1:] for row in table if row[1].isdigit()}
    assert set(counts) == {suite.label for suite in SUITES}
    for tests, theirs, ours in counts.values():
        assert int(tests) >= int(theirs) > 0
        assert int(tests) >= int(ours) > 0
    others = [row for row in table if row[2] in ("RabbitMQ", "Harebell", "neither")]
    assert all(row[3] for row in others)
    assert len(others) >= sum(int(tests) - int(ours) for tests, _, ours in counts.values())
