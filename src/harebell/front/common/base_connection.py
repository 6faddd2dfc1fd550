"""What the connections of all versions share; the server and the registry use only this.

The server calls `receive` with input, `tick` regularly and `take_output` once per turn, and looks
at `closing`, `paused` and `held_back`. A connection never blocks, and has no socket.

    receive            bytes to the scanner, which calls the methods of the version
    go_on              continues in another turn: long operations, then input
    perform            a long operation in slices; later input waits for its end
    _write_collected   writes what was collected in the turn: confirms, completions
    relieved           the output has space again: channels continue

    Arrival           until the protocol header              harebell.front.arrival
    Connection        0-8, 0-9, 0-9-1, transitional 0-10       harebell.front.amqp_0_9_1.connection
    Connection        final 0-10                               harebell.front.amqp_0_10.connection

The connection of the version in the header replaces the arrival.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from harebell.auth.users import User, Users
from harebell.base.arrivals import Arrivals
from harebell.base.body_frames import BodyFrames, encoded
from harebell.base.c_types import C, Cpdef, Done, Py, i32, i64, isize
from harebell.base.counters import BY_HEARTBEAT, BY_LOSS, Traffic
from harebell.base.ports import Commit
from harebell.base.work import Step, Work
from harebell.front import limits
from harebell.front.common.connection_log import log_ended
from harebell.front.common.connection_ports import Scanner, Transport
from harebell.front.common.connection_registry import ConnectionRegistry
from harebell.front.common.output_barrier import OutputBarrier
from harebell.front.common.pace import Pace
from harebell.front.common.peer import Peer
from harebell.front.common.settings import Settings
from harebell.front.common.turns import Account, Turns
from harebell.kernels.frames import FrameSink
from harebell.kernels.output import OutBuffer
from harebell.model.broker import Broker
from harebell.model.limits import AHEAD_MESSAGES
from harebell.wire.v09.states import ConnectionState

if TYPE_CHECKING:
    from harebell.model.queue.contract import Queue
    from harebell.model.vhost import VHost

_NO_USER = User("", "")
_ARRIVALS = "arrivals"
_OUTPUT_STOP = limits.OUTPUT_STOP_BYTES
_MS = 1_000
_NEVER = float("inf")
_HEARTBEAT_BYTES: i64 = limits.HEARTBEAT_BYTES
_HEADER, _OPEN = ConnectionState.HEADER, ConnectionState.OPEN
_CLOSED = ConnectionState.CLOSED


class BaseConnection(FrameSink):
    """The server's side of one connection; versions derive from it.

    Args:
        broker: the broker it serves.
        users: the users and their passwords.
        registry: the registry of the broker's connections.
        settings: limits and texts.
        peer: the addresses of the socket, and what TLS found out.
        now: the time it was accepted, in seconds.
        version: the version of AMQP: "0-8", "0-9", "0-9-1", "0-10", "0-10t"; "" before the header.

    Attributes:
        arrivals: the counters of messages that are published with its version.
        account: the work budget: of the address, and after the login of the user.
        state: see `harebell.wire.v09.states`; HEADER, OPEN, CLOSING and CLOSED are the same in all
            versions.
        commit: the commit of the broker's store that collects changes now.
        held: the output that waits for commits; None if there is none.
        channels: the open channels or sessions, by number.
        closing: no more input is processed. See `finished`.
        paused: the server must not read from the socket.
        congested: the socket does not accept output.
        blocked_since: the time it was blocked, in milliseconds of the monotonic clock.
        blocked_ms: how long it was blocked before, in milliseconds.
        outruns: whether its publishes keep consumers from what they could take: the shell reads it
            more slowly.
        ahead_of: within a turn, the queue whose consumers its publishes outrun; None without one.
        slowed: whether the scanner passes on frames to the end of this read, as memory is short.
        starved: whether a consumer was not served because the output is full.
        dirty: whether it is in the registry's dirty list.
        active: whether it is in the registry's set of active connections.
        place: its place among the times at which connections are looked at; -1 for none.
        now: when input was received last.
        kept: memory of its consumers in bytes, those that have ended since the last count included.
        deadline: when to close the socket unless the handshake continues; 0 for never.
        mechanism: the SASL mechanism of the login.
        announced: connection.created was sent to the event exchange, and connection.closed not yet.
        handed_over: the vhost for which another broker serves the client from now on; "" for none.
        entropy: the random bytes of the challenge in its login; empty without one.
        traffic: bytes in and out; those of all ended connections when it has ended.
        origin: the number of the connection, unique in the process.
        intercepts: whether headers or properties are added to published messages.
        shared: the limits of the classes file and stream that channels share; None at first.
        transport: the socket; None in tests without a server.
        scanner: splits the input into frames; a version sets it.
        deferred: whether it waits for another turn.
        departed: whether the peer has left while the connection waits for another turn.
        deciding: whether input waits for a decision about a permission.
        tasks: the long operations in progress, in order.
    """

    def __init__(
        self,
        broker: Broker,
        users: Users,
        registry: ConnectionRegistry,
        settings: Settings,
        peer: Peer,
        now: float,
        version: str = "",
    ) -> None:
        self.broker = broker
        self.commit: Commit = broker.commit
        self.users = users
        self.registry = registry
        self.settings = settings
        self.peer = peer
        self.version = version
        self.out = OutBuffer()
        self.out.postpones = True
        self.state = _HEADER
        self.vhost: VHost | None = None
        self.user = _NO_USER
        self.client_properties: Mapping[str, Any] = {}
        self.capabilities: Py[set[str]] = set()
        self.mechanism = ""
        self.announced = False
        self.handed_over = ""
        self.entropy = b""
        # Any: each version has its own channels. Shared code uses them as `AnyChannel`.
        self.channels: dict[int, Any] = {}
        self.channel_max: i32 = settings.channel_max
        self.frame_max: isize = settings.frame_max
        self.message_max: isize = settings.message_max
        self.heartbeat: i32 = 0
        self.closing = False
        self.paused = False
        self.congested = False
        self.outruns = False
        self.ahead_of: Queue | None = None
        self.slowed = False
        self._pace: Pace | None = None
        self.starved = False
        self.dirty = False
        self.active = False
        self.place: isize = -1
        self.published = False
        self.intercepts: bool = settings.stamp_time is not None or settings.stamp_node is not None
        self.stamps: bool = settings.stamp_sent
        self.shared: object = None
        self.blocked = False
        self.blocked_since: i64 = 0
        self.blocked_ms: i64 = 0
        self.connected_at = now
        self.now = now
        self._sent_at = now
        self._beats = False
        self.deadline: float = now + settings.handshake_timeout
        self.kept: i64 = 0
        self.end_reason: str = BY_LOSS
        self.transport: Transport | None = None
        self.held: OutputBarrier | None = None
        self.origin: i64 = 0
        self.traffic = Traffic()
        self.arrivals: Arrivals = registry.arrivals_of(version)
        self.account: Account = self._first_account()
        # The connection of a version sets it before any input.
        self.scanner = cast(Scanner, None)
        self.deferred = False
        self.departed = False
        self.deciding = False
        # A list, as one without entries takes a tenth of the memory of a deque, and few have many.
        self.tasks: list[Step] = []

    def _first_account(self) -> Account:
        """Return the work budget until the login: that of the address, or of all arrivals."""
        turns = self.registry.turns
        if self.version:
            return turns.account(f"address {self.peer.address}")
        # Peers whose version is not known yet may come from any number of addresses.
        pending = self.registry.pending_logins
        if pending.account is None:
            pending.account = turns.account(_ARRIVALS)
        return pending.account

    # --- implemented by each version ------------------------------------------------------------

    def begin(self) -> None:
        """Answer the protocol header."""
        raise NotImplementedError

    def force_close(self, reason: str, now: float) -> None:
        """Close the connection from the broker's side, for example because it stops."""
        raise NotImplementedError

    def release(self) -> None:
        """Release everything that the peer held: channels, consumers, exclusive queues."""

    def log_loss(self) -> None:
        """Log what a lost peer left unfinished."""

    def has_begun(self) -> bool:
        """True if a message is received in part, or publishes wait for their commit."""
        return False

    def send_blocked(self, blocked: bool) -> None:
        """Send connection.blocked or unblocked to a client that supports them."""

    def let_finish(self, allowed: bool) -> None:
        """Read on while blocked, to complete a message or transaction, or read no more."""
        self.paused = self.blocked and not allowed

    def unread_bytes(self) -> int:
        """Return the bytes of messages in part that the connection can give up."""
        return 0

    def give_up(self, text: str) -> None:
        """Drop messages that are received in part, and tell the client."""

    def caught(self, error: Exception) -> None:
        """Close a channel or the connection because of an error."""
        raise NotImplementedError

    def beat(self) -> None:
        """Write a heartbeat, ahead of output that waits for a commit."""
        raise NotImplementedError

    def _only_heartbeat(self, data: bytes | memoryview) -> C[bool]:
        """Return whether input is a heartbeat that needs no other look."""
        return False

    def _write_collected(self) -> None:
        """Write what was collected in this turn: confirms, completions."""

    # --- the shell's side -----------------------------------------------------------------------

    def receive(self, data: bytes | memoryview, now: float) -> C[None]:
        """Process input, or queue it when the user has spent its budget of this turn."""
        self.now = now
        byte_count: isize = len(data)
        if byte_count:
            self.traffic.recv_oct += byte_count
            self.traffic.recv_cnt += 1
        if self.closing:
            return
        turns: Turns = self.registry.turns
        if self.deferred or not turns.begin(self.account):
            self._keep(data)
            return
        try:
            if self._only_heartbeat(data):
                # Thousands of idle clients send nothing else.
                turns.work.frame()
            else:
                self.stir()
                self._take(data)
        finally:
            turns.end()

    def stir(self) -> Done:
        """Note that the connection does more than to send and receive heartbeats."""
        if not self.active and not self.closing:
            self.active = True
            self.registry.active.add(self)
        return 0

    def rests(self) -> bool:
        """Return whether nothing changes in the connection until it is stirred."""
        return not (
            self.state is not _OPEN
            or self.congested
            or self.deferred
            or self.tasks
            or self.out.size
            or self.held is not None
        )

    def put_by(self, data: bytes) -> None:
        """Queue input that came with the protocol header, in a turn that another has begun."""
        self.traffic.recv_oct += len(data)
        self.traffic.recv_cnt += 1
        if not self.closing:
            self._keep(data)

    def _keep(self, data: bytes | memoryview) -> None:
        """Queue input for another turn."""
        # A scanner that holds keeps what it is fed, without scanning it.
        self.stir()
        self.scanner.hold = True
        self.scanner.feed(data)
        self._put_off()

    def _take(self, data: bytes | memoryview) -> Cpdef[Done]:
        """Process input within the budget of the turn."""
        work: Work = self.registry.turns.work
        work.ahead = None
        self.broker.events.source = self
        scanner, registry = self.scanner, self.registry
        if scanner.fast and not self.blocked and (registry.gauge.over or registry.publishers.short):
            self._slow_down()
        try:
            self.scanner.feed(data)
        except Exception as error:
            # The frames are malformed: later input cannot be parsed.
            self.caught(error)
            self.scanner.stopped = True
        if self.slowed:
            self.slowed = False
            scanner.fast = self.state is _OPEN and not self.closing
        self.outruns = False
        if work.ahead is not None:
            self._outruns(work.ahead)
            work.ahead = None
        self._end_of_turn()
        self.ahead_of = None
        if self.scanner.cut:
            self.scanner.cut = False
            self._put_off()
        return 0

    def scan_whole(self) -> None:
        """Have the scanner pass on whole messages: the connection is open."""
        self.scanner.fast = True
        if self.registry.publishers.short_of():
            # What came together with the login may begin to publish.
            self._slow_down()

    def _slow_down(self) -> Done:
        """Scan the rest of a read frame by frame: what begins in it waits (`begins_publish`)."""
        self.scanner.fast = False
        self.slowed = True
        return 0

    def begins_publish(self) -> None:
        """Read no further behind the method of a publish while memory or disk is short."""
        if not self.blocked and self.registry.publishers.short_of():
            # The end of the turn blocks the connection; as in RabbitMQ its message waits for that.
            self.published = self.scanner.hold = True

    def _outruns(self, queue: Queue) -> None:
        """Note that more was published to a queue than its consumers took."""
        if self._pace is None:
            self._pace = Pace()
        if self._pace.outruns(queue):
            self.ahead_of = queue
            self.outruns = queue.ready_count() > AHEAD_MESSAGES

    def _put_off(self) -> Cpdef[Done]:
        """Queue the connection for another turn."""
        if not self.deferred:
            self.deferred = True
            self.registry.turns.wait(self.account, self)
        return 0

    def go_on(self) -> None:
        """Continue in another turn: long operations first, then the later input."""
        self.deferred = False
        tasks = self.tasks
        if tasks:
            self.broker.events.source = self
        while tasks:
            # The operation stays in the list while it works: input that it causes finds it there
            # and queues up behind it.
            if not self._step(tasks[0]):
                # Without effect after `suspend`: then `wake` queues the connection.
                self._put_off()
                return
            tasks.pop(0)
        if self.closing or not self.scanner.hold:
            pass
        # A peer that has left takes no output, so the length of it holds no input back: `eof`
        # follows the last input.
        elif self.departed or not (self.paused or self.congested or self.out.size > _OUTPUT_STOP):
            self.scanner.hold = False
            self._take(b"")
        if self.starved and not self.congested:
            self.relieve()
        if self.departed and not self.deferred:
            self.eof()
        self.touch()

    def _step(self, step: Step) -> bool:
        """Do a slice of a long operation; an exception ends it."""
        try:
            return step()
        except Exception as error:
            self.caught(error)
            return True

    def perform(self, step: Step) -> None:
        """Do a long operation in slices; input waits until it is done.

        The operation continues after the end of the connection.

        Args:
            step: does a slice; the last one also does what follows, such as a reply.
        """
        # Behind other operations even if short: replies keep the order of the methods.
        if self.tasks or not self._begin_task(step):
            self.tasks.append(step)
            self.scanner.hold = True
            self._put_off()

    def _begin_task(self, step: Step) -> bool:
        """Do the first slice; most operations have no other."""
        turns = self.registry.turns
        if turns.current is not None:
            return step()
        # Started by a timer or an answer, outside of a turn: its work counts all the same.
        turns.begin_anyway(self.account)
        try:
            return step()
        finally:
            turns.end()

    def suspend(self) -> None:
        """Suspend the long operation until `wake` is called."""
        self.deferred = True

    def wake(self) -> None:
        """Continue the long operation that has called `suspend`."""
        if self.tasks:
            self.deferred = False
            self._put_off()

    def sign_in(self, user: User) -> None:
        """Set the user, to whose budget the connection's work counts from now on."""
        self.user = user
        self.account = self.registry.turns.account(f"user {user.name}")

    def resume(self, now: float) -> None:
        """Continue with input that was held back while the output was too long."""
        if (
            self.scanner.hold
            and not self.deferred
            and not self.congested
            and not self.paused
            and not self.closing
            and self.out.size <= _OUTPUT_STOP
            and self.origin not in self.registry.pending_logins.verifying
        ):
            self.scanner.hold = False
            self.receive(b"", now)

    @property
    def held_back(self) -> bool:
        """True if input is held back, so that further reads would only fill memory."""
        return self.scanner.hold

    def relieved(self) -> None:
        """Serve the consumers that waited for space in the output."""
        if not self.starved or self.congested:
            return
        turns = self.registry.turns
        if self.deferred or not turns.begin(self.account):
            self._put_off()
            return
        try:
            self.relieve()
        finally:
            turns.end()

    def relieve(self) -> None:
        """Serve the channels whose consumers waited for space in the output."""
        self.starved = False
        # A served channel is last the next time, so that a backlog does not take all space.
        for number, channel in list(self.channels.items()):
            before = self.out.size
            channel.serve()
            if self.out.size > before and self.channels.get(number) is channel:
                self.channels[number] = self.channels.pop(number)

    def tick(self, now: float) -> Done:
        """Check heartbeats, deadlines, and whether the login has ended."""
        if self.deadline and not self.begins_in_time(now):
            return 0
        expires = self.user.expires
        # RabbitMQ closes the connection of a token that has expired, too, with this reason (320).
        if expires and self.state is _OPEN and self.broker.clock.ms >= expires * _MS:
            self.log("warning", f"{self.peer}: the credential of user '{self.user.name}' expired")
            self.force_close("credential expired", now)
            return 0
        if self.heartbeat and not self.closing and self.state is not _CLOSED:
            self._check_heartbeats(now)
        return 0

    def next_look(self) -> C[float]:
        """Return when `tick` has something to do again; 0 for each tick.

        It may be later by then, as input and output move it; only `end_by` makes it earlier.
        """
        if self.state is not _OPEN or self.paused or self.scanner.hold or self.user.expires:
            return 0.0
        due: float = self.deadline or _NEVER
        if self.heartbeat:
            due = min(due, self._next_heartbeat())
        return due

    def _next_heartbeat(self) -> C[float]:
        """Return when a heartbeat is due, or has been missing for too long."""
        return min(self._sent_at + self.heartbeat * 0.5, self.now + self.heartbeat * 2)

    def end_by(self, deadline: float) -> Done:
        """Set the time at which an end that is not complete is forced."""
        self.deadline = deadline
        return self.registry.look_times.set(self.place, 0.0)

    def _begin_beat(self, now: float) -> Done:
        """Count the next heartbeat from this tick.

        Counted from the write behind it, it would be due just after a tick, and wait for another.
        """
        self._sent_at = now
        self._beats = True
        return 0

    def _check_heartbeats(self, now: float) -> Done:
        """Send a heartbeat if one is due; cut the connection if the peer has missed two."""
        # 0-9-1 4.2.7: any output substitutes for a heartbeat. One at half the interval leaves the
        # network the other half.
        if 2 * (now - self._sent_at) >= self.heartbeat:
            self._begin_beat(now)
            self.beat()
            self.touch()
        if self.paused or self.scanner.hold:
            # Heartbeats of a connection that is not read do not arrive: restart its timeout.
            self.now = now
        # 0-9-1 4.2.7: after two intervals without an octet, and without connection.close.
        if now - self.now < self.heartbeat * 2:
            return 0
        if self.transport is not None and self.transport.unread():
            # Heartbeats may be unread: a busy broker reads them before it decides.
            return 0
        why = f"missed heartbeats from client, timeout: {self.heartbeat}s"
        log_ended(self, "error", why)
        self.end_reason = BY_HEARTBEAT
        self.cut()
        return 0

    def excuse(self, late: float) -> None:
        """Do not count time in which the broker itself was stalled.

        Args:
            late: the seconds in which the broker read no input at all.
        """
        self.now += late
        if self.deadline:
            self.deadline += late

    def _end_of_turn(self) -> None:
        """End the turn: write confirms and completions, block a publisher if necessary."""
        self._write_collected()
        if self.published:
            self.published = False
            self.registry.publishers.check(self)
        if self.held is not None and self.out.size > _OUTPUT_STOP:
            # The shell cannot send held output, and so does not notice that it is long.
            self.scanner.hold = True
        if self.broker.events.waiting:
            self.broker.events.publish()

    # --- output ---------------------------------------------------------------------------------

    def touch(self) -> Done:
        """Add the connection to the registry's dirty list."""
        if not self.dirty:
            self.dirty = True
            self.registry.dirty.append(self)
        return 0

    def ask_for_turn(self) -> int:
        """Request another turn: consumers were not fully served, or reads wait."""
        self.starved = True
        return self.touch()

    def take_parts(self, now: float) -> C[list[bytes | BodyFrames]]:
        """Take the output that may be written now, in order; long bodies are not encoded yet."""
        if self.held is None:
            parts = self.out.take_parts()
        else:
            parts = self.held.take(self.commit.done, self.out)
            if not self.held.ticket:
                self.held = None
        if parts:
            if not self._beats:
                self._sent_at = now
            self._beats = False
            byte_count: i64 = 0
            for part in parts:
                byte_count += part.left if isinstance(part, BodyFrames) else len(part)
            self.traffic.send_oct += byte_count
            self.traffic.send_cnt += 1
            if byte_count > _HEARTBEAT_BYTES:
                self.stir()
        return parts

    def take_output(self, now: float) -> bytes:
        """Take the output that may be written now, in one piece."""
        return encoded(self.take_parts(now))

    @property
    def finished(self) -> bool:
        """True if the server closes the socket after the output it has taken."""
        return self.closing and self.held is None

    def hold_until(self, ticket: int) -> None:
        """Hold output written from now on until that commit is on disk."""
        if ticket <= self.commit.done:
            return
        if ticket == self.commit.ticket:
            # A peer waits: the flusher starts this commit without the pause of FLUSH_SECONDS.
            self.commit.urgent = True
        if self.held is None:
            self.held = OutputBarrier()
        self.held.cut(ticket, self.out)
        self.registry.waiting[self] = None

    def committed(self) -> None:
        """Release output that waited for a commit that is on disk now."""
        held = self.held
        if held is not None:
            self.touch()
            if held.ticket > self.commit.done:
                # Its newest output waits for a later commit: the registry has emptied the list.
                self.registry.waiting[self] = None

    def drop_held(self) -> None:
        """Drop held output: the peer is gone."""
        if self.held is not None:
            self.held = None
            self.out.take()
            self.registry.waiting.pop(self, None)

    # --- the end --------------------------------------------------------------------------------

    def wants(self, capability: str) -> bool:
        """True if the client announced a capability."""
        return capability in self.capabilities

    @property
    def gone(self) -> bool:
        """True if `eof` has done its work, or another connection follows this one."""
        return self.closing and self not in self.registry.connections

    def eof(self) -> None:
        """Handle the end of the peer's input, after the waiting input is processed."""
        if self.gone:
            return
        # What the peer sent before it left is processed first: publishes may be in it.
        if self.deferred and not self.departed and not self.closing:
            self.departed = True
            # Deliveries to the peer stop.
            self.congested = True
            return
        if self.state is not _CLOSED:
            self.log_loss()
            self.release()
            self.state = _CLOSED
        self.closing = True
        self.drop_held()
        self.registry.remove(self)
        self.registry.totals.connection_ended(self)
        self.registry.pending_logins.remove(self.origin)
        self.break_cycle()

    def break_cycle(self) -> None:
        """Break the reference cycle with the scanner, which would delay the release of memory."""
        self.scanner.break_cycle()

    def part(self) -> None:
        """Linger after connection.close-ok: the peer may close again, or end its side."""
        self.state = _CLOSED
        self.end_by(self.now + limits.LINGER_SECONDS)
        self.paused = False
        self.scanner.fast = False
        if not self.tasks:
            # Otherwise the input continues after them.
            self.scanner.hold = False
        self.touch()

    def finish(self) -> None:
        """End the connection after the close handshake."""
        self.scanner.stopped = True
        self.state = _CLOSED
        self.closing = True
        self.touch()

    def cut(self) -> None:
        """Close the socket without connection.close."""
        self.release()
        self.drop_held()
        self.finish()

    def begins_in_time(self, now: float) -> bool:
        """Check the deadline of the handshake; False, once, when it has passed.

        The log has a line for a connection that is closed because of it.
        """
        if not self.deadline or now < self.deadline:
            return True
        self.deadline = 0.0
        if self.state is _CLOSED:
            if not self.closing:
                # The close handshake is done, and the client had time to close its side.
                self.finish()
            return False
        if self.state is _OPEN:
            return True
        if not self.closing:
            log_ended(self, "error", f"{{handshake_timeout,{self.state.value}}}")
            self.cut()
        return False

    def log(self, level: str, text: str, category: str = "connection") -> None:
        """Write a line about the connection to the log."""
        self.settings.log(level, text, category, self.origin)

    def has_opened(self) -> None:
        """Note that the connection is open."""
        self.registry.pending_logins.remove(self.origin)
        self.registry.handshake_throttle.opened(self.peer.address, self.user.name)

    def remember_failure(self) -> None:
        """Count a failure before the connection was open, for the handshake throttle."""
        self.registry.handshake_throttle.failed(self.peer.address, self.now, self.settings.log)
