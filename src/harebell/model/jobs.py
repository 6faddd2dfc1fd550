"""Jobs: messages that a filter selects are moved, copied, removed or retried, in slices.

    move      publish to an exchange, and remove from the queue
    copy      publish only
    remove    remove only
    retry     move dead letters to the queue where they first died, without the dead-letter headers

A job goes through the messages that are ready when it begins, without taking them: consumers go on
meanwhile, and what they take first is not the job's. A slice is some messages, and is part of one
commit of the store as a whole: its publishes, its removals, and the record of the job, which says
how far it is. A crash keeps all of them or none, so a job that goes on after a restart neither
loses nor doubles a persistent message between durable queues.

A message that no queue would take is left where it is.

    a record in the log of the jobs: JSON, the members of `Job.row` and

    cursors   for each level of the queue, the position to go on from
    ends      for each level, the position to stop at

A later record of a job replaces the earlier one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from harebell.base.errors import ErrorKind, HarebellError, Refusal
from harebell.base.limits import (
    BROWSE_MESSAGE_UNITS,
    JOB_ACT_UNITS,
    JOB_AHEAD_BYTES,
    JOB_SLICE_UNITS,
    JOBS_KEPT,
    JOBS_RUNNING,
    WORK_SLICE_UNITS,
)
from harebell.base.message import FAMILY_FILE, PERSISTENT, Message, Properties, copy_message
from harebell.base.ports import JOB_LOG, Log, Store
from harebell.base.timers import Timers
from harebell.model.editor import Editor
from harebell.model.filter import Filter, FilterError, Subject, compile_filter
from harebell.model.queue.browse import BrowseCursor, Browsed, Start
from harebell.model.queue.contract import Queue
from harebell.model.vhost import VHost

MOVE = "move"
COPY = "copy"
REMOVE = "remove"
RETRY = "retry"

RUNNING = "running"
DONE = "done"
CANCELLED = "cancelled"
FAILED = "failed"

FIRST_QUEUE = "x-first-death-queue"
RETRIES = "x-retries"
RETRIED_FROM = "x-retried-from"
_DEATHS = ("x-death", "x-first-death-", "x-last-death-")
_RECORD = Properties(b"", delivery_mode=PERSISTENT)


class Orders(NamedTuple):
    """What a job has to do.

    Args:
        verb: MOVE, COPY, REMOVE or RETRY.
        vhost: the name of the vhost.
        queue: the name of the queue.
        where: the filter; "" for all messages.
        exchange: where the messages are published; "" with a routing key is a queue.
        routing_key: their new routing key; None keeps theirs.
        user: the name of the user who has started it; "" for the control socket.
    """

    verb: str
    vhost: str
    queue: str
    where: str = ""
    exchange: str = ""
    routing_key: str | None = None
    user: str = ""


class Job:
    """One job.

    Args:
        number: what commands name it by.
        orders: what it has to do.
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
        self.position = -1

    def row(self) -> dict[str, Any]:
        """Return what there is to say about it."""
        orders = self.orders
        return {
            "id": self.number,
            "verb": orders.verb,
            "vhost": orders.vhost,
            "queue": orders.queue,
            "where": orders.where,
            "exchange": orders.exchange,
            "routing_key": orders.routing_key,
            "user": orders.user,
            "state": self.state,
            "messages": self.messages,
            "examined": self.examined,
            "selected": self.selected,
            "done": self.done,
            "left": self.left,
            "problem": self.problem,
            "started": self.started,
            "ended": self.ended,
        }

    def encode(self) -> bytes:
        """Return its record."""
        import msgspec

        ends = {str(level): end for level, end in self.ends.items()}
        return msgspec.json.encode({**self.row(), "cursors": self.cursors, "ends": ends})


