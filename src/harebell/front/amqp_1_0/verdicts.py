"""What an outcome other than accepted does to a delivery (AMQP 1.0 3.4).

rejected    dead-lettered, as one more failed delivery; its error is part of the history
released    back in its place, without a failed delivery
modified    as released; with delivery-failed it counts as failed, and with undeliverable-here it is
            dead-lettered, as in RabbitMQ; its message-annotations are those of the message
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from harebell.base.values import SectionValue
from harebell.front.amqp_1_0.errors import INVALID_FIELD, RESOURCE_LIMIT_EXCEEDED, SessionError
from harebell.front.limits import MODIFIED_BYTES, REASON_CHARACTERS
from harebell.model.remark import Remark
from harebell.wire.v1.composites import Error, Modified, Rejected, Released
from harebell.wire.v1.encoding import encode

if TYPE_CHECKING:
    from harebell.front.common.unacked import Unacked

_OURS = ("x-cc", "x-death", "x-delivery-count", "x-exchange", "x-opt-deaths", "x-routing-key")
"""Annotations that the broker writes, or goes by."""
_KEY_CHARACTERS = 255


def verdict_of(state: Any) -> Callable[[Unacked], object]:
    """Return what an outcome other than accepted does to a delivery; its queue is served later.

    Raises:
        SessionError: there is no such outcome, or it has annotations that a message cannot get.
    """
    if type(state) is Rejected:
        return partial(_reject, _reason_of(state))
    if type(state) is Released:
        return _release
    if type(state) is Modified:
        failed = bool(state.delivery_failed)
        remark = Remark(_headers_of(state.message_annotations), failed=failed)
        if state.undeliverable_here:
            return partial(_reject, remark)
        if remark.headers:
            return partial(_change, remark, failed)
        return requeue_failed if failed else _release
    raise unrecognised(repr(state))


def unrecognised(shown: str) -> SessionError:
    """Make the error for a state that is no outcome."""
    return SessionError(INVALID_FIELD, f"Unrecognised state: {shown:.100} in DISPOSITION")


def requeue_failed(entry: Unacked) -> None:
    """Give back a message whose delivery has failed."""
    entry.forget()
    entry.queue.requeue_failed(entry.position)


def _release(entry: Unacked) -> None:
    entry.forget()
    entry.queue.requeue_uncounted(entry.position, True)


def _change(remark: Remark, failed: bool, entry: Unacked) -> None:
    entry.forget()
    entry.queue.requeue_changed(entry.position, remark, failed=failed)


def _reject(remark: Remark, entry: Unacked) -> None:
    entry.forget()
    entry.queue.reject_because(entry.position, remark)


def _reason_of(state: Rejected) -> Remark:
    """Return why a message is rejected, as far as its history has it."""
    error = state.error
    if not isinstance(error, Error):
        return Remark(failed=True)
    condition = str(error.condition)[:REASON_CHARACTERS]
    description = (error.description or "")[:REASON_CHARACTERS]
    return Remark({}, condition, description, failed=True)


def _headers_of(annotations: Mapping[Any, Any] | None) -> dict[str, SectionValue]:
    """Return the annotations of an outcome as the model takes them.

    Raises:
        SessionError: invalid-field, resource-limit-exceeded.
    """
    headers: dict[str, SectionValue] = {}
    for key, value in (annotations or {}).items():
        if not isinstance(key, str) or not key.startswith("x-") or len(key) > _KEY_CHARACTERS:
            text = "is no symbol that begins with 'x-' and has at most 255 characters"
            raise _wrong(key, text)
        if key in _OURS:
            raise _wrong(key, "is an annotation of the broker")
        headers[str(key)] = SectionValue(encode(value))
    size = sum(len(key) + len(value) for key, value in headers.items())
    if size > MODIFIED_BYTES:
        text = f"modified: message-annotations have {size} bytes, at most {MODIFIED_BYTES}"
        raise SessionError(RESOURCE_LIMIT_EXCEEDED, text)
    return headers


def _wrong(key: Any, text: str) -> SessionError:
    return SessionError(INVALID_FIELD, f"modified: message-annotations: {key!r:.100} {text}")
