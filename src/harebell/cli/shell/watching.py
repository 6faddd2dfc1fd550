r"""Repeat what a line of a shell does, every few seconds: `\watch`."""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from shutil import get_terminal_size

import click

from harebell.base.printable import printable
from harebell.cli.limits import WATCH_SECONDS, WATCH_SECONDS_MAX, WATCH_SECONDS_MIN
from harebell.cli.verb import WrongUsage, echo

_HOME, _CLEAR_LINE, _CLEAR_BELOW = "\x1b[H", "\x1b[K", "\x1b[J"


def intervals(words: list[str]) -> tuple[float, int]:
    r"""Return the seconds and the number of times that `\watch` names; 0 for no end.

    Raises:
        WrongUsage: it names others.
    """
    seconds, times = WATCH_SECONDS, 0
    try:
        if words:
            seconds = float(words[0])
        if len(words) > 1:
            times = int(words[1])
    except ValueError:
        seconds = 0.0
    if len(words) > 2 or times < 0 or not WATCH_SECONDS_MIN <= seconds <= WATCH_SECONDS_MAX:
        raise WrongUsage(
            f"write \\watch SECONDS, from {WATCH_SECONDS_MIN:g} to {WATCH_SECONDS_MAX:g}, "
            "and behind it how many times, if it has an end"
        )
    return seconds, times


def watch(line: str, act: Callable[[], None], seconds: float, times: int) -> None:
    """Repeat an act until Ctrl-C; on a terminal in one place, else one below the other.

    On a terminal an error stands where the rows would, and the next time comes.

    Args:
        line: what is repeated.
        act: what it does.
        seconds: between two of them.
        times: how many; 0 for no end.

    Raises:
        KeyboardInterrupt: Ctrl-C.
        ClickException: it failed, and this is no terminal.
    """
    screen = sys.stdout.isatty()
    done = 0
    while True:
        if screen:
            _draw(line, act, seconds)
        else:
            act()
            sys.stdout.flush()
        done += 1
        if done == times:
            return
        time.sleep(seconds)


def _draw(line: str, act: Callable[[], None], seconds: float) -> None:
    with _captured() as out:
        try:
            act()
        except click.ClickException as error:
            echo(f"Error: {error.format_message()}")
        except click.exceptions.Exit:
            pass  # the output says what there is to say
    out.seek(0)
    size = get_terminal_size()
    head = f"{' '.join(line.split())}  every {seconds:g} s  {time.strftime('%H:%M:%S')}"
    shown = []
    room = size.lines - 1
    lines = [head, *out.read().splitlines()]
    for at, text in enumerate(printable(each, "\t") for each in lines):
        room -= max(1, -(-len(text.expandtabs()) // size.columns))
        if room < 1 and at < len(lines) - 1:
            shown.append(f"... {len(lines) - at} lines more")
            break
        shown.append(text)
    body = f"{_CLEAR_LINE}\n".join(shown)
    # One write, so that nothing flickers.
    sys.stdout.write(f"{_HOME}{body}{_CLEAR_LINE}\n{_CLEAR_BELOW}")
    sys.stdout.flush()


@contextmanager
def _captured() -> Iterator[io.TextIOWrapper]:
    """Take what is printed on standard output, and give it as a text."""
    before = sys.stdout
    taken = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="backslashreplace")
    sys.stdout = taken
    try:
        yield taken
    finally:
        taken.flush()
        sys.stdout = before
