"""Errors of the client, with the reply code and text of the broker where it sent them.

    AMQPError
    +-- ConnectionFailed          no connection was made
    |   +-- ConnectTimeout
    |   +-- AuthenticationFailed
    |   +-- ProtocolMismatch      the peer speaks something else
    +-- UnsupportedByVersion      the version of AMQP has no such thing
    +-- ExtensionMissing          the broker lacks a class of Harebell's own
    +-- ConnectionLost            the connection broke without a farewell
    +-- RecoveryFailed            recovery gave up
    +-- ClientClosed              we closed it ourselves
    +-- ConsumerCancelled         the broker ended a subscription
    +-- CallTimeout               no answer in the time given
    +-- PublishFailed             PublishNacked, PublishReturned, BulkPublishFailed
    +-- AMQPConnectionClosed      one class per hard code (AMQP 0-9-1, constants)
    +-- ChannelClosed             one class per soft code

The last two also are a `ReplyError`: they have the broker's reply code and text.
`closed_connection` and `closed_channel` choose the class for a code.
"""

# Names without the suffix "Error": each says what happened, such as NotFound.

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harebell.base.errors import HarebellError
from harebell.client.codecs import Undecodable as Undecodable
from harebell.client.url import shown

if TYPE_CHECKING:
    from harebell.client.message import ReturnedMessage


class AMQPError(HarebellError):
    """Base of all exceptions that the broker or the network causes."""

    def __reduce__(self) -> tuple[Any, ...]:
        # Most of these have other arguments than their text; pickle needs those.
        return _rebuild, (type(self), self.args, self.__dict__)


def _rebuild(kind: type[AMQPError], args: tuple[Any, ...], state: dict[str, Any]) -> AMQPError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(state)
    return error


class ConnectionFailed(AMQPError):
    """No connection could be opened."""


class ConnectTimeout(ConnectionFailed):
    """The broker could not be reached, or did not finish the handshake, in time."""


class AuthenticationFailed(ConnectionFailed):
    """The broker refused the user name or the password.

    Args:
        text: the broker's text, or the meaning of its silence.
        code: the reply code, 403.
        answered: whether the broker sent a reply. Old brokers refuse a login by hanging up; a
            broker that crashes at this moment looks the same.
        login: user and address, which the message names after the text.
    """

    def __init__(
        self, text: str, code: int = 403, *, answered: bool = True, login: str = ""
    ) -> None:
        super().__init__(f"{text} ({login})" if login else text)
        self.code = code
        self.text = text
        self.answered = answered


class ProtocolMismatch(ConnectionFailed):
    """The peer does not support the requested version of AMQP."""


class UnsupportedByVersion(AMQPError):
    """The version of AMQP on this connection lacks a feature.

    Args:
        version: for example "0-8".
        thing: the missing feature.
    """

    def __init__(self, version: str, thing: str) -> None:
        super().__init__(f"AMQP {shown(version)} has no {thing}")
        self.version = version
        self.thing = thing


class ExtensionMissing(AMQPError):
    """The peer lacks a protocol extension of Harebell, or has another version of it.

    Args:
        name: the class of methods, for example "lease".
        address: address of the peer.
        product: product name of the peer.
        version: the version of the class that this client needs.
        theirs: the version of the peer; None without it.
    """

    def __init__(
        self, name: str, address: str, product: str, version: int, theirs: int | None
    ) -> None:
        has = f"version {theirs} of it" if theirs is not None else "none"
        super().__init__(
            f"the broker at {address} ({product}) cannot do this: it needs Harebell's extension "
            f"'{name}' (version {version}) over AMQP 0-9-1, and the broker announces {has}"
        )
        self.name = name
        self.version = version
        self.theirs = theirs


class ConnectionLost(AMQPError):
    """The connection broke: what was sent may or may not have arrived."""


class RecoveryFailed(AMQPError):
    """The connection broke and could not be restored; `__cause__` is the last error."""


class ConcurrentUse(RuntimeError):
    """Two threads use a connection at once, or a thread other than its event loop's does."""


class AlreadySettled(RuntimeError):
    """A message of `process()` was settled already, or has no_ack.

    Args:
        tag: its delivery tag.
    """

    def __init__(self, tag: int) -> None:
        super().__init__(
            f"message {tag} is settled already, or has no_ack: process() settles a message itself, "
            "unless it has ignore_processed=True"
        )
        self.tag = tag

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.tag,)


class ClientClosed(AMQPError):
    """The channel or connection was closed by this program."""


class ConsumerCancelled(AMQPError):
    """The broker ended the subscription, because its queue was deleted or moved.

    Args:
        consumer_tag: tag of the consumer.
    """

    def __init__(self, consumer_tag: str) -> None:
        super().__init__(
            f"the broker cancelled consumer {consumer_tag!r}: its queue was deleted or moved"
        )
        self.consumer_tag = consumer_tag


class CallTimeout(AMQPError, TimeoutError):
    """The broker did not answer within the caller's timeout."""


class PublishFailed(AMQPError):
    """A message was not published."""


class PublishNacked(PublishFailed):
    """The broker refused responsibility for a message (basic.nack; rejected in AMQP 1.0).

    Args:
        sequence: number of the publish on its channel, from 1.
        reason: the broker's text; "" in versions that have none.
    """

    def __init__(self, sequence: int, reason: str = "") -> None:
        why = reason or "basic.nack"
        super().__init__(f"the broker did not take publish number {sequence} ({why})")
        self.sequence = sequence
        self.reason = reason


