"""The node `$cbs`, where clients put their tokens (claims-based security).

A client sends its requests over any link to `$cbs`, and gets the answers over the one from `$cbs`
whose target has the address in `reply-to`.

    request   application-properties   operation (put-token), type (jwt, amqp:jwt), name
              body                     the token, a value or data
    answer    application-properties   status-code, status-description

A token replaces the secret of the connection, as the request `PUT /auth/tokens` does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harebell.base.message import Properties
from harebell.front.amqp_1_0.errors import INVALID_FIELD, LinkError
from harebell.front.amqp_1_0.management.pair import AnsweringLink, Node, body_of, make
from harebell.front.amqp_1_0.management.requests import Answer, Reply
from harebell.front.common.secrets import renew_secret
from harebell.wire.v1 import composites
from harebell.wire.v1.sections import Sections, encode_message, value_section
from harebell.wire.v1.values import Int

if TYPE_CHECKING:
    from harebell.front.amqp_1_0.session import Session
    from harebell.wire.v1.composites import Attach

ADDRESS = "$cbs"
_OPERATION = "put-token"
_TYPES = ("jwt", "amqp:jwt")
_ACCEPTED, _BAD_REQUEST, _UNAUTHORIZED = 202, 400, 401


def attach(session: Session, asked: Attach) -> Attach:
    """Make a link to the node; return the answer."""
    return make(session, asked, _CBS)


def _serve(
    session: Session,
    fields: composites.Properties,
    properties: Properties,
    body: bytes,
    reply: Reply,
) -> None:
    """Put a token.

    Raises:
        LinkError: invalid-field, there is no message-id to answer to.
    """
    if fields.message_id is None:
        raise LinkError(INVALID_FIELD, "a request needs the property message-id")
    claims = Sections(properties.raw).application_properties()
    token = body_of(body, properties.family)
    if isinstance(token, bytes):
        token = token.decode(errors="replace")
    wrong = _wrong(claims, token)
    if wrong:
        reply(Answer(_BAD_REQUEST, wrong))
        return
    renew_secret(
        session.connection,
        str(token),
        lambda: reply(Answer(_ACCEPTED, "Accepted")),
        lambda text: reply(Answer(_UNAUTHORIZED, text)),
    )


def _wrong(claims: dict[str, Any], token: Any) -> str:
    """Return what is wrong with a request, or ""."""
    operation, kind = claims.get("operation"), claims.get("type")
    if operation != _OPERATION:
        return f"operation must be {_OPERATION}, not {operation!r:.100}"
    if kind not in _TYPES:
        return f"type must be {' or '.join(_TYPES)}, not {kind!r:.100}"
    if not isinstance(claims.get("name"), str):
        return f"name must be string, not {claims.get('name')!r:.100}"
    if not isinstance(token, str) or not token:
        return f"the body must be a token, string or binary, not {type(token).__name__.lower()}"
    return ""


def _encode(message_id: Any, answer: Answer) -> bytes:
    properties = composites.Properties(correlation_id=message_id)
    status = {"status-code": Int(answer.status), "status-description": answer.body}
    return encode_message(value_section(None), None, None, properties, status)


def _answers(link: AnsweringLink, name: str, fields: composites.Properties | None) -> bool:
    """True if a link is where the client expects an answer."""
    return fields is None or not fields.reply_to or link.reply_to == fields.reply_to


_CBS = Node(_serve, _encode, _answers)
