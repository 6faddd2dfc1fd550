"""`harebell top` in a real terminal, and once for scripts."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Iterator

import pytest

from harebell.client.blocking import Channel
from tests.cli.conftest import Harebell
from tests.running import RunningBroker, command, environment

_SECONDS = 60.0


class Terminal:
    """`harebell top` in a pseudo-terminal.

    Args:
        broker: the broker that it shows.
        columns: the width of the terminal.
        variables: variables of the environment.
    """

    def __init__(self, broker: RunningBroker, columns: int, **variables: str) -> None:
        self._end, inner = pty.openpty()
        fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        self.kept = termios.tcgetattr(inner)
        self._inner = inner
        about = {"HAREBELL_DATA_DIR": str(broker.data_dir), "TERM": "xterm", **variables}
        env = environment(about)
        for size in ("COLUMNS", "LINES"):  # they would count for more than the terminal
            env.pop(size, None)
        self.process = subprocess.Popen(
            [command(), "top", "--interval", "0.2"],
            stdin=inner,
            stdout=inner,
            stderr=inner,
            env=env,
            start_new_session=True,
            # A shell has what it runs in the background ignore SIGINT, and so its children.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        self.text = ""

    def press(self, keys: str) -> None:
        """Type keys."""
        self.text = ""
        os.write(self._end, keys.encode())

    def read_until(self, pattern: str) -> str:
        """Read until the output matches; returns all of it since the last key."""
        until = time.monotonic() + _SECONDS
        while not re.search(pattern, self.text):
            assert time.monotonic() < until, f"no {pattern!r} in {self.text[-500:]!r}"
            if select.select([self._end], [], [], 0.1)[0]:
                self.text += os.read(self._end, 65_536).decode(errors="replace")
        return self.text

    def settings(self) -> object:
        """The settings of the terminal, such as echo."""
        return termios.tcgetattr(self._inner)

    def close(self) -> None:
        """End the command."""
        self.process.kill()
        self.process.wait()
        os.close(self._end)
        os.close(self._inner)


@pytest.fixture
def terminal(broker: RunningBroker, queue: str, channel: Channel) -> Iterator[Terminal]:
    """A terminal with 100 columns, and a queue with three messages."""
    for _ in range(3):
        channel.publish(b"x", routing_key=queue)
    opened = Terminal(broker, 100)
    yield opened
    opened.close()


def test_queues_are_shown_and_q_restores_the_terminal(terminal: Terminal, queue: str) -> None:
    first = terminal.read_until("READY")
    assert "\x1b[?1049h" in first
    terminal.read_until(rf"{re.escape(queue[:12])}.* 3 ")
    terminal.press("q")
    terminal.read_until(re.escape("\x1b[?1049l"))
    assert terminal.process.wait(_SECONDS) == 0
    assert terminal.settings() == terminal.kept


def test_keys_sort_filter_and_switch(terminal: Terminal) -> None:
    terminal.read_until("by rate")
    terminal.press("d")
    terminal.read_until("by depth")
    terminal.press("v")
    terminal.read_until("by depth reversed")
    terminal.press("/none\r")
    terminal.read_until("0 queues, by depth reversed, filter 'none'")
    terminal.press("/\x1b")
    terminal.read_until(r"[1-9]\d* queues, by depth reversed  ")
    terminal.press("c")
    terminal.read_until(r"CONNECTION (?s:.)*guest")


def test_ctrl_c_restores_the_terminal(terminal: Terminal) -> None:
    terminal.read_until("READY")
    terminal.press("\x03")
    terminal.process.send_signal(signal.SIGINT)
    terminal.read_until(re.escape("\x1b[?1049l"))
    assert terminal.process.wait(_SECONDS) == 130
    assert terminal.settings() == terminal.kept


def test_a_narrow_terminal_without_colours_has_only_short_lines(
    broker: RunningBroker, queue: str
) -> None:
    opened = Terminal(broker, 30, NO_COLOR="1")
    try:
        shown = opened.read_until("READY")
        assert "\x1b[7m" not in shown
        screen = re.sub(r"\x1b\[[?0-9]*[A-Za-z]", "", shown)
        assert max(len(line) for line in screen.replace("\r", "").split("\n")) <= 30
    finally:
        opened.close()


def test_once_prints_figures_for_scripts(harebell: Harebell, queue: str) -> None:
    shown = harebell("top", "--once", "--interval", "0.1", "--filter", queue)
    assert shown.returncode == 0, shown.stderr
    assert b"\x1b" not in shown.stdout
    found = json.loads(
        harebell("top", "--once", "--json", "--interval", "0.1", "--filter", queue).stdout
    )
    assert [row["name"] for row in found["queues"]] == [queue]