class PublishReturned(PublishFailed):
    """A mandatory message was unroutable (basic.return).

    Args:
        code: the reply code, 312 when there was no route.
        text: the broker's text.
        message: the returned message.
    """

    def __init__(self, code: int, text: str, message: ReturnedMessage) -> None:
        super().__init__(
            f"{code} {text}: exchange {message.exchange!r}, routing key {message.routing_key!r}"
        )
        self.code = code
        self.text = text
        self.message = message


class BulkPublishFailed(PublishFailed):
    """Some messages of a bulk publish were not confirmed.

    Args:
        confirmed: number of confirmed messages.
        failures: pairs of the message's position in the bulk, from 0, and the error; the first
            ones, in order.
    """

    def __init__(self, confirmed: int, failures: list[tuple[int, AMQPError]]) -> None:
        position, reason = failures[0]
        super().__init__(
            f"{confirmed} messages were taken; number {position} of the bulk was not: {reason}"
        )
        self.confirmed = confirmed
        self.failures = failures


class ReplyError(Exception):
    """The broker closed a channel or the connection, with a code and a text.

    The common part of `AMQPConnectionClosed` and `ChannelClosed`; it is not raised itself.

    Args:
        code: the reply code.
        text: the reply text, for example "NOT_FOUND - no queue 'q' in vhost '/'".
        class_id: class of the method that failed, 0 for no method.
        method_id: method that failed.
    """

    def __init__(self, code: int, text: str, class_id: int = 0, method_id: int = 0) -> None:
        super().__init__(f"{code} {text}")
        self.code = code
        self.text = text
        self.class_id = class_id
        self.method_id = method_id


class AMQPConnectionClosed(ReplyError, AMQPError):
    """The broker closed the connection."""


class ConnectionForced(AMQPConnectionClosed):
    """320: an operator closed the connection, or the broker is stopping."""


class InvalidPath(AMQPConnectionClosed):
    """402: the virtual host is unknown."""


class FrameError(AMQPConnectionClosed):
    """501: a frame could not be read."""


class MethodSyntaxError(AMQPConnectionClosed):
    """502: a field of a method was malformed."""


class CommandInvalid(AMQPConnectionClosed):
    """503: a method that is not valid here."""


class ChannelNumberError(AMQPConnectionClosed):
    """504: a method on a channel that is not in the right state."""


class UnexpectedFrame(AMQPConnectionClosed):
    """505: a frame that was not expected here."""


class ResourceError(AMQPConnectionClosed):
    """506: the broker is short of a resource."""


class NotAllowed(AMQPConnectionClosed):
    """530: not permitted for this user, or forbidden by the broker."""


class NotImplementedByBroker(AMQPConnectionClosed):
    """540: the broker does not implement that."""


class InternalError(AMQPConnectionClosed):
    """541: the broker failed."""


class ChannelClosed(ReplyError, AMQPError):
    """The broker closed the channel; open a new one to continue."""


class ContentTooLarge(ChannelClosed):
    """311: a message is larger than the broker's limit."""


class NoConsumers(ChannelClosed):
    """313: an immediate message had no consumer."""


class AccessRefused(ChannelClosed):
    """403: the user lacks a permission, or the name is reserved."""


class NotFound(ChannelClosed):
    """404: the queue or exchange does not exist."""


class ResourceLocked(ChannelClosed):
    """405: the queue is exclusive to another connection."""


class PreconditionFailed(ChannelClosed):
    """406: redeclared with other properties, in use, not empty, unknown delivery tag."""


class LeaseLost(ChannelClosed):
    """413: a claim was released, because it expired or an operator released it."""


class GenerationChanged(ChannelClosed):
    """409: the queue was deleted and declared again since."""


class RangeGone(ChannelClosed):
    """410: retention has removed requested messages."""


class RecordDamaged(ChannelClosed):
    """411: the broker cannot read a message from its disk."""


class Fenced(ChannelClosed):
    """412: another client has opened the group or the publisher."""


_HARD: dict[int, type[AMQPConnectionClosed]] = {
    320: ConnectionForced,
    402: InvalidPath,
    501: FrameError,
    502: MethodSyntaxError,
    503: CommandInvalid,
    504: ChannelNumberError,
    505: UnexpectedFrame,
    506: ResourceError,
    530: NotAllowed,
    540: NotImplementedByBroker,
    541: InternalError,
}
_SOFT: dict[int, type[ChannelClosed]] = {
    311: ContentTooLarge,
    313: NoConsumers,
    403: AccessRefused,
    404: NotFound,
    405: ResourceLocked,
    406: PreconditionFailed,
    409: GenerationChanged,
    410: RangeGone,
    411: RecordDamaged,
    412: Fenced,
    413: LeaseLost,
}


def closed_connection(
    code: int, text: str, class_id: int = 0, method_id: int = 0
) -> AMQPConnectionClosed:
    """Return the exception for a connection.close from the broker."""
    return _HARD.get(code, AMQPConnectionClosed)(code, text, class_id, method_id)


def closed_channel(code: int, text: str, class_id: int = 0, method_id: int = 0) -> ChannelClosed:
    """Return the exception for a channel.close from the broker."""
    return _SOFT.get(code, ChannelClosed)(code, text, class_id, method_id)
