"""The broker's log."""

from __future__ import annotations

import re

import pytest

from harebell.server.journal import Journal


def test_a_line_has_its_time_and_its_level(capfd: pytest.CaptureFixture[str]) -> None:
    journal = Journal("info")
    journal.write("warning", "the disk is nearly full")
    journal.close()
    line = capfd.readouterr().err
    assert re.fullmatch(r"[\d-]{10} [\d:,]{12} \[WARNING\] the disk is nearly full\n", line)


def test_lines_below_the_level_are_left_out(capfd: pytest.CaptureFixture[str]) -> None:
    journal = Journal("warning")
    for level in ("debug", "info", "warning", "error"):
        journal.write(level, f"a line of {level}")
    journal.close()
    lines = capfd.readouterr().err.splitlines()
    assert [line.rsplit(maxsplit=1)[1] for line in lines] == ["warning", "error"]


def test_a_peer_cannot_write_lines_of_its_own(capfd: pytest.CaptureFixture[str]) -> None:
    journal = Journal("info")
    journal.write("info", "user 'x\n2026 [ERROR] forged\x1b[2J\r%s' refused")
    journal.close()
    text = capfd.readouterr().err
    assert text.count("\n") == 1
    assert "\x1b" not in text
    assert r"'x\n2026 [ERROR] forged\x1b[2J\r%s' refused" in text


def test_what_was_written_before_closing_is_not_lost(capfd: pytest.CaptureFixture[str]) -> None:
    journal = Journal("info")
    for number in range(1000):
        journal.write("info", str(number))
    journal.close()
    assert len(capfd.readouterr().err.splitlines()) == 1000
