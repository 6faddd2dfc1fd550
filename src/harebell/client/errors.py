"""Errors of the client, with the reply code and text of the broker where it sent them.

    AMQPError
    +-- ConnectionFailed          no connection was made
    |   +-- ConnectTimeout
    |   +-- AuthenticationFailed
    |   |   +-- LoginUnanswered   the broker hung up, or died, after it saw the password
    |   +-- ProtocolMismatch      the peer speaks something else
    +-- UnsupportedByVersion      the version of AMQP has no such thing
    +-- ExtensionMissing          the broker lacks a class of Harebell's own
    +-- ConnectionLost            the connection broke without a farewell
    +-- RecoveryFailed            recovery was asked for and gave up
    +-- ClientClosed              we closed it ourselves
    +-- ConsumerCancelled         the broker ended a subscription
    +-- CallTimeout               no answer in the time given
    +-- PublishFailed             PublishNacked, PublishReturned, BulkPublishFailed
    +-- ReplyError                the broker's reply code and text
        +-- AMQPConnectionClosed  one class per hard code (AMQP 0-9-1, constants)
        +-- ChannelClosed         one class per soft code

`closed_connection` and `closed_channel` choose the class for a code.
"""

# The names say what happened, as the field's own exceptions do.

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harebell.base.errors import HarebellError

if TYPE_CHECKING:
    from harebell.client.message import ReturnedMessage


class AMQPError(HarebellError):
    """Base of everything that the client raises because of the broker or the network."""

    def __reduce__(self) -> tuple[Any, ...]:
        # Most of these take other arguments than their text; pickled, they travel as they are.
        return _rebuild, (type(self), self.args, self.__dict__)


def _rebuild(kind: type[AMQPError], args: tuple[Any, ...], state: dict[str, Any]) -> AMQPError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(state)
    return error


class ConnectionFailed(AMQPError):
    """No connection could be made."""


class ConnectTimeout(ConnectionFailed):
    """The broker could not be reached, or did not finish the handshake, in time."""


class AuthenticationFailed(ConnectionFailed):
    """The broker refused the user name or the password.

    Args:
        text: what the broker said, or what its silence means.
        code: the reply code, 403.
    """

    def __init__(self, text: str, code: int = 403) -> None:
        super().__init__(text)
        self.code = code
        self.text = text


class LoginUnanswered(AuthenticationFailed):
    """The broker hung up after it saw the user and the password.

    Old brokers refuse a login so; any broker that dies in this moment looks the same.
    """


class ProtocolMismatch(ConnectionFailed):
    """The peer does not speak the version of AMQP that was asked for."""


class UnsupportedByVersion(AMQPError):
    """The version of AMQP that the connection speaks has no such thing.

    Args:
        version: for example "0-8".
        thing: what it does not have.
    """

    def __init__(self, version: str, thing: str) -> None:
        super().__init__(f"AMQP {version} has no {thing}")
        self.version = version
        self.thing = thing


class ExtensionMissing(AMQPError):
    """The peer does not have one of Harebell's own classes of methods, or has it otherwise.

    Args:
        name: the class, for example "lease".
        address: where the peer is.
        product: what it says that it is.
        version: which version of the class this client needs.
        theirs: which the peer has; None without it.
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
    """The connection broke: what was on its way may or may not have arrived."""


class RecoveryFailed(AMQPError):
    """The connection broke and could not be restored; `__cause__` has the last reason."""


class ConcurrentUse(RuntimeError):
    """A connection is used by two threads at once, or by another thread than its event loop's."""


class ClientClosed(AMQPError):
    """The channel or connection was closed by this program."""


class ConsumerCancelled(AMQPError):
    """The broker ended the subscription, because its queue was deleted or moved.

    Args:
        consumer_tag: which consumer.
    """

    def __init__(self, consumer_tag: str) -> None:
        super().__init__(
            f"the broker cancelled consumer {consumer_tag!r}: its queue was deleted or moved"
        )
        self.consumer_tag = consumer_tag


