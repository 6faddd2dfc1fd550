"""`python -m harebell.testing` says how long the brokers of the fixtures take."""

from __future__ import annotations

import re

import pytest

from harebell.testing.__main__ import main


def test_the_command_prints_the_times_of_both_fixtures(capsys: pytest.CaptureFixture[str]) -> None:
    main(rounds=2)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["harebell_broker", "harebell_virtual"]
    assert all(re.search(r"first \d+ ms, then \d+ ms \(at most \d+ ms\)$", line) for line in lines)
