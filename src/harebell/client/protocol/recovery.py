"""Recover a lost connection: schedule the attempts, and restore the topology in order.

Attempts are spaced by an exponential delay with full jitter, so that the clients of a restarted
broker do not all return at the same time. On the new connection everything is restored in
dependency order:

    channels, exchanges, queues, bindings, mode, prefetch, consumers, unconfirmed publishes

Both shells run `replay`, a generator that yields the calls to wait for.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from harebell.client.errors import (
    AMQPError,
    AuthenticationFailed,
    ConnectionFailed,
    ConnectionForced,
    ConnectionLost,
    InternalError,
    ProtocolMismatch,
    RecoveryFailed,
    ReplyError,
)
from harebell.client.limits import RECOVERY_FIRST_SECONDS, RECOVERY_MAX_SECONDS
from harebell.client.protocol.call import Call
from harebell.client.protocol.channel_parts import ERAS, OFFSET, TRACKING, Mode
from harebell.client.protocol.topology import ChannelRecord, ConsumerRecord, Topology
from harebell.client.protocol.v09.channel import CoreChannel
from harebell.client.protocol.v09.core import CoreConnection, Random
from harebell.wire.v09 import methods as m
from harebell.wire.v09.content import decode_properties

_GROWTH = 2.0
_RECOVERABLE = (ConnectionLost, ConnectionForced, InternalError)

Replay = Generator[Call[Any], None, dict[int, CoreChannel]]


@dataclass(frozen=True)
class Recovery:
    """How a connection recovers.

    Args:
        first_seconds: maximum delay before the first attempt.
        most_seconds: maximum delay between attempts.
        attempts: maximum number of attempts; None for no limit if the broker is unreachable.
        connect_attempts: maximum number of attempts of `connect`, whose first has no delay.
        restore_attempts: maximum number of attempts if the broker refuses the topology.
        resend: publish again what was not confirmed when the connection broke. The broker may have
            taken it already, so consumers may see it twice. Without it those publishes end with
            ConnectionLost.
    """

    first_seconds: float = RECOVERY_FIRST_SECONDS
    most_seconds: float = RECOVERY_MAX_SECONDS
    attempts: int | None = None
    connect_attempts: int = 8
    restore_attempts: int = 8
    resend: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.first_seconds <= self.most_seconds:
            raise ValueError("first_seconds must be above 0 and not above most_seconds")


def recovery_of(recover: bool | Recovery) -> Recovery | None:
    """Return the recovery that the argument `recover` of `connect` asks for."""
    if isinstance(recover, Recovery):
        return recover
    return Recovery() if recover else None


def connects_again(
    error: AMQPError,
    recovery: Recovery | None,
    tried: int,
    waited: float = 0.0,
    patience: float | None = None,
) -> bool:
    """True if `connect` should try once more after so many attempts.

    Args:
        error: of the last attempt.
        recovery: how the connection recovers; None if it does not.
        tried: number of attempts.
        waited: seconds since the first attempt began.
        patience: seconds to go on trying; None for `connect_attempts` of the recovery.

    Raises:
        ConnectionFailed: it has tried often or long enough; the text has the reason and the number.
    """
    if refused(error):
        return False
    if patience is not None:
        if waited < patience:
            return True
        text = f"{error}; gave up after {tried} attempts in {waited:.1f} s"
        raise ConnectionFailed(text) from error
    if recovery is None:
        return False
    if tried < recovery.connect_attempts:
        return True
    raise ConnectionFailed(f"{error}; gave up after {tried} attempts") from error


def refused(error: AMQPError) -> bool:
    """True if an attempt failed although the broker was reachable: retrying may never help."""
    return isinstance(error, ReplyError | AuthenticationFailed | ProtocolMismatch)


def recoverable(error: AMQPError | None) -> bool:
    """True if reconnecting can help: the network or the broker failed, without refusing us."""
    return isinstance(error, _RECOVERABLE)


class Backoff:
    """The delays between attempts.

    Args:
        options: the limits.
        rng: randomness for the jitter.

    Attributes:
        tried: number of attempts.
        refused: number of attempts that the broker refused.
        error: the last error.
    """

    def __init__(self, options: Recovery, rng: Random) -> None:
        self.tried = 0
        self.refused = 0
        self.error: AMQPError | None = None
        self._options = options
        self._rng = rng
        self._ceiling = options.first_seconds

    def delay(self) -> float:
        """Return the seconds to wait before the next attempt."""
        self.tried += 1
        ceiling = self._ceiling
        self._ceiling = min(ceiling * _GROWTH, self._options.most_seconds)
        # Full jitter, but with a minimum, to avoid a busy loop.
        return ceiling * (0.1 + 0.9 * self._rng.random())

    def failed(self, *, refused: bool) -> bool:
        """Count a failed attempt, `refused` if the broker was reachable; True to try again."""
        self.refused += refused
        limit = self._options.attempts
        return self.refused < self._options.restore_attempts and (
            limit is None or self.tried < limit
        )

    def given_up(self) -> RecoveryFailed:
        """Return the error of a connection that does not recover."""
        failed = RecoveryFailed(f"gave up after {self.tried} attempts: {self.error}")
        failed.__cause__ = self.error
        return failed


def replay(core: CoreConnection, topology: Topology, old: Mapping[int, CoreChannel]) -> Replay:
    """Restore everything on a new connection.

    Args:
        core: the connection, open, without a recorder.
        topology: what was declared; the new names of queues are recorded in it.
        old: the channels of the lost connection, by number.

    Yields:
        Calls to wait for; throw their errors into the generator.

    Returns:
        The new channels, by number.
    """
    channels: dict[int, CoreChannel] = {}
    for number, before in old.items():
        confirms = before.confirms
        call = core.open_channel(number, confirms=before.wants_confirms, keep=confirms.keep)
        yield call
        channels[number] = call.value()
        channels[number].set_sink(before.sink)
    if topology.exchanges or topology.queues or topology.bindings:
        spare: CoreChannel | None = None
        if not channels:
            opening = core.open_channel()
            yield opening
            spare = opening.value()
        yield from _declare(spare or next(iter(channels.values())), topology)
        if spare is not None:
            yield spare.close()
    for number, channel in channels.items():
        yield from _set_up(channel, topology.channel(number))
    # Only now: what was just restored would be recorded a second time.
    core.recorder = topology
    return channels


def resend(old: CoreChannel, new: CoreChannel) -> None:
    """Publish the old channel's unconfirmed messages again, if it has kept them."""
    for waiting, token, message, flags in old.confirms.take_over():
        new.publish(message, flags, waiting, token)


