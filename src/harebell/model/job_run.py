"""A job that is running: it looks at messages, publishes them, and removes them, in slices."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from harebell.base.errors import ErrorKind, Refusal
from harebell.base.expiration import lifetime_ms
from harebell.base.failures import described
from harebell.base.limits import CARRIED_DELIVERIES
from harebell.base.message import (
    FAMILY_1_0,
    FAMILY_1_0_SECTIONS,
    FAMILY_FILE,
    FAMILY_STREAM,
    Message,
    Properties,
    copy_message,
)
from harebell.base.values import Long
from harebell.model import placed
from harebell.model.death import FIRST_QUEUE, death_of
from harebell.model.editor import Editor
from harebell.model.filter.condition import Filter, compile_filter
from harebell.model.filter.errors import FilterError
from harebell.model.filter.subject import Subject
from harebell.model.jobs import (
    COPY,
    DISCARD,
    DISCARD_JOB,
    DONE,
    FAILED,
    REMOVE,
    RESTORE,
    RETRY,
    RUNNING,
    TO_TARGET,
    Awaited,
    Job,
    Jobs,
    Rights,
)
from harebell.model.limits import (
    BROWSE_MESSAGE_UNITS,
    JOB_ACT_UNITS,
    JOB_AHEAD_BYTES,
    JOB_SLICE_UNITS,
    WORK_SLICE_UNITS,
)
from harebell.model.queue.browse import BrowseCursor, Browsed, Start
from harebell.model.queue.contract import Queue
from harebell.model.queue.queue import MessageQueue
from harebell.model.rehearsal import drops_for, refusal, unheld
from harebell.model.reserved import check_length

RETRIES = "x-retries"
RETRIED_FROM = "x-retried-from"
_RETRIES_MAX = 2**63 - 1
"""The numbers that a header can carry: publishers may have written any number."""
DISCARDS = "x-discard-"
EARLIER = "x-discard-earlier"
"""The header with the marks of the discards before, the oldest first."""
_EARLIER_MAX = 8
_DEATHS = ("x-death", "x-first-death-", "x-last-death-", DISCARDS)


class Run:
    """A job that is running.

    Args:
        jobs: the jobs of the broker.
        job: its orders and its progress.
        rights: those of its user.

    Raises:
        FilterError: its filter is invalid.
        Refusal: its queue or exchange does not exist, or allows no such job.
    """

    def __init__(self, jobs: Jobs, job: Job, rights: Rights) -> None:
        self._jobs = jobs
        self._rights = rights
        self._job = job
        orders = job.orders
        vhost = jobs.vhosts.get(orders.vhost)
        if vhost is None:
            raise Refusal(ErrorKind.NOT_FOUND, f"no vhost '{orders.vhost}'")
        self._vhost = vhost
        self._queue = vhost.queue(orders.queue)
        if orders.verb != COPY:
            self._queue.check_withdraw()
        self._target = self._checked_target()
        self._bind()
        self._undone = self._undone_job()
        self._filter: Filter | None = compile_filter(orders.where) if orders.where else None
        self._subject = Subject(jobs.editor)
        self._body = None if orders.body is None else b64decode(orders.body)
        self._headers = _decoded(jobs.editor, orders.headers)
        self._cursor: BrowseCursor = self._queue.browse(Start())
        if job.ends:
            self._cursor.go_to(job.cursors, job.ends)
        else:
            job.messages = self._queue.ready_count()
            job.ends = dict(self._cursor.ends)
        self._ahead = 0
        self._ticket = 0
        # The discard to which a message belongs where it is put, and those with new positions.
        self._noted: Job | None = None
        self._marked: set[Job] = set()
        # Whether a large message is being read, or was read and is the next to look at.
        self._fetching = self._fetched = False
        # Whether the cursor is at a message to look at, and where it was before it came there.
        self._here = False
        self._at: list[int] = []

    def _arrived(self) -> None:
        self._fetching = False
        self._fetched = True

    def _bind(self) -> None:
        """Note which user and queues these are, or refuse others that have their names.

        Raises:
            Refusal: the user or a queue is not the one of the job.
        """
        job, target, who = self._job, self._target, self._rights.who()
        source, destination = self._queue.identity, target.identity if target else ""
        # A job that goes on after a restart has them in its record.
        if not job.ends:
            job.source, job.target, job.who = source, destination, who
        elif who != job.who:
            other = f"user '{job.orders.user}' is not the one who has started it, or has another"
            text = self._rights.stop() or f"{other} password: start it again"
            raise Refusal(ErrorKind.ACCESS_REFUSED, text)
        elif source != job.source:
            raise _other(self._queue.name)
        elif target is not None and destination != job.target:
            raise _other(target.name)

    def _checked_target(self) -> Queue | None:
        """Return the queue where the messages go; None if an exchange routes them.

        Raises:
            Refusal: there is no such queue or exchange, or it takes no messages of a job.
        """
        orders = self._job.orders
        if orders.verb not in TO_TARGET:
            return None
        if orders.routing_key is not None:
            # A queue that could not keep it would fail when the message has left its own.
            check_length("routing key", orders.routing_key)
        exchange = self._vhost.exchange(orders.exchange)
        if exchange.keeps:
            raise Refusal(
                ErrorKind.PRECONDITION_FAILED,
                f"exchange '{orders.exchange}' of type {exchange.KIND} takes no messages of a job: "
                "name another one",
            )
        if exchange.default and orders.routing_key is not None:
            target = self._vhost.queue(orders.routing_key, self._owner_of(orders.routing_key))
            if orders.routing_key == orders.queue:
                raise Refusal(
                    ErrorKind.PRECONDITION_FAILED,
                    f"queue '{orders.queue}' is both where the messages are and where they go: "
                    "name another one",
                )
            problem = unheld(target, self._queue.durable) if orders.verb == DISCARD else ""
            if problem:
                text = f"queue '{target.name}' cannot hold what is discarded: {problem}"
                raise Refusal(ErrorKind.PRECONDITION_FAILED, f"{text}: name another one")
            return target
        return None

    def _undone_job(self) -> Job | None:
        """Return the discard whose messages this job moves back; None if it does another thing.

        Raises:
            Refusal: the discard is forgotten, or its queue is another one now.
        """
        if self._job.orders.verb != RESTORE:
            return None
        number = self._job.orders.undoes
        job = self._jobs.find(number)
        if job is None:
            raise Refusal(ErrorKind.NOT_FOUND, f"job {number}, which is undone, is forgotten")
        if job.target != self._queue.identity:
            raise _other(self._queue.name)
        return job

    def _owner_of(self, name: str) -> object:
        queue = self._vhost.queues.get(name)
        return None if queue is None else queue.owner

    # --- slices ---------------------------------------------------------------------------------

    def step(self) -> bool:
        """Do slices until the work budget of this turn is used up; True when nothing is left."""
        jobs, job = self._jobs, self._job
        while job.state == RUNNING:
            # The job is faster than the disk: without this wait its publishes would fill the
            # memory.
            if self._ticket > jobs.commit.done and self._ahead >= JOB_AHEAD_BYTES:
                jobs.commit.urgent = True
                jobs.awaiting.append(self)
                return True
            # A removal frees memory and disk, so it goes on while publishers are blocked.
            if job.orders.verb != REMOVE and self._rights.wait():
                jobs.wait(self)
                return True
            try:
                spent = self._slice()
            except Awaited as awaited:
                awaited.ask(self._known)
                return True
            except (FilterError, Refusal) as error:
                jobs.end(job, FAILED, str(error))
                break
            except Exception as error:  # a message of a peer must not leave it running for ever
                jobs.end(job, FAILED, f"a fault of the broker: {described(error)}")
                jobs.failures.caught(self.step, error)
                break
            if jobs.work.charge(spent):
                return job.state != RUNNING
        return True

    def _known(self) -> None:
        self._jobs.work.later(self.step)

    def committed(self) -> None:
        """Go on after a commit."""
        if self._ticket > self._jobs.commit.done:
            self._jobs.commit.urgent = True
            self._jobs.awaiting.append(self)
            return
        self._ahead = 0
        self._jobs.work.later(self.step)

    def _slice(self) -> int:
        """Apply the job to some messages; return the work units."""
        jobs, job, queue = self._jobs, self._job, self._queue
        for each in (queue, self._target):
            if each is not None and each.deleted:
                jobs.end(job, FAILED, f"queue '{each.name}' was deleted")
                return 1
        # It may have become exclusive to a session of 0-10.
        self._vhost.queue(queue.name)
        problem = self._rights.stop()
        if problem:
            jobs.end(job, FAILED, problem)
            return 1
        units, acted = 0, job.done
        touched: dict[Queue, None] = {}
        ended = False
        awaited: Awaited | None = None
        while units < JOB_SLICE_UNITS:
            if not self._here:
                self._at = list(self._cursor.cursors)
                if self._cursor.next() < 0:
                    ended = True
                    break
                self._here = True
            if self._fetching or (not self._fetched and self._cursor.load_spilled(self._arrived)):
                # A large message is read in slices.
                self._fetching = not self._fetched
                units += WORK_SLICE_UNITS
                break
            self._fetched = False
            try:
                units += BROWSE_MESSAGE_UNITS + self._apply(touched)
            except Awaited as missing:
                awaited = missing
                break
            self._here = False
        if job.done != acted:
            # A message that is being read was not handled: after a restart the job begins with it.
            job.cursors = self._at if self._here else list(self._cursor.cursors)
            jobs.commit.urgent = True
            # The password may have been changed since.
            job.who = self._rights.who()
            for changed in self._marked | {job}:
                jobs.write(changed)
            self._marked.clear()
            self._ticket = jobs.commit.ticket
            queue.sync_soon()
            for each in touched:
                each.drain()
        if awaited is not None:
            raise awaited
        if ended and job.state == RUNNING:
            jobs.end(job, DONE)
        return units

    def _apply(self, touched: dict[Queue, None]) -> int:
        """Apply the job to one message; return the work units."""
        job = self._job
        browsed = self._cursor.read()
        job.examined += 1
        if browsed is None:
            return 0
        if self._undone is not None and not _has(self._undone, self._queue, browsed.position):
            return 0
        message = browsed.message
        # An expired message is the queue's to dead-letter, whatever the filter says.
        if message.due and message.due <= self._jobs.clock.steady:
            return 0
        units = 0
        if self._filter is not None:
            units = self._filter.units(message)
            self._subject.now = self._jobs.clock.ms
            self._subject.is_now(
                message,
                browsed.position,
                browsed.deliveries,
                browsed.state,
                redelivered=browsed.redelivered,
            )
            if not self._filter.selects(self._subject):
                return units
        job.selected += 1
        try:
            problem = self._act(browsed, touched)
        except Awaited:
            # The message is read again when the job goes on.
            job.examined -= 1
            job.selected -= 1
            raise
        if problem:
            job.left += 1
            job.problem = job.problem or problem
        return units + JOB_ACT_UNITS

    def _act(self, browsed: Browsed, touched: dict[Queue, None]) -> str:
        """Move, copy or delete a message; return why it stays in its queue, or ""."""
        verb = self._job.orders.verb
        message = browsed.message
        self._noted = None
        queues: tuple[Queue, ...] = ()
        if verb != REMOVE:
            prepared = self._prepared(browsed)
            if isinstance(prepared, str):
                return prepared
            message = prepared
            refused = self._rights.leave(message)
            if refused:
                return refused
            targets = self._targets(message)
            if isinstance(targets, str):
                return targets
            queues = targets
            if verb in (DISCARD, RESTORE):
                # It is there as it was here: its place alone is another one.
                original = browsed.message
                message = copy_message(message, original.exchange, original.routing_key)
                message.deliveries = min(browsed.deliveries, CARRIED_DELIVERIES)
        noted, target = self._noted, self._target
        position = _at(target, message)
        if noted is self._job and not placed.takes(noted.placed, position, _step(target)):
            return f"others publish to queue '{noted.orders.routing_key}': discard the rest again"
        # Before the first change: otherwise a log may write it early, without the rest.
        self._jobs.commit.joint = True
        if verb != COPY and not self._queue.withdraw(browsed.position, browsed.message):
            # A consumer or a claim has it: it is not ready any more.
            self._job.selected -= 1
            return ""
        for queue in queues:
            queue.publish(message)
            queue.sync_soon()
            touched[queue] = None
        # It is not there if a consumer without acknowledgements has taken it at once.
        if noted is not None and _at(target, message) != position:
            placed.add(noted.placed, position, _step(target))
            self._marked.add(noted)
        self._job.done += 1
        self._ahead += len(message.body) + len(message.raw)
        return ""

    def _targets(self, message: Message) -> tuple[Queue, ...] | str:
        """Return the queues of a message, or why it cannot be published."""
        exchange = self._vhost.exchanges.get(message.exchange)
        if exchange is None:
            return f"exchange '{message.exchange}' was deleted"
        queues = self._vhost.router.route(exchange, message)
        if not queues:
            return (
                f"no queue is bound for routing key '{message.routing_key}' at exchange "
                f"'{message.exchange}'"
            )
        problem = next(filter(None, (refusal(queue, message) for queue in queues)), "")
        if not problem and self._job.orders.verb in (DISCARD, RESTORE):
            # What another discard has put there would be lost.
            full = next((queue for queue in queues if drops_for(queue, message)), None)
            problem = "" if full is None else f"queue '{full.name}' is full"
        return problem or queues

    def _prepared(self, browsed: Browsed) -> Message | str:
        """Return the message to publish, or why there is none."""
        orders, editor, message = self._job.orders, self._jobs.editor, browsed.message
        if orders.verb == RETRY:
            return self._retried(message)
        if orders.verb in (DISCARD, RESTORE):
            headers = editor.headers_of(message) if message.has_headers else {}
            changes = self._marks(headers, browsed.position)
            if isinstance(changes, str):
                return changes
            message = editor.with_headers(message, changes)
        key = message.routing_key if orders.routing_key is None else orders.routing_key
        return self._fresh(copy_message(message, orders.exchange, key))

    def _retried(self, message: Message) -> Message | str:
        headers = self._jobs.editor.headers_of(message) if message.has_headers else {}
        death = death_of(headers)
        if death is None:
            return f"a message does not say which queue it died in (header {FIRST_QUEUE})"
        origin = death.queue
        if origin == self._queue.name:
            return f"a message died in queue '{origin}', which it is in"
        changes: dict[str, Any] = {name: None for name in headers if name.startswith(_DEATHS)}
        before = headers.get(RETRIES)
        # The header may be a publisher's: not `isinstance`, for which True is a number.
        counted = before if type(before) is int and before >= 0 else 0
        changes[RETRIES] = min(counted + 1, _RETRIES_MAX)
        changes[RETRIED_FROM] = self._queue.name
        edited = self._jobs.editor.with_headers(message, {**self._headers, **changes})
        if self._body is not None:
            if edited.family == FAMILY_1_0_SECTIONS:
                return "a message has a body of AMQP 1.0 that is no data: it cannot be replaced"
            basic = edited if edited.family == FAMILY_1_0 else self._jobs.editor.basic_of(edited)
            edited = _with_body(basic, self._body)
        return self._fresh(copy_message(edited, "", origin))

    def _marks(self, headers: Mapping[str, Any], position: int) -> dict[str, Any] | str:
        """Return the headers of what is discarded or restored, or why it is not.

        What a message says of the discards before is kept. Only what those jobs have put where it
        is keeps their numbers, by which an undo is told what is theirs: anybody can publish more.
        """
        job = self._job
        marks: dict[str, Any] = {name: None for name in headers if name.startswith(DISCARDS)}
        said = headers.get(EARLIER)
        earlier = (
            [each for each in said if isinstance(each, Mapping)] if isinstance(said, list) else []
        )
        if job.orders.verb == RESTORE:
            if earlier:
                marks.update((n, v) for n, v in earlier.pop().items() if n.startswith(DISCARDS))
            self._noted = self._discard_to(self._target, marks.get(DISCARD_JOB))
        else:
            if marks:
                earlier.append({name: headers[name] for name in marks if name != EARLIER})
            if len(earlier) > _EARLIER_MAX:
                return f"a message was discarded more than {_EARLIER_MAX} times"
            before = self._discard_to(self._queue, headers.get(DISCARD_JOB))
            if before is None or not _has(before, self._queue, position):
                earlier = [{n: v for n, v in e.items() if n != DISCARD_JOB} for e in earlier]
            self._noted = job
            marks |= {
                "x-discard-reason": job.orders.reason,
                "x-discard-user": job.orders.user,
                "x-discard-queue": self._queue.name,
                "x-discard-time": datetime.fromtimestamp(self._jobs.clock.ms // 1000, UTC),
                DISCARD_JOB: Long(job.number),
            }
        marks[EARLIER] = earlier or None
        return marks

    def _discard_to(self, queue: Queue | None, number: object) -> Job | None:
        """Return the discard to a queue that has the number of a header; None if there is none."""
        job = self._jobs.find(number) if isinstance(number, int) else None
        if job is None or queue is None or job.orders.verb != DISCARD:
            return None
        return job if job.target == queue.identity else None

    def _fresh(self, message: Message) -> Message:
        """Reset a copy to a new publish, whose time to live begins again, and return it."""
        message.timestamp = 0
        message.offset = -1
        message.origin = 0
        message.deliveries = 0
        message.due = 0
        if message.family not in (FAMILY_FILE, FAMILY_STREAM):
            lifetime = lifetime_ms(self._jobs.editor.expiration_of(message))
            if lifetime is not None:
                message.due = self._jobs.clock.steady + lifetime
        return message


def _at(queue: Queue | None, message: Message) -> int:
    """Return the position that a message gets in a queue; -1 without one."""
    return queue.order.next_position(message) if isinstance(queue, MessageQueue) else -1


def _step(queue: Queue | None) -> int:
    """Return how far the positions of a level are from each other."""
    return 1 << queue.order.level_bits if isinstance(queue, MessageQueue) else 1


def _has(job: Job, queue: Queue, position: int) -> bool:
    """Return whether a discard has put the message at a position of its queue."""
    return placed.has(job.placed, position, _step(queue))


def _decoded(editor: Editor, headers: str) -> Mapping[str, Any]:
    """Return the headers that orders have."""
    if not headers:
        return {}
    return editor.headers_of(Message("", "", Properties(b64decode(headers)), b""))


def _with_body(message: Message, body: bytes) -> Message:
    properties = Properties(
        message.raw,
        message.delivery_mode,
        message.priority,
        message.has_headers,
        family=message.family,
    )
    return Message(message.exchange, message.routing_key, properties, body)


def _other(name: str) -> Refusal:
    text = f"queue '{name}' was deleted and declared again since the job began: start another one"
    return Refusal(ErrorKind.PRECONDITION_FAILED, text)
