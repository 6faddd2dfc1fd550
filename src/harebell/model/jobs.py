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

A message is left where it is unless every queue that it is routed to would take it: one that only
some have taken could neither stay, since a second job would double it, nor go. A queue takes no
message that it would drop as a duplicate, refuse, drop for its size, or expire at once
(`rehearsal.refusal`).

    a record in the log of the jobs: JSON, the members of `Job.row` and

    cursors   for each level of the queue, the position to go on from
    ends      for each level, the position to stop at
    source    the identity of the queue
    target    the identity of the queue where the messages go; "" if an exchange routes them
    who       a text that differs for another user of the same name

A later record of a job replaces the earlier one. A job is for the queues and the user that were
there when it began: it ends, and does not go on with others that have got their names since.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

from harebell.base.errors import ErrorKind, HarebellError, Refusal
from harebell.base.failures import described
from harebell.base.message import (
    FAMILY_FILE,
    FAMILY_STREAM,
    PERSISTENT,
    Message,
    Properties,
    copy_message,
)
from harebell.base.ports import JOB_LOG, Log, Store
from harebell.base.share import FairCache, Shares
from harebell.base.timers import Timers
from harebell.model.editor import Editor
from harebell.model.expiration import lifetime_ms
from harebell.model.filter import Filter, FilterError, Subject, compile_filter
from harebell.model.limits import (
    BROWSE_MESSAGE_UNITS,
    JOB_ACT_UNITS,
    JOB_AHEAD_BYTES,
    JOB_SLICE_UNITS,
    JOB_WAIT_MS,
    JOBS_KEPT,
    JOBS_RUNNING,
    WORK_SLICE_UNITS,
)
from harebell.model.queue.browse import BrowseCursor, Browsed, Start
from harebell.model.queue.contract import Queue
from harebell.model.rehearsal import refusal
from harebell.model.reserved import check_length
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
_RETRIES_MAX = 2**63 - 1
"""The numbers that a header can carry: publishers may have written any number."""
_DEATHS = ("x-death", "x-first-death-", "x-last-death-")
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
        self.position = -1

    def row(self) -> dict[str, Any]:
        """Return the members that commands show."""
        orders = self.orders._asdict()
        return {"id": self.number, **orders, **{name: getattr(self, name) for name in _SHOWN}}

    def encode(self) -> bytes:
        """Return its record."""
        import msgspec

        ends = {str(level): end for level, end in self.ends.items()}
        kept = {"cursors": self.cursors, "ends": ends}
        return msgspec.json.encode({**self.row(), **kept, **{n: getattr(self, n) for n in _BOUND}})


def decode(data: bytes) -> Job | None:
    """Return the job of a record; None for other bytes."""
    import msgspec

    try:
        row = msgspec.json.decode(data, type=dict[str, Any])
        orders = Orders(*(row[name] for name in Orders._fields))
        job = Job(int(row["id"]), orders, int(row["started"]))
        for name in _STATE:
            setattr(job, name, row[name])
        for name in _BOUND:
            setattr(job, name, str(row.get(name, "")))
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
        self._runs: dict[int, _Run] = {}
        self._timer = timers.timer(self._go_on)
        self._waiting: list[_Run] = []
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
        run = _Run(self, job, rights or self.rights_of(orders))
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
        for job in list(self._jobs.values()):
            if job.state != RUNNING or job.number in self._runs:
                continue
            try:
                run = self._runs[job.number] = _Run(self, job, self.rights_of(job.orders))
            except (HarebellError, Refusal) as error:
                # Its queue or its exchange may be gone since the start before: other jobs go on.
                self.end(job, FAILED, str(error))
                continue
            self._shares.add(job.orders.user)
            self.work.later(run.step)

    def wait(self, run: _Run) -> None:
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


class _Run:
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
        if orders.verb not in (MOVE, COPY):
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
            return target
        return None

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
            jobs.write(job)
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
        queues: tuple[Queue, ...] = ()
        if verb != REMOVE:
            prepared = self._prepared(message)
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
        return problem or queues

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
        # The header may be a publisher's: not `isinstance`, for which True is a number.
        counted = before if type(before) is int and before >= 0 else 0
        changes[RETRIES] = min(counted + 1, _RETRIES_MAX)
        changes[RETRIED_FROM] = self._queue.name
        edited = self._jobs.editor.with_headers(message, changes)
        return self._fresh(copy_message(edited, "", origin))

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


def _other(name: str) -> Refusal:
    text = f"queue '{name}' was deleted and declared again since the job began: start another one"
    return Refusal(ErrorKind.PRECONDITION_FAILED, text)
