"""What `harebell top` shows: samples of a broker, their rates, and the lines of the screen.

Nothing here reads a clock or a terminal: a screen is a function of two samples, the choices of the
user, and the size of the terminal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from harebell.base.printable import printable

Row = dict[str, Any]
QUEUES = "queues"
CONNECTIONS = "connections"
_KIB = 1024
_MINUTE = 60
_HOUR = 3600
_DAY = 86_400
_ELLIPSIS = "~"
_MIN_NAME = 8


class Sample(NamedTuple):
    """The broker at one moment.

    Args:
        at: seconds, monotonic.
        overview: the figures of the broker.
        queues: the counters of its queues.
        connections: those of the broker; empty unless they are what is shown.
    """

    at: float
    overview: Row
    queues: list[Row]
    connections: list[Row]


class Column(NamedTuple):
    """A column of a table.

    Args:
        title: what stands above it.
        key: the member of a row that it shows.
        width: its width; 0 takes what is left.
        shown: formats a value.
        needed: columns of low numbers stay on narrow terminals.
    """

    title: str
    key: str
    width: int
    shown: Callable[[Any], str]
    needed: int


def amount(value: Any) -> str:
    """Format a count in at most six characters."""
    number = float(value or 0)
    for unit in ("", "k", "M", "G"):
        if number < 10_000 or unit == "G":
            return f"{number:.0f}{unit}"
        number /= 1000
    raise AssertionError("the last unit takes every number")


def rate(value: Any) -> str:
    """Format a number per second."""
    number = float(value or 0)
    return f"{number:.1f}" if 0 < number < 10 else amount(number)


def size_text(value: Any) -> str:
    """Format a size in at most six characters."""
    size = float(value or 0)
    for unit in ("B", "K", "M", "G", "T"):
        if size < 10_000 or unit == "T":
            return f"{size:.0f}{unit}"
        size /= _KIB
    raise AssertionError("the last unit takes every size")


def age(value: Any) -> str:
    """Format seconds with the largest unit that fits; "-" for none."""
    if value is None:
        return "-"
    for seconds, unit in ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "m")):
        if value >= 2 * seconds:
            return f"{value // seconds:.0f}{unit}"
    return f"{value:.0f}s"


def text(value: Any) -> str:
    """Format a name without control characters."""
    return printable(str(value).replace("\n", "\\n"))


_COLUMNS: dict[str, tuple[Column, ...]] = {
    QUEUES: (
        Column("QUEUE", "name", 0, text, 0),
        Column("VHOST", "vhost", 10, text, 5),
        Column("READY", "messages_ready", 7, amount, 0),
        Column("UNACKED", "messages_unacknowledged", 7, amount, 2),
        Column("IN/S", "publish_rate", 7, rate, 1),
        Column("OUT/S", "deliver_rate", 7, rate, 1),
        Column("ACK/S", "ack_rate", 7, rate, 4),
        Column("AGE", "oldest_seconds", 6, age, 3),
        Column("BYTES", "message_bytes", 7, size_text, 4),
        Column("CONS", "consumers", 5, amount, 3),
    ),
    CONNECTIONS: (
        Column("CONNECTION", "name", 0, text, 0),
        Column("USER", "user", 10, text, 2),
        Column("VHOST", "vhost", 10, text, 4),
        Column("STATE", "state", 8, text, 1),
        Column("CHANNELS", "channels", 8, amount, 2),
        Column("IN/S", "recv_rate", 8, size_text, 1),
        Column("OUT/S", "send_rate", 8, size_text, 1),
    ),
}
SORTS: dict[str, tuple[str, str]] = {
    "r": ("rate", "total_rate"),
    "d": ("depth", "messages"),
    "a": ("age", "oldest_seconds"),
    "m": ("memory", "message_bytes"),
    "n": ("name", "name"),
}
"""The orders by their keys: the word for people, and the member of a row."""


@dataclass
class View:
    """What the user has chosen.

    Args:
        what: QUEUES or CONNECTIONS.
        sort: a key of `SORTS`.
        reverse: the smallest first.
        pattern: only names that contain this text.
        typing: the pattern is being typed.
        skip: rows before the first one on the screen.
    """

    what: str = QUEUES
    sort: str = "r"
    reverse: bool = False
    pattern: str = ""
    typing: bool = False
    skip: int = field(default=0)

    def press(self, key: str) -> bool:
        """Take a key; returns False if the user wants to leave."""
        if self.typing:
            self._type(key)
        elif key in ("q", "Q", "\x03"):
            return False
        elif key in SORTS:
            self.sort, self.skip = key, 0
        elif key == "v":
            self.reverse = not self.reverse
        elif key in ("c", "u", "\t"):
            others = {QUEUES: CONNECTIONS, CONNECTIONS: QUEUES}
            self.what = {"c": CONNECTIONS, "u": QUEUES}.get(key, others[self.what])
            self.skip = 0
        elif key == "/":
            self.typing, self.pattern = True, ""
        elif key in ("j", "\x1b[B"):
            self.skip += 1
        elif key in ("k", "\x1b[A"):
            self.skip = max(self.skip - 1, 0)
        return True

    def _type(self, key: str) -> None:
        if key in ("\r", "\n"):
            self.typing = False
        elif key.startswith("\x1b") or key == "\x03":
            self.typing, self.pattern = False, ""
        elif key in ("\x7f", "\b"):
            self.pattern = self.pattern[:-1]
        elif key.isprintable():
            self.pattern += key
        self.skip = 0


def rows_of(before: Sample, after: Sample, view: View) -> list[Row]:
    """Return the rows of a view with their rates, filtered and sorted.

    Args:
        before: the sample before; the same one gives rates of 0.
        after: the newest sample.
        view: the choices of the user.
    """
    seconds = after.at - before.at
    if view.what == QUEUES:
        old = {(row["vhost"], row["name"]): row for row in before.queues}
        rows = [_queue(old.get((row["vhost"], row["name"])), row, seconds) for row in after.queues]
    else:
        known = {row["name"]: row for row in before.connections}
        rows = [_connection(known.get(row["name"]), row, seconds) for row in after.connections]
    wanted = view.pattern.casefold()
    shown_rows = [row for row in rows if wanted in str(row["name"]).casefold()]
    _, member = SORTS[view.sort]
    by_name = member == "name"
    shown_rows.sort(key=lambda row: (str(row["vhost"]), str(row["name"])))
    if not by_name:
        shown_rows.sort(key=lambda row: row.get(member) or 0, reverse=not view.reverse)
    elif view.reverse:
        shown_rows.reverse()
    return shown_rows


def _per_second(old: Row | None, new: Row, name: str, seconds: float) -> float:
    """Return a rate; 0 for something new, or after a restart of the broker."""
    if old is None or seconds <= 0:
        return 0.0
    return max((new.get(name) or 0) - (old.get(name) or 0), 0) / seconds


def _queue(old: Row | None, new: Row, seconds: float) -> Row:
    published = _per_second(old, new, "publish", seconds)
    delivered = _per_second(old, new, "deliver_get", seconds)
    return {
        **new,
        "messages": new["messages_ready"] + new["messages_unacknowledged"],
        "publish_rate": round(published, 3),
        "deliver_rate": round(delivered, 3),
        "ack_rate": round(_per_second(old, new, "ack", seconds), 3),
        "total_rate": round(published + delivered, 3),
    }


def _connection(old: Row | None, new: Row, seconds: float) -> Row:
    received = _per_second(old, new, "recv_oct", seconds)
    sent = _per_second(old, new, "send_oct", seconds)
    return {
        "name": new["name"],
        "user": new["user"],
        "vhost": new["vhost"],
        "state": new["state"],
        "channels": new["channels"],
        "recv_rate": round(received, 3),
        "send_rate": round(sent, 3),
        "total_rate": round(received + sent, 3),
        "messages": new["channels"],
    }


def totals(before: Sample, after: Sample) -> Row:
    """Return the sums of all queues."""
    rows = rows_of(before, after, View())
    return {
        name: round(sum(row[name] or 0 for row in rows), 3)
        for name in (
            *("messages_ready", "messages_unacknowledged", "message_bytes"),
            *("publish_rate", "deliver_rate", "ack_rate"),
        )
    }


# --- lines ----------------------------------------------------------------------------------------

_BOLD, _REVERSED, _RED, _PLAIN = "\x1b[1m", "\x1b[7m", "\x1b[31m", "\x1b[0m"


def lines(
    before: Sample, after: Sample, view: View, width: int, height: int | None, *, colour: bool
) -> list[str]:
    """Return the lines of the screen.

    Args:
        before: the sample before.
        after: the newest sample.
        view: the choices of the user.
        width: columns of the terminal.
        height: its lines; None for as many as there are rows.
        colour: use attributes of the terminal.
    """
    rows = rows_of(before, after, view)
    shown = [*_head(before, after, width, colour=colour), _status(view, len(rows), width)]
    columns = _fitting(_COLUMNS[view.what], width)
    title = _line([column.title for column in columns], columns, width)
    shown.append(f"{_REVERSED}{title.ljust(width)}{_PLAIN}" if colour else title)
    space = len(rows) if height is None else max(height - len(shown), 0)
    view.skip = min(view.skip, max(len(rows) - space, 0))
    shown += [
        _line([column.shown(row.get(column.key)) for column in columns], columns, width)
        for row in rows[view.skip : view.skip + space]
    ]
    return shown if height is None else shown[:height]


def _head(before: Sample, after: Sample, width: int, *, colour: bool) -> Iterable[str]:
    overview, sums = after.overview, totals(before, after)
    short = list(overview["shortages"])
    if overview["memory_alarm"] and "memory" not in short:
        short.append("memory")
    yield _cut(
        f"{overview['node']}  up {age(overview['uptime_seconds'])}  "
        f"{amount(overview['connections'])} connections  {amount(overview['channels'])} channels  "
        f"{amount(overview['queues'])} queues  {amount(overview['consumers'])} consumers",
        width,
    )
    yield _cut(
        f"ready {amount(sums['messages_ready'])}  "
        f"unacked {amount(sums['messages_unacknowledged'])}  in {rate(sums['publish_rate'])}/s  "
        f"out {rate(sums['deliver_rate'])}/s  ack {rate(sums['ack_rate'])}/s  "
        f"memory {size_text(overview['memory_used_bytes'])}  "
        f"disk free {size_text(overview['disk_free_bytes'])}",
        width,
    )
    if short:
        alarm = _cut(f"publishers are blocked: {', '.join(sorted(short))}", width)
        yield f"{_RED}{alarm}{_PLAIN}" if colour else alarm


def _status(view: View, count: int, width: int) -> str:
    if view.typing:
        return _cut(f"filter: {view.pattern}_", width)
    chosen = f"{count} {view.what}, by {SORTS[view.sort][0]}{' reversed' if view.reverse else ''}"
    filtered = f", filter {view.pattern!r}" if view.pattern else ""
    keys = "  [r]ate [d]epth [a]ge [m]emory [n]ame re[v]erse [c]onnections q[u]eues [/] [q]uit"
    return _cut(chosen + filtered + keys, width)


def _fitting(columns: Sequence[Column], width: int) -> list[Column]:
    """Drop the columns that are needed least until the rest fits."""
    kept = list(columns)
    while len(kept) > 1 and sum(each.width + 1 for each in kept) + _MIN_NAME > width:
        kept.remove(max(kept, key=lambda each: each.needed))
    return kept


def _line(cells: Sequence[str], columns: Sequence[Column], width: int) -> str:
    left = max(width - sum(each.width + 1 for each in columns if each.width), _MIN_NAME)
    parts = []
    for cell, column in zip(cells, columns, strict=True):
        room = column.width or left
        short = _cut(cell, room)
        words = column.shown is text
        parts.append(short.ljust(room) if words else short.rjust(room))
    return _cut(" ".join(parts).rstrip(), width)


def _cut(line: str, width: int) -> str:
    return line if len(line) <= width else line[: max(width - 1, 0)] + _ELLIPSIS


def as_json(before: Sample, after: Sample, view: View) -> Mapping[str, Any]:
    """Return the rows, for scripts."""
    return {
        "node": after.overview["node"],
        "seconds": round(after.at - before.at, 3),
        "totals": totals(before, after),
        view.what: rows_of(before, after, view),
    }
