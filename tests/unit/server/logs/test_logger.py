"""The broker's log."""

from __future__ import annotations

import os
import re
import sys
import threading

import pytest

from harebell.config import Config
from harebell.server.limits import LOG_TEXT_CHARACTERS
from harebell.server.logs.logger import Logger, Thresholds
from tests.patience import eventually


def test_a_line_has_its_time_and_its_level(capfd: pytest.CaptureFixture[str]) -> None:
    logger = Logger(Config(log_level="info"))
    logger.write("warning", "the disk is nearly full")
    logger.close()
    line = capfd.readouterr().err
    assert re.fullmatch(
        r"[\d-]{10} [\d:.]{15}[+-]\d\d:\d\d \[warning\] <0\.0\.0> the disk is nearly full\n", line
    )


def test_lines_below_the_level_are_left_out(capfd: pytest.CaptureFixture[str]) -> None:
    logger = Logger(Config(log_level="warning"))
    for level in ("debug", "info", "warning", "error"):
        logger.write(level, f"a line of {level}")
    logger.close()
    lines = capfd.readouterr().err.splitlines()
    assert [line.rsplit(maxsplit=1)[1] for line in lines] == ["warning", "error"]


def test_a_peer_cannot_write_lines_of_its_own(capfd: pytest.CaptureFixture[str]) -> None:
    logger = Logger(Config(log_level="info"))
    logger.write("info", "user 'x\n2026 [ERROR] forged\x1b[2J\r%s' refused")
    logger.close()
    text = capfd.readouterr().err
    assert text.count("\n") == 1
    assert "\x1b" not in text
    assert r"'x\n2026 [ERROR] forged\x1b[2J\r%s' refused" in text


def test_a_line_that_repeats_what_was_sent_has_a_bound(capfd: pytest.CaptureFixture[str]) -> None:
    logger = Logger(Config(log_level="info"))
    logger.write("info", f"the tags are {'x' * 1_000_000}: set")
    logger.close()
    line = capfd.readouterr().err
    assert len(line) < LOG_TEXT_CHARACTERS + 200
    assert "the tags are xxx" in line
    assert line.endswith("xxx: set\n")


def test_lines_written_before_closing_are_not_lost(capfd: pytest.CaptureFixture[str]) -> None:
    logger = Logger(Config(log_level="info"))
    for number in range(1000):
        logger.write("info", str(number))
    logger.close()
    assert len(capfd.readouterr().err.splitlines()) == 1000


def test_draining_ends_when_every_line_is_written(capfd: pytest.CaptureFixture[str]) -> None:
    logger = Logger(Config(log_level="info"))
    try:
        for number in range(1000):
            logger.write("info", str(number))
        assert logger.drain(60)
        assert len(capfd.readouterr().err.splitlines()) == 1000
    finally:
        logger.close()


def test_a_line_is_written_soon_whether_the_thread_sleeps_or_gathers(
    capfd: pytest.CaptureFixture[str],
) -> None:
    logger = Logger(Config(log_level="info"))
    try:
        for number in range(10):
            logger.write("info", f"first {number}")
            logger.write("info", f"second {number}")
            # An even number leaves the thread the time to fall asleep, an odd one does not.
            if number % 2 == 0:
                assert eventually(lambda: logger._idle)
        # It sleeps when all is written. To read meanwhile would lose what is written then.
        assert eventually(lambda: logger._idle and not logger._waiting)
        text = capfd.readouterr().err
    finally:
        logger.close()
    assert [line[-7:] for line in text.splitlines()] == [
        f"{which} {number}"[-7:] for number in range(10) for which in ("first", "second")
    ]


def test_draining_gives_up_on_a_terminal_that_takes_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as reader, os.fdopen(writing, "w") as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        logger = Logger(Config(log_level="info"))
        for _ in range(100):
            logger.write("info", "x" * 10_000)
        assert not logger.drain(0.05)
        draining = threading.Thread(target=reader.read, daemon=True)
        draining.start()
        assert logger.drain(60)
        logger.close()
        terminal.close()
        draining.join()


def test_an_output_with_a_level_of_its_own_has_no_less_important_lines_of_any_category() -> None:
    config = Config(
        log_level="info",
        log_console_level="error",
        log_levels={"connection": "debug", "queue": "none"},
    )

    def admitted(output: str) -> set[tuple[str, str]]:
        thresholds = Thresholds(config, output)
        return {
            (category, level)
            for category in ("connection", "queue", "user")
            for level in ("debug", "info", "error")
            if thresholds.admit(level, category)
        }

    assert admitted("console") == {("connection", "error"), ("user", "error")}
    assert admitted("file") == {
        *(("connection", level) for level in ("debug", "info", "error")),
        *(("user", level) for level in ("info", "error")),
    }