def decode(data: bytes) -> Job | None:
    """Return the job of a record; None for other bytes."""
    import msgspec

    try:
        row = msgspec.json.decode(data, type=dict[str, Any])
        orders = Orders(*(row[name] for name in Orders._fields))
        job = Job(int(row["id"]), orders, int(row["started"]))
        for name in ("state", "messages", "examined", "selected", "done", "left", "problem"):
            setattr(job, name, row[name])
        job.ended = int(row["ended"])
        job.cursors = [int(each) for each in row["cursors"]]
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
        self.vhosts = vhosts
        self.editor = editor
        self.awaiting = awaiting
        self._store = store
        self._kept: Log | None = None
        self._jobs: dict[int, Job] = {}
        self._runs: dict[int, _Run] = {}
        self._timer = timers.timer(self._go_on)
        self._last = 0
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

    def start(self, orders: Orders) -> Job:
        """Start a job; it is on disk with the gathering commit.

        Raises:
            FilterError: the filter is invalid.
            Refusal: the queue or exchange does not exist or allows no such job, or too many run.
        """
        if len(self._runs) >= JOBS_RUNNING:
            raise Refusal(
                ErrorKind.RESOURCE_LOCKED,
                f"{JOBS_RUNNING} jobs are running: wait until one has ended, or cancel one",
            )
        job = Job(self._next_number(), orders, self.clock.ms)
        run = _Run(self, job)
        self._last = job.number
        self._jobs[job.number] = job
        self._runs[job.number] = run
        self.write(job)
        self.commit.urgent = True
        self._forget_old()
        self.work.later(run.step)
        return job

    def cancel(self, job: Job) -> None:
        """End a job; what it has done stays done."""
        if job.state == RUNNING:
            self.end(job, CANCELLED)

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
                if before is not None:
                    log.settle(before.position)
                job.position = position
                self._jobs[job.number] = job
                self._last = max(self._last, job.number)
            position = log.next(position + 1)
        if any(job.state == RUNNING for job in self._jobs.values()):
            # Not now: the queues may not be configured yet.
            self._timer.set_earlier(self.clock.steady)

    def _go_on(self) -> None:
        for job in list(self._jobs.values()):
            if job.state != RUNNING or job.number in self._runs:
                continue
            try:
                run = self._runs[job.number] = _Run(self, job)
            except (HarebellError, Refusal) as error:
                self.end(job, FAILED, str(error))
                continue
            self.work.later(run.step)

    def end(self, job: Job, state: str, problem: str = "") -> None:
        """End a job, and store that."""
        job.state = state
        job.problem = problem or job.problem
        job.ended = self.clock.ms
        self._runs.pop(job.number, None)
        self.write(job)
        self.commit.urgent = True

    def write(self, job: Job) -> None:
        """Store where a job is, as part of the gathering commit."""
        log, before = self._log(), job.position
        job.position = log.append(Message("", "", _RECORD, job.encode()))
        if before >= 0:
            log.settle(before)

    def _forget_old(self) -> None:
        ended = [job for job in self._jobs.values() if job.state != RUNNING]
        for job in ended[: max(len(ended) - JOBS_KEPT, 0)]:
            del self._jobs[job.number]
            self._log().settle(job.position)

    def _log(self) -> Log:
        if self._kept is None:
            self._kept = self._store.open_log(JOB_LOG, durable=True, keep_all=True)
        return self._kept


