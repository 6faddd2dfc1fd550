"""Commands that look at the messages of a queue: without taking them, and by a filter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

from harebell.admin.catalog import JOBS, QUEUES
from harebell.admin.command import MANAGEMENT, Argument, Row, plural
from harebell.admin.commands.queues import InVhost, find_queue
from harebell.admin.context import AdminContext, CommandRefused, missing
from harebell.admin.streaming import RowStream
from harebell.base.limits import (
    BROWSE_MESSAGE_UNITS,
    BROWSE_PAYLOAD_BYTES,
    BROWSE_ROW_UNITS,
    BROWSE_SLICE_UNITS,
    WORK_SLICE_UNITS,
)

if TYPE_CHECKING:
    from harebell.model.filter import Filter, Subject
    from harebell.model.jobs import Job
    from harebell.model.queue.browse import BrowseCursor, Browsed, Start
    from harebell.model.queue.contract import Queue
    from harebell.model.vhost import VHost

FIRST = "first"
LAST = "last"
READ = "read"
WRITE = "write"
RUNNING = "running"
READY = "ready"
ALL = "all"
_MS = 1000
_OCTETS_PER_UNIT = 256
_DIGITS = 18

Where = Annotated[str, Argument("Only messages for which this condition is true.", "CONDITION")]


class BrowsedRow(TypedDict):
    """A message of a queue."""

    offset: int
    timestamp: str
    exchange: str
    routing_key: str
    redelivered: bool
    delivery_count: int
    state: str
    properties: dict[str, Any]
    payload_bytes: int
    payload: str
    payload_encoding: str


def condition_of(where: str) -> Filter | None:
    """Return the filter of an argument; None for all messages.

    Raises:
        CommandRefused: it is invalid.
    """
    from harebell.model.filter import FilterError, compile_filter

    if not where.strip():
        return None
    try:
        return compile_filter(where)
    except FilterError as error:
        raise CommandRefused(str(error)) from None


def start_of(text: str, now: int) -> Start:
    """Return the start that an argument asks for.

    Args:
        text: "first", "last", an offset, a negative number for so many before the end, a time, or
            how long ago, such as "5m".
        now: milliseconds since 1970.

    Raises:
        CommandRefused: it is none of these.
    """
    from harebell.model.filter.comparison import time_of
    from harebell.model.filter.condition import seconds_of
    from harebell.model.queue.browse import Start

    if text == FIRST:
        return Start()
    if text == LAST:
        return Start(-1, 0, 1)
    digits = text.removeprefix("-")
    if digits.isascii() and digits.isdigit() and len(digits) <= _DIGITS and int(digits):
        return Start(-1, 0, int(digits)) if digits != text else Start(int(text))
    if digits == text == "0":
        return Start()
    ago = seconds_of(text)
    if ago is not None:
        return Start(-1, max(now - int(ago * _MS), 1))
    moment = time_of(text) if not digits.isdigit() else None
    if moment is not None:
        return Start(-1, max(int(moment.timestamp() * _MS), 1))
    raise CommandRefused(
        f"cannot begin at '{text}': say first, last, an offset, -10 for the last ten, a time such "
        "as 2026-01-31T12:00:00Z, or how long ago, such as 5m"
    )


@QUEUES.command(
    "GET /api/queues/{vhost}/{name}/browse",
    tag=MANAGEMENT,
    row=BrowsedRow,
    shown=("offset", "exchange", "routing_key", "payload_bytes", "payload"),
)
def browse(
    context: AdminContext,
    name: str,
    vhost: InVhost = "/",
    where: Where = "",
    from_: Annotated[
        str,
        Argument(
            "Where to begin: first, last, an offset, -10 for the last ten, a time, or how long "
            "ago, such as 5m.",
            "PLACE",
        ),
    ] = FIRST,
    limit: Annotated[int, Argument("Most messages to show; 0 for all.", "NUMBER")] = 0,
    state: Annotated[
        str,
        Argument(
            "Show also what is delivered, leased, or waits for a retry.",
            choices=(READY, ALL),
        ),
    ] = READY,
    encoding: Annotated[
        str,
        Argument(
            "Show a body as text if it is UTF-8, or always as base64.", choices=("auto", "base64")
        ),
    ] = "auto",
    truncate: Annotated[int, Argument("Most octets of a body to show.", "OCTETS")] = 50_000,
) -> RowStream:
    """Show the messages of a queue without taking them."""
    context.check_permission(context.vhost(vhost), READ, "queue", name)
    where_, queue = find_queue(context, vhost, name)
    if limit < 0:
        raise CommandRefused(f"the limit is {limit}: say how many messages, or 0 for all")
    if not 0 <= truncate <= BROWSE_PAYLOAD_BYTES:
        raise CommandRefused(
            f"a body is truncated to 0 up to {BROWSE_PAYLOAD_BYTES} octets, not to {truncate}"
        )
    condition = condition_of(where)
    start = start_of(from_, context.broker.clock.ms)
    cursor = queue.browse(start, ready_only=state == READY)
    browsing = _Browsing(context, where_, queue, condition, limit)
    return RowStream(browsing.batches(cursor, encoding, truncate))


class _Browsing:
    """The rows of one command.

    Args:
        context: the broker.
        vhost: the vhost of the queue.
        queue: the queue.
        condition: selects messages; None for all.
        limit: most rows; 0 for no limit.
    """

    def __init__(
        self,
        context: AdminContext,
        vhost: VHost,
        queue: Queue,
        condition: Filter | None,
        limit: int,
    ) -> None:
        from harebell.model.filter import Subject

        self._broker = context.broker
        self._vhost = vhost
        self._queue = queue
        self._condition = condition
        self._editor = vhost.editor
        self._subject: Subject = Subject(vhost.editor)
        self._left = limit or -1

    def batches(self, cursor: BrowseCursor, encoding: str, truncate: int) -> Iterator[list[Row]]:
        """Yield rows; one step is one slice of work."""
        work = self._broker.work
        rows: list[Row] = []
        units = 0
        while self._left and cursor.next() >= 0:
            arrived: list[bool] = []
            if cursor.far(lambda arrived=arrived: arrived.append(True)):  # type: ignore[misc]
                yield from self._wait(rows, arrived)
                rows = []
            browsed = cursor.read()
            units += BROWSE_MESSAGE_UNITS
            if browsed is not None and self._shows(browsed):
                rows.append(self._row(browsed, encoding, truncate))
                self._left -= 1
                octets = min(len(browsed.message.body), truncate)
                units += BROWSE_ROW_UNITS + octets // _OCTETS_PER_UNIT
            if browsed is not None and self._condition is not None:
                units += self._condition.units(browsed.message)
            if units >= BROWSE_SLICE_UNITS:
                work.charge(units)
                units = 0
                yield rows
                rows = []
                self._check()
        work.charge(units)
        if rows:
            yield rows

    def _wait(self, rows: list[Row], arrived: list[bool]) -> Iterator[list[Row]]:
        """Wait until a large message is in memory."""
        yield rows
        while not arrived:
            self._check()
            self._broker.work.charge(WORK_SLICE_UNITS)
            yield []

    def _check(self) -> None:
        if self._queue.deleted:
            raise CommandRefused(
                f"queue '{self._queue.name}' in vhost '{self._vhost.name}' was deleted meanwhile"
            )

    def _shows(self, browsed: Browsed) -> bool:
        from harebell.model.filter import FilterError

        message = browsed.message
        if message.due and message.due <= self._broker.clock.steady:
            return False
        if self._condition is None:
            return True
        self._subject.now = self._broker.clock.ms
        self._subject.is_now(
            message,
            browsed.position,
            browsed.deliveries,
            browsed.state,
            redelivered=browsed.redelivered,
        )
        try:
            return self._condition.selects(self._subject)
        except FilterError as error:
            raise CommandRefused(f"message {browsed.position}: {error}") from None

    def _row(self, browsed: Browsed, encoding: str, truncate: int) -> Row:
        from harebell.admin.message_row import message_row

        moment = browsed.message.timestamp
        return {
            "offset": browsed.position,
            "timestamp": _time(moment) if moment else "",
            "redelivered": browsed.redelivered,
            "delivery_count": browsed.deliveries,
            "state": browsed.state,
            **message_row(self._editor, browsed.message, encoding, truncate),
        }


def _time(ms: int) -> str:
    text = datetime.fromtimestamp(ms / _MS, UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


# --- jobs -----------------------------------------------------------------------------------------

ToQueue = Annotated[str, Argument("Another queue of the vhost.", "NAME")]
ToExchange = Annotated[
    str | None, Argument("An exchange of the vhost, instead of a queue.", "NAME")
]
NewRoutingKey = Annotated[
    str | None,
    Argument("The routing key for the exchange.  [default: that of each message]", "KEY"),
]


def _started(known: Mapping[str, Any]) -> str:
    what = plural(known["messages"], "message")
    return (
        f"job {known['id']} goes through {what} of queue '{known['queue']}' in vhost "
        f"'{known['vhost']}': `harebell jobs list` shows how far it is"
    )


@QUEUES.command("POST /api/queues/{vhost}/{name}/move", tag=MANAGEMENT, done=_started, status=200)
def move(
    context: AdminContext,
    name: str,
    where: str,
    vhost: InVhost = "/",
    to_queue: ToQueue = "",
    to_exchange: ToExchange = None,
    routing_key: NewRoutingKey = None,
) -> Row:
    """Move the messages that a condition selects to another queue or to an exchange, by a job."""
    target = _target(context, vhost, to_queue, to_exchange, routing_key)
    return _start(context, "move", vhost, name, where, *target)


@QUEUES.command("POST /api/queues/{vhost}/{name}/copy", tag=MANAGEMENT, done=_started, status=200)
def copy(
    context: AdminContext,
    name: str,
    where: str,
    vhost: InVhost = "/",
    to_queue: ToQueue = "",
    to_exchange: ToExchange = None,
    routing_key: NewRoutingKey = None,
) -> Row:
    """Copy the messages that a condition selects to another queue or to an exchange, by a job."""
    target = _target(context, vhost, to_queue, to_exchange, routing_key)
    return _start(context, "copy", vhost, name, where, *target)


@QUEUES.command("POST /api/queues/{vhost}/{name}/remove", tag=MANAGEMENT, done=_started, status=200)
def remove(context: AdminContext, name: str, where: str, vhost: InVhost = "/") -> Row:
    """Remove the messages that a condition selects from a queue, by a job."""
    return _start(context, "remove", vhost, name, where, "", None)


@QUEUES.command("POST /api/queues/{vhost}/{name}/retry", tag=MANAGEMENT, done=_started, status=200)
def retry(context: AdminContext, name: str, where: str, vhost: InVhost = "/") -> Row:
    """Move the dead letters that a condition selects to where they first died, by a job."""
    if context.actor is not None:
        # Each message names its queue, so the user has to be allowed to publish to all of them.
        context.check_permission(context.vhost(vhost), WRITE, "exchange", "")
    return _start(context, "retry", vhost, name, where, "", None)


def _target(
    context: AdminContext, vhost: str, queue: str, exchange: str | None, key: str | None
) -> tuple[str, str | None]:
    if bool(queue) == (exchange is not None):
        raise CommandRefused("say where to: either to_queue or to_exchange")
    if queue and key is not None:
        raise CommandRefused("a queue has no routing key: leave it out, or name an exchange")
    context.check_permission(context.vhost(vhost), WRITE, "exchange", exchange or "")
    return ("", queue) if queue else (exchange or "", key)


def _start(
    context: AdminContext,
    verb: str,
    vhost: str,
    name: str,
    where: str,
    exchange: str,
    routing_key: str | None,
) -> Row:
    from harebell.model.jobs import Orders

    context.check_permission(context.vhost(vhost), READ, "queue", name)
    place, queue = find_queue(context, vhost, name)
    condition_of(where or "true")
    user = "" if context.actor is None else context.actor.name
    orders = Orders(verb, place.name, queue.name, where, exchange, routing_key, user)
    job = context.broker.jobs.start(orders)
    context.log(
        "info",
        f"job {job.number} ({verb}) was started on queue '{queue.name}' in vhost '{place.name}'",
    )
    return job_row(job)


class JobRow(TypedDict):
    """A job."""

    id: int
    verb: str
    vhost: str
    queue: str
    where: str
    exchange: str
    routing_key: str | None
    user: str
    state: str
    messages: int
    examined: int
    selected: int
    done: int
    left: int
    problem: str
    started: str
    ended: str


def job_row(job: Job) -> Row:
    """Return what there is to say about a job."""
    row = job.row()
    return {**row, **{name: _time(row[name]) if row[name] else "" for name in ("started", "ended")}}


@JOBS.listing(
    "jobs",
    "GET /api/jobs",
    tag=MANAGEMENT,
    row=JobRow,
    shown=("id", "verb", "vhost", "queue", "state", "examined", "selected", "done", "left"),
)
def list_jobs(context: AdminContext) -> list[Row]:
    """List jobs by their numbers."""
    return [job_row(job) for job in context.broker.jobs.all() if context.may_see(job.orders.vhost)]


def _said(known: Mapping[str, Any]) -> str:
    end = f": {known['problem']}" if known["problem"] else ""
    return (
        f"job {known['id']} ({known['verb']}) is {known['state']}: {known['done']} of "
        f"{plural(known['selected'], 'selected message')} done, {known['left']} left{end}"
    )


@JOBS.command("GET /api/jobs/{id}", tag=MANAGEMENT, done=_said)
def show(context: AdminContext, id_: int) -> Row:
    """Print one job."""
    return job_row(_job(context, id_))


@JOBS.command("DELETE /api/jobs/{id}", tag=MANAGEMENT, done="job {id} was cancelled")
def cancel(context: AdminContext, id_: int) -> Row:
    """Cancel a job; what it has done stays done."""
    job = _job(context, id_)
    if job.state != RUNNING:
        raise CommandRefused(f"job {id_} is not running: it is {job.state}")
    context.check_permission(context.vhost(job.orders.vhost), READ, "queue", job.orders.queue)
    context.broker.jobs.cancel(job)
    context.log("info", f"job {id_} was cancelled")
    return job_row(job)


def _job(context: AdminContext, number: int) -> Job:
    job = context.broker.jobs.find(number)
    if job is None or not context.may_see(job.orders.vhost):
        raise missing(f"no job {number}: `harebell jobs list` shows all")
    return job
