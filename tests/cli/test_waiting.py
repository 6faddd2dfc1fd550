"""What takes more than two seconds shows it on a terminal, and Ctrl-C ends it cleanly."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.conftest import run_harebell
from tests.cli.terminal import terminal
from tests.running import RunningBroker, running_broker

_CLEAR = "\x1b[K"
_LONG = r"(?:[2-9]|\d\d+)"


@pytest.fixture(scope="module")
def broker() -> Iterator[RunningBroker]:
    with running_broker() as started:
        declared = run_harebell("queues", "declare", "jobs", "--data-dir", started.data_dir)
        assert declared.returncode == 0, declared.stderr
        yield started


@contextmanager
def stopped(broker: RunningBroker) -> Iterator[None]:
    """A broker that is there and does not answer."""
    os.kill(broker.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(broker.pid, signal.SIGCONT)


def filled(words: str, broker: RunningBroker, directory: Path) -> list[str]:
    places = {
        "DATA": f"--data-dir={broker.data_dir}",
        "URL": f"--url={broker.address()}",
        "ADDRESS": broker.address().rpartition("@")[2].removeprefix("amqp://").partition("/")[0],
        "FILE": str(directory / "definitions.json"),
    }
    return [places.get(word, word) for word in words.split()]


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("queues list DATA", "queues list"),
        ("queues declare slow DATA", "queues declare"),
        ("queues counters DATA", "queues counters"),
        ("definitions export FILE DATA", "exporting definitions"),
        ("status DATA", "status"),
        ("publish URL -r jobs body", "connecting"),
        ("get URL --queue jobs", "connecting"),
        ("consume URL --queue jobs", "connecting"),
    ],
)
def test_a_broker_that_does_not_answer_is_waited_for_visibly_until_ctrl_c(
    broker: RunningBroker, tmp_path: Path, words: str, shown: str
) -> None:
    with (
        stopped(broker),
        terminal(*filled(words, broker, tmp_path), directory=tmp_path) as screen,
    ):
        screen.read_until(re.escape(shown) + rf" \.\.\. {_LONG} s")
        assert screen.press_ctrl_c() == 130
    assert "Traceback" not in screen.text
    # The line is gone: what a shell prints next stands alone.
    assert screen.text.rstrip().removesuffix("^C").endswith(_CLEAR), screen.text


def test_many_messages_are_published_with_a_bar_until_ctrl_c(
    broker: RunningBroker, tmp_path: Path
) -> None:
    words = "publish URL --no-mandatory --count 9000000 -e amq.fanout body"
    with terminal(*filled(words, broker, tmp_path), directory=tmp_path) as screen:
        screen.read_until(r"publishing  \[[#-]{20}\]  [\d,]+ of 9,000,000  " + _LONG + " s")
        assert screen.press_ctrl_c() == 130
    assert "Traceback" not in screen.text


@pytest.mark.parametrize(
    ("words", "shown", "code"),
    [
        ("top DATA", "jobs", 130),
        ("dump --port 0 --to ADDRESS", "listening|waiting|:", 0),
        ("consume URL --queue jobs", "first", 130),
    ],
)
def test_live_views_end_with_ctrl_c(
    broker: RunningBroker, tmp_path: Path, words: str, shown: str, code: int
) -> None:
    sent = run_harebell("publish", "--url", broker.address(), "-r", "jobs", "first")
    assert sent.returncode == 0, sent.stderr
    with terminal(*filled(words, broker, tmp_path), directory=tmp_path) as screen:
        screen.read_until(shown)
        assert screen.press_ctrl_c() == code
    assert "Traceback" not in screen.text