class _Run:
    """A job that is running.

    Args:
        jobs: the jobs of the broker.
        job: what is to be done, and how far it is.

    Raises:
        FilterError: its filter is invalid.
        Refusal: its queue or exchange does not exist, or allows no such job.
    """

    def __init__(self, jobs: Jobs, job: Job) -> None:
        self._jobs = jobs
        self._job = job
        orders = job.orders
        vhost = jobs.vhosts.get(orders.vhost)
        if vhost is None:
            raise Refusal(ErrorKind.NOT_FOUND, f"no vhost '{orders.vhost}'")
        self._vhost = vhost
        self._queue = vhost.queue(orders.queue, self._owner_of(orders.queue))
        if orders.verb != COPY:
            self._queue.check_withdraw()
        self._check_target()
        self._filter: Filter | None = compile_filter(orders.where) if orders.where else None
        self._subject = Subject(jobs.editor)
        self._cursor: BrowseCursor = self._queue.browse(Start())
        if job.ends:
            self._cursor.go_to(job.cursors, job.ends)
        else:
            job.messages = self._queue.ready_count()
            job.ends = dict(self._cursor.ends)
        self._ahead = 0
        self._ticket = 0
        # Whether a large message is being read, or was read and is the next to look at.
        self._fetching = self._fetched = False

    def _arrived(self) -> None:
        self._fetching = False
        self._fetched = True

    def _check_target(self) -> None:
        orders = self._job.orders
        if orders.verb not in (MOVE, COPY):
            return
        exchange = self._vhost.exchange(orders.exchange)
        if exchange.internal or exchange.KEEPS:
            raise Refusal(
                ErrorKind.PRECONDITION_FAILED,
                f"exchange '{orders.exchange}' of type {exchange.KIND} takes no messages of a job: "
                "name another one",
            )
        if exchange.default and orders.routing_key is not None:
            self._vhost.queue(orders.routing_key, self._owner_of(orders.routing_key))
            if orders.routing_key == orders.queue:
                raise Refusal(
                    ErrorKind.PRECONDITION_FAILED,
                    f"queue '{orders.queue}' is both where the messages are and where they go: "
                    "name another one",
                )

    def _owner_of(self, name: str) -> object:
        queue = self._vhost.queues.get(name)
        return None if queue is None else queue.owner

    # --- slices ---------------------------------------------------------------------------------

    def step(self) -> bool:
        """Do slices until the work budget of this turn is used up; True when nothing is left."""
        jobs, job = self._jobs, self._job
        while job.state == RUNNING:
            if self._ticket > jobs.commit.done and self._ahead >= JOB_AHEAD_BYTES:
                jobs.commit.urgent = True
                jobs.awaiting.append(self)
                return True
            try:
                spent = self._slice()
            except (FilterError, Refusal) as error:
                jobs.end(job, FAILED, str(error))
                break
            if jobs.work.charge(spent):
                return job.state != RUNNING
        return True

    def committed(self) -> None:
        """Go on after a commit."""
        if self._ticket > self._jobs.commit.done:
            self._jobs.commit.urgent = True
            self._jobs.awaiting.append(self)
            return
        self._ahead = 0
        self._jobs.work.later(self.step)

    def _slice(self) -> int:
        """Look at some messages, and do what is to be done with them; return the work units."""
        jobs, job, queue = self._jobs, self._job, self._queue
        if queue.deleted:
            jobs.end(job, FAILED, f"queue '{queue.name}' was deleted")
            return 1
        units, acted = 0, job.done
        touched: dict[Queue, None] = {}
        ended = False
        while units < JOB_SLICE_UNITS:
            if not (self._fetching or self._fetched) and self._cursor.next() < 0:
                ended = True
                break
            if self._fetching or (not self._fetched and self._cursor.far(self._arrived)):
                # A large message is read in slices.
                self._fetching = not self._fetched
                units += WORK_SLICE_UNITS
                break
            self._fetched = False
            units += BROWSE_MESSAGE_UNITS + self._look(touched)
        if job.done != acted:
            job.cursors = list(self._cursor.cursors)
            jobs.commit.urgent = True
            jobs.write(job)
            self._ticket = jobs.commit.ticket
            queue.sync_soon()
            for each in touched:
                each.drain()
        if ended and job.state == RUNNING:
            jobs.end(job, DONE)
        return units

    def _look(self, touched: dict[Queue, None]) -> int:
        """Look at one message; return the work units."""
        job = self._job
        browsed = self._cursor.read()
        job.examined += 1
        if browsed is None:
            return 0
        message = browsed.message
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
        problem = self._act(browsed, touched)
        if problem:
            job.left += 1
            job.problem = job.problem or problem
        return units + JOB_ACT_UNITS

    def _act(self, browsed: Browsed, touched: dict[Queue, None]) -> str:
        """Do what is to be done with a message; return why it is left where it is, or ""."""
        verb = self._job.orders.verb
        message = browsed.message
        queues: tuple[Queue, ...] = ()
        if verb != REMOVE:
            prepared = self._prepared(message)
            if isinstance(prepared, str):
                return prepared
            message = prepared
            found = self._targets(message)
            if isinstance(found, str):
                return found
            queues = found
        # Before the first change: otherwise a log may write it early, without the rest.
        self._jobs.commit.joint = True
        if verb != COPY and not self._queue.withdraw(browsed.position, browsed.message):
            self._job.selected -= 1
            return ""
        for queue in queues:
            queue.publish(message)
            queue.sync_soon()
            touched[queue] = None
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
        for queue in queues:
            if queue.refuses and not queue.takes(len(message.body)):
                return f"queue '{queue.name}' is full"
        return queues

    def _prepared(self, message: Message) -> Message | str:
        """Return the message to publish, or why there is none."""
        orders = self._job.orders
        if orders.verb == RETRY:
            return self._retried(message)
        key = message.routing_key if orders.routing_key is None else orders.routing_key
        return self._fresh(copy_message(message, orders.exchange, key))

    def _retried(self, message: Message) -> Message | str:
        headers = self._jobs.editor.headers_of(message) if message.has_headers else {}
        origin = headers.get(FIRST_QUEUE)
        if not isinstance(origin, str) or not origin:
            return f"a message does not say which queue it died in (header {FIRST_QUEUE})"
        if origin == self._queue.name:
            return f"a message died in queue '{origin}', which it is in"
        changes: dict[str, Any] = {name: None for name in headers if name.startswith(_DEATHS)}
        before = headers.get(RETRIES)
        changes[RETRIES] = before + 1 if type(before) is int and before >= 0 else 1
        changes[RETRIED_FROM] = self._queue.name
        edited = self._jobs.editor.with_headers(message, changes)
        return self._fresh(copy_message(edited, "", origin))

    def _fresh(self, message: Message) -> Message:
        """Return a copy as if it had just been published: its time to live begins again."""
        message.timestamp = 0
        message.offset = -1
        message.origin = 0
        message.deliveries = 0
        message.due = 0
        if message.family < FAMILY_FILE:
            ttl = self._jobs.editor.expiration_of(message)
            if ttl is not None and ttl.isascii() and ttl.isdigit():
                message.due = self._jobs.clock.steady + int(ttl)
        return message
