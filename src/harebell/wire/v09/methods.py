"""Typed methods: one class per method, shared by all versions of the family.

A class has the fields that any version gives the method, by the specification's names with underscores; which of them travel, and in
which order, is the table of the version. Reserved fields and tickets are not here. `global` is spelled `global_`.
"""

from __future__ import annotations

from typing import Any, ClassVar

from msgspec import Struct, field

Table = dict[str, Any]


class Method(Struct):
    """Base of all methods."""

    NAME: ClassVar[str] = ""


class ConnectionStart(Method):
    """connection.start."""

    NAME: ClassVar[str] = "connection.start"
    version_major: int = 0
    version_minor: int = 0
    server_properties: Table = field(default_factory=dict)
    mechanisms: bytes = b""
    locales: bytes = b""


class ConnectionStartOk(Method):
    """connection.start-ok."""

    NAME: ClassVar[str] = "connection.start-ok"
    client_properties: Table = field(default_factory=dict)
    mechanism: str = ""
    response: bytes = b""
    locale: str = ""


class ConnectionSecure(Method):
    """connection.secure."""

    NAME: ClassVar[str] = "connection.secure"
    challenge: bytes = b""


class ConnectionSecureOk(Method):
    """connection.secure-ok."""

    NAME: ClassVar[str] = "connection.secure-ok"
    response: bytes = b""


class ConnectionTune(Method):
    """connection.tune."""

    NAME: ClassVar[str] = "connection.tune"
    channel_max: int = 0
    frame_max: int = 0
    heartbeat: int = 0


class ConnectionTuneOk(Method):
    """connection.tune-ok."""

    NAME: ClassVar[str] = "connection.tune-ok"
    channel_max: int = 0
    frame_max: int = 0
    heartbeat: int = 0


class ConnectionOpen(Method):
    """connection.open."""

    NAME: ClassVar[str] = "connection.open"
    virtual_host: str = ""


class ConnectionOpenOk(Method):
    """connection.open-ok."""

    NAME: ClassVar[str] = "connection.open-ok"


class ConnectionClose(Method):
    """connection.close."""

    NAME: ClassVar[str] = "connection.close"
    reply_code: int = 0
    reply_text: str = ""
    class_id: int = 0
    method_id: int = 0


class ConnectionCloseOk(Method):
    """connection.close-ok."""

    NAME: ClassVar[str] = "connection.close-ok"


class ConnectionBlocked(Method):
    """connection.blocked."""

    NAME: ClassVar[str] = "connection.blocked"
    reason: str = ""


class ConnectionUnblocked(Method):
    """connection.unblocked."""

    NAME: ClassVar[str] = "connection.unblocked"


class ConnectionUpdateSecret(Method):
    """connection.update-secret."""

    NAME: ClassVar[str] = "connection.update-secret"
    new_secret: bytes = b""
    reason: str = ""


class ConnectionUpdateSecretOk(Method):
    """connection.update-secret-ok."""

    NAME: ClassVar[str] = "connection.update-secret-ok"


class ChannelOpen(Method):
    """channel.open."""

    NAME: ClassVar[str] = "channel.open"


class ChannelOpenOk(Method):
    """channel.open-ok."""

    NAME: ClassVar[str] = "channel.open-ok"


class ChannelFlow(Method):
    """channel.flow."""

    NAME: ClassVar[str] = "channel.flow"
    active: bool = False


class ChannelFlowOk(Method):
    """channel.flow-ok."""

    NAME: ClassVar[str] = "channel.flow-ok"
    active: bool = False


class ChannelClose(Method):
    """channel.close."""

    NAME: ClassVar[str] = "channel.close"
    reply_code: int = 0
    reply_text: str = ""
    class_id: int = 0
    method_id: int = 0


class ChannelCloseOk(Method):
    """channel.close-ok."""

    NAME: ClassVar[str] = "channel.close-ok"


class AccessRequest(Method):
    """access.request."""

    NAME: ClassVar[str] = "access.request"
    realm: str = ""
    exclusive: bool = False
    passive: bool = False
    active: bool = False
    write: bool = False
    read: bool = False


