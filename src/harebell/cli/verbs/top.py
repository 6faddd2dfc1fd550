"""`harebell top`: a live view of queues and connections in a terminal, or their figures once."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from shutil import get_terminal_size

import click

from harebell.cli.broker_options import broker_options
from harebell.cli.nouns import RunningBroker
from harebell.cli.top_view import CONNECTIONS, QUEUES, SORTS, Sample, View, as_json, lines
from harebell.cli.verb import Verb, echo, echo_json

_MIN_SECONDS = 0.1
_MAX_SECONDS = 3600.0
_ENTER = "\x1b[?1049h\x1b[?25l"
_LEAVE = "\x1b[?25h\x1b[?1049l"
_HOME, _CLEAR_LINE, _CLEAR_BELOW = "\x1b[H", "\x1b[K", "\x1b[J"
_ESCAPE = "\x1b"
_ESCAPE_SECONDS = 0.05
"""How long the rest of a key such as an arrow may take."""


def _sample(broker: RunningBroker, view: View) -> Sample:
    """Ask the broker for what a view needs."""
    overview = broker.overview()
    queues = broker.ask("queues.counters", {})
    connections = broker.ask("connections.list", {}) if view.what == CONNECTIONS else []
    return Sample(time.monotonic(), overview, queues, connections)


def _top(
    data_dir: str | None,
    config_file: str | None,
    as_json: bool,
    once: bool,
    interval: float,
    sort: str,
    show: str,
    filter: str,  # noqa: A002  # the name of the flag
) -> None:
    broker = RunningBroker(data_dir, config_file, as_json)
    view = View(show, next(key for key, (word, _) in SORTS.items() if word == sort))
    view.pattern = filter
    if as_json or once or not (sys.stdin.isatty() and sys.stdout.isatty()):
        _print(broker, view, interval, once=once or not as_json)
    else:
        _live(broker, view, interval)


def _print(broker: RunningBroker, view: View, interval: float, *, once: bool) -> None:
    """Print samples one after the other; the rates are those of the time between two."""
    before = _sample(broker, view)
    while True:
        time.sleep(interval)
        after = _sample(broker, view)
        if broker.as_json:
            echo_json(as_json(before, after, view))
            sys.stdout.flush()
        else:
            width = get_terminal_size((100, 24)).columns
            for line in lines(before, after, view, width, None, colour=False):
                echo(line)
        if once:
            return
        before = after


# --- live -----------------------------------------------------------------------------------------


def _live(broker: RunningBroker, view: View, interval: float) -> None:
    """Show samples until the user leaves; keys are answered at once."""
    colour = "NO_COLOR" not in os.environ and os.environ.get("TERM", "dumb") != "dumb"
    before = after = _sample(broker, view)
    # The first rates are there soon, and later ones after the interval.
    due = after.at + min(interval, 0.5)
    with _terminal():
        while True:
            _draw(before, after, view, colour=colour)
            key = _key(max(due - time.monotonic(), 0.0))
            if key is None:
                before, after = after, _sample(broker, view)
                due = after.at + interval
            elif not view.press(key):
                return
            elif view.what == CONNECTIONS and not after.connections:
                before = after = _sample(broker, view)


def _draw(before: Sample, after: Sample, view: View, *, colour: bool) -> None:
    size = get_terminal_size()
    shown = lines(before, after, view, size.columns, size.lines, colour=colour)
    body = f"{_CLEAR_LINE}\n".join(shown)
    # One write, so that nothing flickers.
    sys.stdout.write(f"{_HOME}{body}{_CLEAR_LINE}{_CLEAR_BELOW}")
    sys.stdout.flush()


@contextmanager
def _terminal() -> Iterator[None]:
    """Use the second screen of the terminal, and read keys one by one."""
    import termios
    import tty

    keys = sys.stdin.fileno()
    kept = termios.tcgetattr(keys)
    try:
        tty.setcbreak(keys)
        sys.stdout.write(_ENTER)
        yield
    finally:
        sys.stdout.write(_LEAVE)
        sys.stdout.flush()
        termios.tcsetattr(keys, termios.TCSADRAIN, kept)


def _key(seconds: float) -> str | None:
    """Wait for a key; None if there is none within the time."""
    import select

    keys = sys.stdin.fileno()
    ready, _, _ = select.select([keys], [], [], seconds)
    if not ready:
        return None
    read = os.read(keys, 1)
    if not read:
        return "q"  # the terminal has gone
    text = read.decode("utf-8", "replace")
    if text == _ESCAPE and select.select([keys], [], [], _ESCAPE_SECONDS)[0]:
        text += os.read(keys, 2).decode("utf-8", "replace")
    return text


top = Verb(
    "top",
    callback=_top,
    params=[
        click.Option(["--once"], is_flag=True, help="Print the figures once, and end."),
        click.Option(
            ["--interval"],
            type=click.FloatRange(_MIN_SECONDS, _MAX_SECONDS),
            default=1.0,
            show_default=True,
            metavar="SECONDS",
            help="How often the figures are taken.",
        ),
        click.Option(
            ["--sort"],
            type=click.Choice([word for word, _ in SORTS.values()]),
            default="rate",
            show_default=True,
            help="What comes first.",
        ),
        click.Option(
            ["--show"],
            type=click.Choice((QUEUES, CONNECTIONS)),
            default=QUEUES,
            show_default=True,
            help="What is listed.",
        ),
        click.Option(
            ["--filter"], default="", metavar="TEXT", help="Only names that contain this text."
        ),
        *broker_options(),
    ],
    help="""Show queues and connections of a running broker live.

    Keys: r, d, a, m, n sort by rate, depth, age, memory and name; v reverses; c shows connections
    and u queues; / filters by name; arrows move; q leaves. Without a terminal it prints once.
    """,
)
