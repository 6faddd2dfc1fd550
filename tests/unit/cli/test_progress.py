"""What takes long says on a terminal how far it is, and leaves nothing behind."""

from __future__ import annotations

import io
import re
import sys

import pytest

from harebell.cli import progress
from harebell.cli.progress import Progress
from tests.patience import eventually


class Screen(io.StringIO):
    """Standard error that is a terminal."""

    def isatty(self) -> bool:
        return True


def screen_of(monkeypatch: pytest.MonkeyPatch, after: float) -> Screen:
    """Let standard error be a terminal, where progress is shown after so many seconds."""
    shown = Screen()
    monkeypatch.setattr(sys, "stderr", shown)
    monkeypatch.setattr(progress, "PROGRESS_AFTER_SECONDS", after)
    monkeypatch.setattr(progress, "PROGRESS_EVERY_SECONDS", 0.01)
    return shown


def test_progress_is_shown_after_a_while_and_gone_at_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    screen = screen_of(monkeypatch, 0.0)
    with Progress("reading \x1b[31mx") as shown:
        shown.at(12_000, 24_000)
        assert eventually(lambda: "12,000 of 24,000" in screen.getvalue())
    assert "reading \\u001b[31mx  [##########----------]" in screen.getvalue()
    assert screen.getvalue().endswith("\r\x1b[K")


def test_a_task_that_is_done_soon_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = screen_of(monkeypatch, 60.0)
    with Progress("reading") as shown:
        shown.at(1)
    assert screen.getvalue() == ""


def test_ctrl_c_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = screen_of(monkeypatch, 0.0)

    def interrupted() -> None:
        with Progress("reading"):
            assert eventually(lambda: re.search(r"reading \.\.\. \d+ s", screen.getvalue()))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert screen.getvalue().endswith("\r\x1b[K")


def test_nothing_is_shown_where_standard_error_is_no_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "PROGRESS_AFTER_SECONDS", 0.0)
    with Progress("reading") as shown:
        shown.at(1, 2)
        assert shown.line().startswith("reading  [##########----------]  1 of 2")
    assert capsys.readouterr().err == ""
