"""Dead letters of a vhost in groups: where and why they died, what went wrong, and their key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from operator import attrgetter
from typing import TYPE_CHECKING, Annotated, Any

from harebell.admin.arguments import InVhost
from harebell.admin.catalog import DEAD_LETTERS
from harebell.admin.command import MANAGEMENT, Argument, Row, plural
from harebell.admin.commands.messages import READ
from harebell.admin.commands.queues import find_readable
from harebell.admin.context import AdminContext
from harebell.admin.limits import (
    DEAD_LETTER_GROUPS,
    DEAD_LETTER_LOOKS,
    DEAD_LETTER_MS,
    DEAD_LETTER_PROBES,
    DEAD_LETTER_QUEUES,
    DEAD_LETTER_TIMES,
    DEAD_LETTER_UNITS,
)
from harebell.admin.looking import Looking
from harebell.admin.rows.common import time_text
from harebell.base.slices import Slices

if TYPE_CHECKING:
    from harebell.model.death import Death
    from harebell.model.queue.browse import Browsed
    from harebell.model.queue.contract import Queue
    from harebell.model.vhost import VHost

_MINUTE_MS = 60_000
_SHOWN = ("messages", "queue", "origin", "reason", "error", "routing_key", "newest")


class _Times:
    """How many messages arrived in each interval; the intervals are widened when they are many."""

    def __init__(self) -> None:
        self.width = _MINUTE_MS
        self.counts: dict[int, int] = {}

    def add(self, ms: int) -> None:
        """Count a message."""
        at = ms // self.width
        self.counts[at] = self.counts.get(at, 0) + 1
        if len(self.counts) > DEAD_LETTER_TIMES:
            self.widen(self.width * 2)

    def widen(self, width: int) -> None:
        """Count in intervals of another width, a multiple of the one before."""
        factor, before = width // self.width, self.counts
        self.width, self.counts = width, {}
        for at, count in before.items():
            self.counts[at // factor] = self.counts.get(at // factor, 0) + count


class _Group:
    """Dead letters of a queue with the same death."""

    def __init__(self, queue: str, death: Death, offset: int) -> None:
        self.queue = queue
        self.death = death
        self.messages = self.bytes = self.oldest = self.newest = 0
        self.first = self.last = offset
        self.times = _Times()

    def add(self, browsed: Browsed) -> None:
        """Count a message."""
        message, moment = browsed.message, browsed.message.timestamp
        self.messages += 1
        self.bytes += len(message.body)
        self.last = browsed.position
        if moment:
            self.oldest = min(self.oldest or moment, moment)
            self.newest = max(self.newest, moment)
            self.times.add(moment)

    def row(self) -> Row:
        """Return the row of the group."""
        width = self.times.width
        return {
            "queue": self.queue,
            "origin": self.death.queue,
            "reason": self.death.reason,
            "error": self.death.error,
            "routing_key": self.death.routing_key,
            "messages": self.messages,
            "bytes": self.bytes,
            "oldest": time_text(self.oldest) if self.oldest else "",
            "newest": time_text(self.newest) if self.newest else "",
            "first_offset": self.first,
            "last_offset": self.last,
            "times": [[at * width, count] for at, count in sorted(self.times.counts.items())],
            "where": self._where(),
        }

    def _where(self) -> str:
        values = self.death._asdict().items()
        return " AND ".join(_equal(f"death.{name}", value) for name, value in values)


def _equal(column: str, value: str | None) -> str:
    if value is None:
        return f"{column} IS NULL"
    quoted = value.replace("'", "''")
    return f"{column} = '{quoted}'"


class _Groups:
    """The groups of one command, which are bounded.

    Attributes:
        groups: by queue and death.
        dead: how many dead letters were found.
        other: how many of them are in further groups.
    """

    def __init__(self) -> None:
        self.groups: dict[tuple[str, Death], _Group] = {}
        self.dead = self.other = 0

    def add(self, queue: str, death: Death, browsed: Browsed) -> None:
        """Count a dead letter."""
        self.dead += 1
        group = self.groups.get((queue, death))
        if group is None:
            if len(self.groups) >= DEAD_LETTER_GROUPS:
                self.other += 1
                return
            group = self.groups[queue, death] = _Group(queue, death, browsed.position)
        group.add(browsed)

    def rows(self) -> list[Row]:
        """Return the rows, those with most messages first, and one width of intervals for all."""
        groups = sorted(self.groups.values(), key=attrgetter("queue"))
        groups.sort(key=attrgetter("messages"), reverse=True)
        width = max((group.times.width for group in groups), default=_MINUTE_MS)
        for group in groups:
            group.times.widen(width)
        return [group.row() for group in groups]


class _Walk:
    """The way through one queue.

    Attributes:
        dead: how many dead letters were found.
        ended: whether all of its messages were looked at.
    """

    def __init__(self, context: AdminContext, vhost: VHost, queue: Queue, groups: _Groups) -> None:
        from harebell.model.queue.browse import Start

        self._looking = Looking(context, vhost, queue, None)
        self._selected: Iterator[Browsed | None] = self._looking.selected(queue.browse(Start()))
        self._groups = groups
        self.dead = 0
        self.ended = False

    @property
    def left(self) -> int:
        """How many messages of the queue were not looked at, about."""
        queue = self._looking.queue
        if self.ended or queue.deleted:
            return 0
        return max(queue.ready_count() - self._looking.looked, 0)

    @property
    def looked(self) -> int:
        """How many messages were looked at."""
        return self._looking.looked

    def look(self, limit: int, until: int, now: Any) -> Slices[None]:
        """Look at further messages.

        Args:
            limit: how many.
            until: the time to stop at, of the clock.
            now: the clock.
        """
        looking, groups = self._looking, self._groups
        if looking.queue.deleted:
            return
        stop = looking.looked + limit
        for browsed in self._selected:
            if browsed is None:
                yield
                # The next step would say that the queue was deleted: other queues are there.
                if looking.queue.deleted or now.steady >= until:
                    return
                continue
            if browsed.message.has_headers:
                looking.units += DEAD_LETTER_UNITS
            death = looking.subject.death
            if death is not None:
                self.dead += 1
                groups.add(looking.queue.name, death, browsed)
            if looking.looked >= stop:
                looking.charge()
                return
        looking.charge()
        self.ended = True


def _report(outcome: Mapping[str, Any]) -> str:
    """Return the groups as a table, with what was not looked at."""
    rows = [[_cell(group[name]) for name in (*_SHOWN, "where")] for group in outcome["groups"]]
    lines = [[*_SHOWN, "where"], *rows] if rows else []
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    table = [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    ]
    found = plural(outcome["dead_letters"], "dead letter")
    end = f"{found} in vhost '{outcome['vhost']}'"
    if outcome["other"]:
        end += f", {outcome['other']} of them in groups that are not shown"
    if not outcome["complete"]:
        end += f"; {plural(outcome['left'], 'message')} not looked at: name a queue with --queue"
    return "\n".join([*table, end])


def _cell(value: Any) -> str:
    from harebell.base.printable import printable

    return "" if value is None else printable(str(value).replace("\n", "\\n"))


@DEAD_LETTERS.command("GET /api/dead-letters/{vhost}", tag=MANAGEMENT, verb="list", done=_report)
def list_groups(
    context: AdminContext,
    vhost: InVhost = "/",
    queue: Annotated[
        str | None, Argument("Only those in this queue, which is looked through.", "NAME")
    ] = None,
) -> Slices[Row]:
    """List the dead letters of a vhost in groups: where and why they died, and their error.

    A queue without dead letters among its first messages is passed by, unless --queue names it.
    """
    place, queues = yield from _readable(context, vhost, queue)
    groups = _Groups()
    clock = context.broker.clock
    until = clock.steady + DEAD_LETTER_MS
    passed = 0
    walks: list[_Walk] = []
    open_walks: list[_Walk] = []
    for each in queues[:DEAD_LETTER_QUEUES]:
        if each.deleted:
            continue
        walk = _Walk(context, place, each, groups)
        walks.append(walk)
        yield from walk.look(DEAD_LETTER_PROBES, until, clock)
        if walk.ended:
            continue
        if walk.dead or queue is not None:
            open_walks.append(walk)
        else:
            passed += 1
            walk.ended = True
    looks = DEAD_LETTER_LOOKS
    while open_walks:
        walk = open_walks.pop()
        before = walk.looked
        # What a short queue leaves of its share is for the others.
        yield from walk.look(looks // (len(open_walks) + 1), until, clock)
        looks -= walk.looked - before
    left = sum(walk.left for walk in walks)
    unseen = max(len(queues) - DEAD_LETTER_QUEUES, 0)
    return {
        "vhost": place.name,
        "queue": queue,
        "groups": groups.rows(),
        "dead_letters": groups.dead,
        "other": groups.other,
        "queues": len(walks),
        "queues_passed_by": passed,
        "queues_left": unseen,
        "examined": sum(walk.looked for walk in walks),
        "left": left,
        "complete": not (left or unseen or groups.other),
    }


def _readable(
    context: AdminContext, vhost: str, name: str | None
) -> Slices[tuple[VHost, list[Queue]]]:
    """Return the queues that have messages and that the actor may read, and their vhost."""
    if name is not None:
        place, queue = find_readable(context, vhost, name)
        return place, [queue]
    place, actor = context.vhost(vhost), context.actor
    queues: list[Queue] = []
    for name, queue in sorted(place.queues.items()):
        # An exclusive queue is for its connection alone, as when it is browsed.
        visible = queue.owner is None and queue.ready_count()
        if visible and (actor is None or actor.allows(place.name, READ, "queue", name)):
            queues.append(queue)
        yield
    return place, queues
