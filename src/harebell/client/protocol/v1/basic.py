"""Interim conversion."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from harebell.base.message import FAMILY_1_0, Message, Properties
from harebell.client.protocol.v1.addresses import queue_address, queue_of
from harebell.client.protocol.v1.management import to_value
from harebell.wire.v09.content import BasicProperties, decode_properties, encode_properties
from harebell.wire.v1 import composites as c
from harebell.wire.v1.sections import Sections, encode_sections
from harebell.wire.v1.values import Symbol, Timestamp


def from_basic(message: Message) -> Message:
    p = decode_properties(message.raw)
    header = None
    if p.delivery_mode or p.priority is not None or p.expiration:
        header = c.Header(
            durable=p.delivery_mode == 2,
            priority=p.priority,
            ttl=int(p.expiration) if p.expiration else None,
        )
    annotations: dict[Any, Any] = {}
    application: dict[str, Any] = {}
    for key, value in (p.headers or {}).items():
        if key.startswith("x-"):
            annotations[Symbol(key)] = to_value(value)
        else:
            application[key] = to_value(value)
    if p.type:
        annotations[Symbol("x-basic-type")] = p.type
    stamp = None
    if isinstance(p.timestamp, datetime):
        stamp = int(p.timestamp.timestamp()) * 1000
    props = c.Properties(
        message_id=p.message_id,
        correlation_id=p.correlation_id,
        user_id=p.user_id.encode() if p.user_id else None,
        reply_to=queue_address(p.reply_to) if p.reply_to else None,
        content_type=p.content_type,
        content_encoding=p.content_encoding,
        creation_time=stamp,
        group_id=p.app_id,
    )
    if props == c.Properties():
        props = None
    raw = encode_sections(header, annotations, props, application)
    return Message(
        message.exchange, message.routing_key, Properties(raw, family=FAMILY_1_0), message.body
    )


def to_basic(message: Message) -> Message:
    s = Sections(message.raw)
    h, p = s.header(), s.properties()
    annotations = dict(s.message_annotations())
    headers: dict[str, Any] = {str(k): _plain(v) for k, v in s.application_properties().items()}
    kind = annotations.pop("x-basic-type", None)
    for each in ("x-exchange", "x-routing-key"):
        annotations.pop(each, None)
    headers |= {str(k): _plain(v) for k, v in annotations.items()}
    basic = BasicProperties(
        content_type=p.content_type,
        content_encoding=p.content_encoding,
        headers=headers or None,
        delivery_mode=2 if h.durable else 1,
        priority=h.priority,
        correlation_id=None if p.correlation_id is None else str(p.correlation_id),
        reply_to=queue_of(p.reply_to) if p.reply_to else None,
        expiration=None if h.ttl is None else str(h.ttl),
        message_id=None if p.message_id is None else str(p.message_id),
        timestamp=None
        if p.creation_time is None
        else datetime.fromtimestamp(p.creation_time // 1000, UTC),
        type=kind,
        user_id=p.user_id.decode() if p.user_id else None,
        app_id=p.group_id,
    )
    return Message(
        message.exchange, message.routing_key, Properties(encode_properties(basic)), message.body
    )


def _plain(v: Any) -> Any:
    if isinstance(v, Timestamp):
        return datetime.fromtimestamp(v // 1000, UTC)
    if isinstance(v, bool) or v is None:
        return v
    for kind in (int, float, str, bytes):
        if isinstance(v, kind):
            return kind(v)
    if isinstance(v, dict):
        return {str(k): _plain(x) for k, x in v.items()}
    return [_plain(x) for x in v]