class AccessRequestOk(Method):
    """access.request-ok."""

    NAME: ClassVar[str] = "access.request-ok"
    ticket: int = 0


class ExchangeDeclare(Method):
    """exchange.declare."""

    NAME: ClassVar[str] = "exchange.declare"
    exchange: str = ""
    type: str = ""
    passive: bool = False
    durable: bool = False
    auto_delete: bool = False
    internal: bool = False
    nowait: bool = False
    arguments: Table = field(default_factory=dict)


class ExchangeDeclareOk(Method):
    """exchange.declare-ok."""

    NAME: ClassVar[str] = "exchange.declare-ok"


class ExchangeDelete(Method):
    """exchange.delete."""

    NAME: ClassVar[str] = "exchange.delete"
    exchange: str = ""
    if_unused: bool = False
    nowait: bool = False


class ExchangeDeleteOk(Method):
    """exchange.delete-ok."""

    NAME: ClassVar[str] = "exchange.delete-ok"


class ExchangeBind(Method):
    """exchange.bind."""

    NAME: ClassVar[str] = "exchange.bind"
    destination: str = ""
    source: str = ""
    routing_key: str = ""
    nowait: bool = False
    arguments: Table = field(default_factory=dict)


class ExchangeBindOk(Method):
    """exchange.bind-ok."""

    NAME: ClassVar[str] = "exchange.bind-ok"


class ExchangeUnbind(Method):
    """exchange.unbind."""

    NAME: ClassVar[str] = "exchange.unbind"
    destination: str = ""
    source: str = ""
    routing_key: str = ""
    nowait: bool = False
    arguments: Table = field(default_factory=dict)


class ExchangeUnbindOk(Method):
    """exchange.unbind-ok."""

    NAME: ClassVar[str] = "exchange.unbind-ok"


class QueueDeclare(Method):
    """queue.declare."""

    NAME: ClassVar[str] = "queue.declare"
    queue: str = ""
    passive: bool = False
    durable: bool = False
    exclusive: bool = False
    auto_delete: bool = False
    nowait: bool = False
    arguments: Table = field(default_factory=dict)


class QueueDeclareOk(Method):
    """queue.declare-ok."""

    NAME: ClassVar[str] = "queue.declare-ok"
    queue: str = ""
    message_count: int = 0
    consumer_count: int = 0


class QueueBind(Method):
    """queue.bind."""

    NAME: ClassVar[str] = "queue.bind"
    queue: str = ""
    exchange: str = ""
    routing_key: str = ""
    nowait: bool = False
    arguments: Table = field(default_factory=dict)


class QueueBindOk(Method):
    """queue.bind-ok."""

    NAME: ClassVar[str] = "queue.bind-ok"


class QueuePurge(Method):
    """queue.purge."""

    NAME: ClassVar[str] = "queue.purge"
    queue: str = ""
    nowait: bool = False


class QueuePurgeOk(Method):
    """queue.purge-ok."""

    NAME: ClassVar[str] = "queue.purge-ok"
    message_count: int = 0


class QueueDelete(Method):
    """queue.delete."""

    NAME: ClassVar[str] = "queue.delete"
    queue: str = ""
    if_unused: bool = False
    if_empty: bool = False
    nowait: bool = False


class QueueDeleteOk(Method):
    """queue.delete-ok."""

    NAME: ClassVar[str] = "queue.delete-ok"
    message_count: int = 0


class QueueUnbind(Method):
    """queue.unbind."""

    NAME: ClassVar[str] = "queue.unbind"
    queue: str = ""
    exchange: str = ""
    routing_key: str = ""
    arguments: Table = field(default_factory=dict)


class QueueUnbindOk(Method):
    """queue.unbind-ok."""

    NAME: ClassVar[str] = "queue.unbind-ok"


class BasicQos(Method):
    """basic.qos."""

    NAME: ClassVar[str] = "basic.qos"
    prefetch_size: int = 0
    prefetch_count: int = 0
    global_: bool = False


class BasicQosOk(Method):
    """basic.qos-ok."""

    NAME: ClassVar[str] = "basic.qos-ok"