class CallTimeout(AMQPError, TimeoutError):
    """The broker did not answer in the time that the caller gave it."""


class PublishFailed(AMQPError):
    """A message was not taken."""


class PublishNacked(PublishFailed):
    """The broker refused responsibility for a message (basic.nack).

    Args:
        sequence: the publish's number on its channel, from 1.
    """

    def __init__(self, sequence: int) -> None:
        super().__init__(f"the broker did not take publish number {sequence} (basic.nack)")
        self.sequence = sequence


class PublishReturned(PublishFailed):
    """A mandatory message reached no queue (basic.return).

    Args:
        code: the reply code, 312 when there was no route.
        text: the broker's text.
        message: the message as it came back.
    """

    def __init__(self, code: int, text: str, message: ReturnedMessage) -> None:
        super().__init__(
            f"{code} {text}: exchange {message.exchange!r}, routing key {message.routing_key!r}"
        )
        self.code = code
        self.text = text
        self.message = message


class BulkPublishFailed(PublishFailed):
    """Some messages of a bulk publish were not taken.

    Args:
        confirmed: how many the broker took.
        failures: pairs of the message's position in the bulk, from 0, and the reason; the first
            ones, in order.
    """

    def __init__(self, confirmed: int, failures: list[tuple[int, AMQPError]]) -> None:
        position, reason = failures[0]
        super().__init__(
            f"{confirmed} messages were taken; number {position} of the bulk was not: {reason}"
        )
        self.confirmed = confirmed
        self.failures = failures


class ReplyError(AMQPError):
    """The broker closed a channel or the connection and said why.

    Args:
        code: the reply code.
        text: the reply text, for example "NOT_FOUND - no queue 'q' in vhost '/'".
        class_id: class of the method that failed, 0 when it was none in particular.
        method_id: the method that failed.
    """

    def __init__(self, code: int, text: str, class_id: int = 0, method_id: int = 0) -> None:
        super().__init__(f"{code} {text}")
        self.code = code
        self.text = text
        self.class_id = class_id
        self.method_id = method_id


class AMQPConnectionClosed(ReplyError):
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
    """503: a method that makes no sense here."""


class ChannelNumberError(AMQPConnectionClosed):
    """504: a method on a channel that is not in the right state."""


class UnexpectedFrame(AMQPConnectionClosed):
    """505: a frame that was not expected here."""


class ResourceError(AMQPConnectionClosed):
    """506: the broker is short of something."""


class NotAllowed(AMQPConnectionClosed):
    """530: something that this user may not do, or that the broker forbids."""


class NotImplementedByBroker(AMQPConnectionClosed):
    """540: the broker does not do that."""


class InternalError(AMQPConnectionClosed):
    """541: the broker failed."""


class ChannelClosed(ReplyError):
    """The broker closed the channel; open a new one to go on."""


class ContentTooLarge(ChannelClosed):
    """311: a message was larger than the broker takes."""


class NoConsumers(ChannelClosed):
    """313: an immediate message found no consumer."""


class AccessRefused(ChannelClosed):
    """403: the user lacks a permission, or the name is reserved."""


class NotFound(ChannelClosed):
    """404: there is no such queue or exchange."""


class ResourceLocked(ChannelClosed):
    """405: another connection owns the queue."""


class PreconditionFailed(ChannelClosed):
    """406: redeclared with other properties, in use, not empty, unknown delivery tag."""


class LeaseLost(ChannelClosed):
    """413: a claim was released, because its time was over or an operator said so."""


class GenerationChanged(ChannelClosed):
    """409: the queue was deleted and declared again since."""


class RangeGone(ChannelClosed):
    """410: retention has let messages go that were asked for."""


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
    """The exception for a connection.close from the broker."""
    return _HARD.get(code, AMQPConnectionClosed)(code, text, class_id, method_id)


def closed_channel(code: int, text: str, class_id: int = 0, method_id: int = 0) -> ChannelClosed:
    """The exception for a channel.close from the broker."""
    return _SOFT.get(code, ChannelClosed)(code, text, class_id, method_id)