def _declare(channel: CoreChannel, topology: Topology) -> Generator[Call[Any], None, None]:
    for exchange in list(topology.exchanges.values()):
        yield channel.call(exchange, (m.ExchangeDeclareOk,), _itself)
    for name, record in list(topology.queues.items()):
        # A queue that the broker named is declared again under "": clients may not use its reserved
        # names. If it survived the connection after all, it is left behind, as with any client that
        # recovers.
        call = channel.call(record.method, (m.QueueDeclareOk,), _itself)
        yield call
        if record.server_named:
            topology.rename(name, call.value().queue)
    for binding in list(topology.bindings):
        reply = m.QueueBindOk if isinstance(binding, m.QueueBind) else m.ExchangeBindOk
        yield channel.call(binding, (reply,), _itself)


def _set_up(channel: CoreChannel, record: ChannelRecord) -> Generator[Call[Any], None, None]:
    if record.mode is Mode.CONFIRM:
        yield channel.select_confirms()
    elif record.mode is Mode.TRANSACTION:
        yield channel.select_transactions()
    if record.shared_prefetch is not None:
        yield channel.call(record.shared_prefetch, (m.BasicQosOk,), _itself)
    in_force: m.BasicQos | None = None
    for consumer in list(record.consumers.values()):
        # RabbitMQ applies basic.qos to later consumers: each keeps what was set before it.
        if consumer.prefetch is not None and consumer.prefetch != in_force:
            yield channel.call(consumer.prefetch, (m.BasicQosOk,), _itself)
            in_force = consumer.prefetch
        # Before the answer: deliveries may follow it in the same read.
        channel.consumers[consumer.consumer.tag] = consumer.consumer
        yield channel.call(_resumed(consumer), (m.BasicConsumeOk,), _itself)
        channel.note_eras(consumer.consumer, consumer.method)
    if record.prefetch is not None and record.prefetch != in_force:
        yield channel.call(record.prefetch, (m.BasicQosOk,), _itself)


def _resumed(record: ConsumerRecord) -> m.BasicConsume:
    """Return a subscription; one to a stream begins after the last message that was taken."""
    consumer, method = record.consumer, record.method
    taken = None if consumer.inbox is None else consumer.inbox.last
    arguments = method.arguments
    if taken is None or arguments.get(TRACKING) is True or not {OFFSET, ERAS} & arguments.keys():
        return method
    offset = (decode_properties(taken.raw).headers or {}).get(OFFSET)
    if type(offset) is not int:
        return method
    own = {OFFSET: offset + 1, ERAS: consumer.eras} if consumer.eras else {OFFSET: offset + 1}
    return msgspec.structs.replace(method, arguments=arguments | own)


def _itself(reply: Any) -> Any:
    return reply
