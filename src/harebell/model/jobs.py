"""Jobs: messages that a filter selects are moved, copied, removed or retried, in slices.

    move      publish to an exchange, and remove from the queue
    copy      publish only
    remove    remove only
    retry     move dead letters to the queue where they first died, without the dead-letter headers;
              with another body or other headers if the orders have some
    discard   move to a queue that holds them, with headers that say who has discarded them and why
    restore   move back what a discard has moved, without these headers

A job goes through the messages that are ready when it begins, without taking them: consumers go on
meanwhile, and what they take first is not the job's. A slice is some messages, and is part of one
commit of the store as a whole: its publishes, its removals, and the record of the job, which says
how far it is. A crash keeps all of them or none, so a job that goes on after a restart neither
loses nor doubles a persistent message between durable queues.

A message is left where it is unless every queue that it is routed to would take it: one that only
some have taken could neither stay, since a second job would double it, nor go. A queue takes no
message that it would drop as a duplicate, refuse, drop for its size, or expire at once
(`rehearsal.refusal`). `harebell.model.job_run` does that.

    a record in the log of the jobs: JSON, the members of `Job.row` and

    cursors   for each level of the queue, the position to go on from
    ends      for each level, the position to stop at
    source    the identity of the queue
    target    the identity of the queue where the messages go; "" if an exchange routes them
    who       a text that differs for another user of the same name
    placed    of a discard, the positions where its messages are, see `harebell.model.placed`:
              headers, which any publisher can set, do not say which they are

A later record of a job replaces the earlier one. A job is for the queues and the user that were
there when it began: it ends, and does not go on with others that have got their names since.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from harebell.base.errors import ErrorKind, HarebellError, Refusal
from harebell.base.message import (
    PERSISTENT,
    Message,
    Properties,
)
from harebell.base.ports import JOB_LOG, Log, Store
from harebell.base.share import FairCache, Shares
from harebell.base.timers import Timers
from harebell.model.editor import Editor
from harebell.model.limits import (
    JOB_WAIT_MS,
    JOBS_KEPT,
    JOBS_RUNNING,
)
from harebell.model.vhost import VHost

if TYPE_CHECKING:
    from harebell.model.job_run import Run

MOVE = "move"
COPY = "copy"
REMOVE = "remove"
RETRY = "retry"
DISCARD = "discard"
RESTORE = "restore"
TO_TARGET = (MOVE, COPY, DISCARD, RESTORE)
"""Verbs whose orders say where the messages go."""

DISCARD_JOB = "x-discard-job"
"""The header with the number of the job that has discarded a message."""

RUNNING = "running"
DONE = "done"
CANCELLED = "cancelled"
FAILED = "failed"

_STATE = ("state", "messages", "examined", "selected", "done", "left", "problem")
_SHOWN = (*_STATE, "started", "ended")
_BOUND = ("source", "target", "who")
_RECORD = Properties(b"", delivery_mode=PERSISTENT)


class Awaited(Exception):
    """A permission of the user of a job is not known yet.

    Args:
        ask: starts the request; calls its argument on arrival, never re-entrantly.
    """

    def __init__(self, ask: Callable[[Callable[[], None]], None]) -> None:
        super().__init__()
        self.ask = ask


class Rights(Protocol):
    """The permissions of the user of a job; they may change while the job runs."""

    def who(self) -> str:
        """Return a text that differs for another user of the same name."""

    def stop(self) -> str:
        """Return why the job has to stop; "" if it may go on.

        Raises:
            Awaited: it is not known yet.
        """

    def wait(self) -> bool:
        """Return whether publishers are blocked now: then the job waits as well."""

    def leave(self, message: Message) -> str:
        """Return why a message may not be published as it is; "" if it may.

        Raises:
            Awaited: it is not known yet.
        """


class AllRights:
    """The rights of a user who may do everything."""

    def who(self) -> str:
        """Return "": no other user has the name."""
        return ""

    def stop(self) -> str:
        """Return "": the job may go on."""
        return ""

    def wait(self) -> bool:
        """Return False: the job need not wait."""
        return False

    def leave(self, message: Message) -> str:
        """Return "": every message may be published."""
        return ""


class Orders(NamedTuple):
    """The orders of a job.

    Args:
        verb: MOVE, COPY, REMOVE, RETRY, DISCARD or RESTORE.
        vhost: the name of the vhost.
        queue: the name of the queue.
        where: the filter; "" for all messages.
        exchange: where the messages are published; "" with a routing key is a queue.
        routing_key: their new routing key; None keeps theirs.
        user: the name of the user who has started it; "" for the control socket.
        reason: why the messages are discarded.
        body: the body that retried messages get, in base64; None keeps theirs.
        headers: properties of class basic, in base64, with the headers that retried messages get;
            one without a value is removed. "" for no changes.
        undoes: the number of the discard whose messages are moved back.
    """

    verb: str
    vhost: str
    queue: str
    where: str = ""
    exchange: str = ""
    routing_key: str | None = None
    user: str = ""
    reason: str = ""
    body: str | None = None
    headers: str = ""
    undoes: int = 0

    @property
    def edits(self) -> bool:
        """Whether messages are changed on their way."""
        return self.body is not None or bool(self.headers)


class Job:
    """One job.

    Args:
        number: the number that commands name it by.
        orders: the verb, the filter and the destination.
        started: when it was started, in milliseconds since 1970.

    Attributes:
        number, orders, started: as given.
        state: RUNNING, DONE, CANCELLED or FAILED.
        messages: how many messages were ready when it began.
        examined, selected, done, left: how many messages it has looked at, how many of them the
            filter selects, how many of those it has moved, copied or removed, and how many it has
            left where they are.
        problem: why it failed, or why it has left the first message where it is.
        ended: when it ended, in milliseconds since 1970; 0 while it runs.
        placed: the positions where a discard has put messages, see `harebell.model.placed`.
    """

    def __init__(self, number: int, orders: Orders, started: int) -> None:
        self.number = number
        self.orders = orders
        self.started = started
        self.state = RUNNING
        self.messages = self.examined = self.selected = self.done = self.left = self.ended = 0
        self.problem = ""
        # Where it is, for its record; and the position of its last record.
        self.cursors: list[int] = []
        self.ends: dict[int, int] = {}
        self.source = self.target = self.who = ""
        self.placed: list[list[int]] = []
        self.position = -1

    def row(self) -> dict[str, Any]:
        """Return the members that commands show."""
        orders = self.orders._asdict()
        return {"id": self.number, **orders, **{name: getattr(self, name) for name in _SHOWN}}

    def encode(self) -> bytes:
        """Return its record."""
        import msgspec

        ends = {str(level): end for level, end in self.ends.items()}
        kept = {"cursors": self.cursors, "ends": ends, "placed": self.placed}
        return msgspec.json.encode({**self.row(), **kept, **{n: getattr(self, n) for n in _BOUND}})


def decode(data: bytes) -> Job | None:
    """Return the job of a record; None for other bytes."""
    import msgspec

    try:
        row = msgspec.json.decode(data, type=dict[str, Any])
        orders = Orders(**{name: row[name] for name in Orders._fields if name in row})
        job = Job(int(row["id"]), orders, int(row["started"]))
        for name in _STATE:
            setattr(job, name, row[name])
        for name in _BOUND:
            setattr(job, name, str(row.get(name, "")))
        job.ended = int(row["ended"])
        job.cursors = [int(each) for each in row["cursors"]]
        job.placed = [[int(at) for at in each] for each in row.get("placed", ())]
        job.ends = {int(level): int(end) for level, end in row["ends"].items()}
    except (msgspec.MsgspecError, KeyError, TypeError, ValueError, AttributeError):
        return None
    return job


class Jobs:
    """The jobs of a broker.

    Args:
        store: has the log of the jobs and the group commit.
        timers: the timers of the broker.
        vhosts: its vhosts by name.
        editor: reads and changes messages.
        awaiting: what waits for the next commit; shared by the broker.

    Attributes:
        rights_of: returns the rights of the user of a job that goes on after a restart.
    """

    def __init__(
        self,
        store: Store,
        timers: Timers,
        vhosts: Mapping[str, VHost],
        editor: Editor,
        awaiting: list[Any],
    ) -> None:
        self.commit = store.commit
        self.clock = timers.clock
        self.work = timers.work
        self.failures = timers.failures
        self.vhosts = vhosts
        self.editor = editor
        self.awaiting = awaiting
        self._store = store
        self._kept: Log | None = None
        self._jobs: dict[int, Job] = {}
        self._runs: dict[int, Run] = {}
        self._timer = timers.timer(self._go_on)
        self._waiting: list[Run] = []
        self._waking = timers.timer(self._wake)
        self._shares = Shares(
            "running jobs", JOBS_RUNNING, "wait until one has ended, or cancel one"
        )
        # Fair: one user with many jobs must not push out the ended jobs of others.
        self._ended: FairCache[int, Job] = FairCache(JOBS_KEPT)
        self._last = 0
        self.rights_of: Callable[[Orders], Rights] = lambda _: AllRights()
        self._first = self._step = 1

    def number_by(self, first: int, step: int) -> None:
        """Give new jobs the numbers first, first + step, and so on, after those that were given.

        So the numbers of brokers that share out the numbers up to `step` differ.
        """
        self._first, self._step = first, step

    def _next_number(self) -> int:
        number = self._last + 1
        return number + (self._first - number) % self._step

    def all(self) -> list[Job]:
        """Return the jobs that run or ended not long ago, the oldest first."""
        return list(self._jobs.values())

    def find(self, number: int) -> Job | None:
        """Return a job; None if there is none of that number."""
        return self._jobs.get(number)

    def start(self, orders: Orders, rights: Rights | None = None) -> Job:
        """Start a job; it is on disk with the gathering commit.

        Args:
            orders: the verb, the filter and the destination.
            rights: those of its user; None for those that `rights_of` finds.

        Raises:
            FilterError: the filter is invalid.
            Refusal: the queue or exchange does not exist or allows no such job, or too many run.
        """
        self._shares.check(
            orders.user, cannot="the job cannot start", kind=ErrorKind.RESOURCE_LOCKED
        )
        job = Job(self._next_number(), orders, self.clock.ms)
        # Imported with the first job, as all that a filter needs.
        from harebell.model.job_run import Run

        run = Run(self, job, rights or self.rights_of(orders))
        # Before it is registered: a job that cannot be stored does not begin.
        self.write(job)
        self._last = job.number
        self._jobs[job.number] = job
        self._runs[job.number] = run
        self._shares.add(orders.user)
        self.commit.urgent = True
        self.work.later(run.step)
        return job

    def cancel(self, job: Job) -> None:
        """End a job; messages that it has handled stay handled."""
        if job.state != RUNNING:
            return
        job.state, job.ended = CANCELLED, self.clock.ms
        # If that cannot be stored the job goes on: a restart would let it go on, too.
        try:
            self.write(job)
        except HarebellError:
            job.state, job.ended = RUNNING, 0
            raise
        self._over(job)

    def restore(self) -> None:
        """Read the records, and let the jobs go on that were running."""
        log = self._log()
        position = log.first()
        while position < log.end():
            record = log.read(position)
            job = None if record is None else decode(record.body)
            if job is None:
                log.settle(position)
            else:
                before = self._jobs.pop(job.number, None)
                # A crash between the two changes of `write` leaves both records: the later one
                # counts.
                if before is not None:
                    log.settle(before.position)
                job.position = position
                self._jobs[job.number] = job
                self._last = max(self._last, job.number)
            position = log.next(position + 1)
        for job in list(self._jobs.values()):
            if job.state != RUNNING:
                self._keep(job)
        if any(job.state == RUNNING for job in self._jobs.values()):
            # Not now: the queues may not be configured yet.
            self._timer.set_earlier(self.clock.steady)

    def _go_on(self) -> None:
        from harebell.model.job_run import Run

        for job in list(self._jobs.values()):
            if job.state != RUNNING or job.number in self._runs:
                continue
            try:
                run = self._runs[job.number] = Run(self, job, self.rights_of(job.orders))
            except (HarebellError, Refusal) as error:
                # Its queue or its exchange may be gone since the start before: other jobs go on.
                self.end(job, FAILED, str(error))
                continue
            self._shares.add(job.orders.user)
            self.work.later(run.step)

    def wait(self, run: Run) -> None:
        """Have a job go on some time later."""
        self._waiting.append(run)
        self._waking.set_earlier(self.clock.steady + JOB_WAIT_MS)

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for run in waiting:
            self.work.later(run.step)

    def end(self, job: Job, state: str, problem: str = "") -> None:
        """End a job, and store that."""
        job.state = state
        job.problem = problem or job.problem
        job.ended = self.clock.ms
        self.write(job)
        self._over(job)

    def _over(self, job: Job) -> None:
        """Forget how a job that has ended was run."""
        if self._runs.pop(job.number, None) is not None:
            self._shares.remove(job.orders.user)
        self.commit.urgent = True
        self._keep(job)

    def write(self, job: Job) -> None:
        """Store where a job is, as part of the gathering commit."""
        log, before = self._log(), job.position
        # Appended first: if the new record cannot be made, the old one stays.
        job.position = log.append(Message("", "", _RECORD, job.encode()))
        if before >= 0:
            log.settle(before)

    def _keep(self, job: Job) -> None:
        """Keep an ended job for a while; forget one of the user who has most of them."""
        for gone in self._ended.put(job.orders.user, job.number, job):
            del self._jobs[gone.number]
            self._log().settle(gone.position)

    def _log(self) -> Log:
        if self._kept is None:
            self._kept = self._store.open_log(JOB_LOG, durable=True, keep_all=True)
        return self._kept
