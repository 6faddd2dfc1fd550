"""What `make interop` reads, compares and writes; the suites themselves run only there."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.markdown import rows
from tests.interop.suites.__main__ import PAGE, verdict
from tests.interop.suites.catalogue import HERE, SUITES
from tests.interop.suites.outcomes import from_go, from_lines
from tests.interop.suites.page import Comparison
from tests.interop.suites.phpt import expression, sections
from tests.interop.suites.steering import steering
from tests.patience import SECONDS


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


def test_a_test_that_began_and_did_not_end_has_failed() -> None:
    said = (
        "began a\npassed a\nbegan b\nfailed b\n  java.lang.AssertionError: passed c\n"
        "began d\nskipped d\nbegan e\n"
    )
    assert from_lines(said) == {"a": True, "b": False, "e": False}


def test_a_test_in_phps_format_passes_when_it_prints_what_its_last_section_says() -> None:
    parts = sections("--TEST--\nname\n--FILE--\n<?php --1;\n--EXPECTF--\n%s at %d: [%r(a|b)%r]\n")
    assert list(parts) == ["TEST", "FILE", "EXPECTF"]
    expected = re.compile(expression(parts["EXPECTF"].strip()))
    assert expected.fullmatch("Warning at -3: [b]") is None
    assert expected.fullmatch("Warning at 3: [b]") is not None
    assert expected.fullmatch("Warning at 3: [c]") is None


class _Broker:
    """Notes what a suite does to it."""

    def __init__(self) -> None:
        self.acts: list[str] = []

    def stop(self) -> None:
        self.acts.append("stop")

    def start(self) -> None:
        self.acts.append("start")

    def alarm(self, source: str, *, raised: bool) -> None:
        self.acts.append(f"{source} {raised}")

    def ctl(self, words: list[str]) -> subprocess.CompletedProcess[str]:
        self.acts.append(" ".join(words))
        return subprocess.CompletedProcess(words, 69, "told\n", "no such user\n")


@pytest.mark.parametrize(
    ("line", "acts", "told"),
    [
        ("make -C /x A=b stop-rabbit-on-node start-rabbit-on-node", ["stop", "start"], (0, "", "")),
        ("make set-resource-alarm SOURCE=disk", ["disk True"], (0, "", "")),
        ("make clear-resource-alarm SOURCE=memory", ["memory False"], (0, "", "")),
        ("rabbitmqctl -n x add_user a b", ["add_user a b"], (69, "told\n", "no such user\n")),
        (
            "rabbitmqctl list_connections -q pid",
            ["list_connections -q pid --no-table-headers"],
            (69, "told\n", "no such user\n"),
        ),
    ],
)
def test_what_a_suite_calls_in_place_of_rabbitmqs_tools_reaches_the_broker(
    line: str, acts: list[str], told: tuple[int, str, str], tmp_path: Path
) -> None:
    tool, *words = line.split()
    script = tmp_path / tool
    script.write_text(f"#!{sys.executable}\n{(HERE / 'steered.py').read_text()}")
    script.chmod(0o755)
    broker = _Broker()
    with steering(broker):
        done = subprocess.run(
            [str(script), *words], capture_output=True, text=True, timeout=SECONDS, check=False
        )
    assert (done.returncode, done.stdout, done.stderr) == told
    assert broker.acts == acts


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
