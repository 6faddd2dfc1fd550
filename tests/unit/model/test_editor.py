"""The editor that knows only how to decode headers."""

from __future__ import annotations

from harebell.base.message import Message, Properties
from harebell.model.editor import Editor


def test_a_message_goes_on_as_it_is_when_nobody_can_change_it() -> None:
    editor = Editor(lambda message: {"a": 1})
    message = Message("x", "k", Properties(b"raw", 2, 7, has_headers=True), b"body")
    copy = editor.forwarded(message, "y", "l", {"b": 2})
    assert (copy.exchange, copy.routing_key) == ("y", "l")
    assert (message.exchange, message.routing_key) == ("x", "k")
    assert (copy.raw, copy.body, copy.delivery_mode, copy.priority) == (b"raw", b"body", 2, 7)
    assert editor.expiration_of(message) is None
    assert editor.headers_of(copy) == {"a": 1}