class BasicConsume(Method):
    """basic.consume."""

    NAME: ClassVar[str] = "basic.consume"
    queue: str = ""
    consumer_tag: str = ""
    no_local: bool = False
    no_ack: bool = False
    exclusive: bool = False
    nowait: bool = False
    arguments: Table = field(default_factory=dict)


class BasicConsumeOk(Method):
    """basic.consume-ok."""

    NAME: ClassVar[str] = "basic.consume-ok"
    consumer_tag: str = ""


class BasicCancel(Method):
    """basic.cancel."""

    NAME: ClassVar[str] = "basic.cancel"
    consumer_tag: str = ""
    nowait: bool = False


class BasicCancelOk(Method):
    """basic.cancel-ok."""

    NAME: ClassVar[str] = "basic.cancel-ok"
    consumer_tag: str = ""


class BasicPublish(Method):
    """basic.publish."""

    NAME: ClassVar[str] = "basic.publish"
    exchange: str = ""
    routing_key: str = ""
    mandatory: bool = False
    immediate: bool = False


class BasicReturn(Method):
    """basic.return."""

    NAME: ClassVar[str] = "basic.return"
    reply_code: int = 0
    reply_text: str = ""
    exchange: str = ""
    routing_key: str = ""


class BasicDeliver(Method):
    """basic.deliver."""

    NAME: ClassVar[str] = "basic.deliver"
    consumer_tag: str = ""
    delivery_tag: int = 0
    redelivered: bool = False
    exchange: str = ""
    routing_key: str = ""


class BasicGet(Method):
    """basic.get."""

    NAME: ClassVar[str] = "basic.get"
    queue: str = ""
    no_ack: bool = False


class BasicGetOk(Method):
    """basic.get-ok."""

    NAME: ClassVar[str] = "basic.get-ok"
    delivery_tag: int = 0
    redelivered: bool = False
    exchange: str = ""
    routing_key: str = ""
    message_count: int = 0


class BasicGetEmpty(Method):
    """basic.get-empty."""

    NAME: ClassVar[str] = "basic.get-empty"


class BasicAck(Method):
    """basic.ack."""

    NAME: ClassVar[str] = "basic.ack"
    delivery_tag: int = 0
    multiple: bool = False


class BasicReject(Method):
    """basic.reject."""

    NAME: ClassVar[str] = "basic.reject"
    delivery_tag: int = 0
    requeue: bool = False


class BasicRecoverAsync(Method):
    """basic.recover-async."""

    NAME: ClassVar[str] = "basic.recover-async"
    requeue: bool = False


class BasicRecover(Method):
    """basic.recover."""

    NAME: ClassVar[str] = "basic.recover"
    requeue: bool = False


class BasicRecoverOk(Method):
    """basic.recover-ok."""

    NAME: ClassVar[str] = "basic.recover-ok"


class BasicNack(Method):
    """basic.nack."""

    NAME: ClassVar[str] = "basic.nack"
    delivery_tag: int = 0
    multiple: bool = False
    requeue: bool = False


class ConfirmSelect(Method):
    """confirm.select."""

    NAME: ClassVar[str] = "confirm.select"
    nowait: bool = False


class ConfirmSelectOk(Method):
    """confirm.select-ok."""

    NAME: ClassVar[str] = "confirm.select-ok"


class TxSelect(Method):
    """tx.select."""

    NAME: ClassVar[str] = "tx.select"


class TxSelectOk(Method):
    """tx.select-ok."""

    NAME: ClassVar[str] = "tx.select-ok"


class TxCommit(Method):
    """tx.commit."""

    NAME: ClassVar[str] = "tx.commit"


class TxCommitOk(Method):
    """tx.commit-ok."""

    NAME: ClassVar[str] = "tx.commit-ok"


class TxRollback(Method):
    """tx.rollback."""

    NAME: ClassVar[str] = "tx.rollback"


class TxRollbackOk(Method):
    """tx.rollback-ok."""

    NAME: ClassVar[str] = "tx.rollback-ok"


CLASSES: dict[str, type[Method]] = {kind.NAME: kind for kind in Method.__subclasses__()}
"""Every method's class by its name."""
