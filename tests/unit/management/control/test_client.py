"""The asking side of the control socket, against sockets that behave and that do not."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harebell.management.control import client as control
from harebell.management.control.client import ControlError, NotRunning, ask_overview, socket_path
from tests.patience import SECONDS


@contextmanager
def answering(data_dir: Path, answer: bytes) -> Iterator[list[bytes]]:
    """A socket that answers one request with some octets, and remembers the request."""
    asked: list[bytes] = []
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(data_dir / control.SOCKET_NAME))
        listening.listen()

        def serve() -> None:
            link, _ = listening.accept()
            with link:
                asked.append(link.recv(1000))
                link.sendall(answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield asked
        thread.join(SECONDS)
        assert not thread.is_alive()


def test_a_client_asks_in_a_line_and_returns_the_figures(tmp_path: Path) -> None:
    with answering(tmp_path, b'{"ok": true, "overview": {"queues": 3}}\n') as asked:
        assert ask_overview(tmp_path, SECONDS) == {"queues": 3}
    assert asked == [b'{"ask":"overview"}\n']


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (b'{"ok": false, "error": "not today"}\n', "refused: not today"),
        (b"[]\n", "answered nonsense"),
        (b"<html>\n", "answered nonsense"),
        (b'{"ok": true', "does not answer"),
        (b"", "does not answer"),
    ],
)
def test_an_answer_that_is_none_is_a_sentence(tmp_path: Path, answer: bytes, sentence: str) -> None:
    with answering(tmp_path, answer), pytest.raises(ControlError, match=sentence):
        ask_overview(tmp_path, SECONDS)


def test_a_broker_that_says_nothing_is_not_waited_for(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / control.SOCKET_NAME))
        listening.listen()
        with pytest.raises(ControlError, match="does not answer: timed out"):
            ask_overview(tmp_path, 0.05)


def test_without_a_socket_no_broker_runs(tmp_path: Path) -> None:
    with pytest.raises(NotRunning):
        ask_overview(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(NotRunning):
        ask_overview(tmp_path / "file")


def test_the_longest_path_that_the_system_takes_works_and_one_more_is_refused(
    tmp_path: Path,
) -> None:
    spare = 107 - len(os.fsencode(tmp_path / control.SOCKET_NAME))
    longest = tmp_path / ("x" * (spare - 1))
    longest.mkdir()
    with answering(longest, b'{"ok": true, "overview": {}}\n'):
        assert ask_overview(longest, SECONDS) == {}
    with pytest.raises(ControlError, match="has 108 bytes, and the system takes 107"):
        socket_path(tmp_path / ("x" * spare))
