"""The message that a filter tests, decoded as far as the filter needs it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from harebell.base.expiration import lifetime_ms
from harebell.base.message import FAMILY_1_0_SECTIONS, Message
from harebell.model.death import Death, death_of
from harebell.model.editor import Editor
from harebell.model.limits import FILTER_JSON_BYTES, FILTER_TEXT_CHARACTERS

_MS = 1000
_NOT_DECODED = object()


class Subject:
    """A message, with its state in its queue.

    Args:
        editor: reads messages.

    Attributes:
        message: what the condition is about.
        offset: its position in the queue.
        redelivered: whether it may have been delivered before.
        delivery_count: its failed deliveries, as far as its queue counts them.
        state: "ready" or "unacknowledged".
        now: the time of day in milliseconds since 1970.
    """

    __slots__ = (
        "_body",
        "_death",
        "_editor",
        "_exact",
        "_headers",
        "_json",
        "_properties",
        "delivery_count",
        "message",
        "now",
        "offset",
        "redelivered",
        "state",
    )

    message: Message

    def __init__(self, editor: Editor) -> None:
        self._editor = editor
        self.now = 0
        self._forget()

    def is_now(
        self, message: Message, offset: int, delivery_count: int, state: str, *, redelivered: bool
    ) -> None:
        """Replace the message."""
        if message is not getattr(self, "message", None):
            self._forget()
        self.message = message
        self.offset = offset
        self.redelivered = redelivered
        self.delivery_count = delivery_count
        self.state = state

    def decoded(self, message: Message) -> Subject:
        """Return itself: it has been told of the message (`harebell.kernels.conditions.Looker`)."""
        return self

    def _forget(self) -> None:
        self._properties: Mapping[str, Any] | None = None
        self._exact: Mapping[str, Any] | None = None
        self._headers: Mapping[str, Any] | None = None
        self._json: Any = _NOT_DECODED
        self._death: Any = _NOT_DECODED
        self._body: bytes | None = None

    @property
    def properties(self) -> Mapping[str, Any]:
        """Its properties by name, without the headers."""
        if self._properties is None:
            self._properties = self._editor.properties_of(self.message)
        return self._properties

    @property
    def exact(self) -> Mapping[str, Any]:
        """Its properties by name, those of a message of AMQP 1.0 as it has them."""
        if self._exact is None:
            self._exact = self._editor.exact_of(self.message)
        return self._exact

    @property
    def headers(self) -> Mapping[str, Any]:
        """Its headers, decoded."""
        if self._headers is None:
            has = self.message.has_headers
            self._headers = self._editor.headers_of(self.message) if has else {}
        return self._headers

    @property
    def death(self) -> Death | None:
        """What it says of its death; None if it is no dead letter."""
        if self._death is _NOT_DECODED:
            self._death = death_of(self.headers)
        return self._death  # type: ignore[no-any-return]

    @property
    def body(self) -> bytes:
        """Its body as class basic has it."""
        if self._body is None:
            message = self.message
            sectioned = message.family == FAMILY_1_0_SECTIONS
            self._body = self._editor.basic_of(message).body if sectioned else message.body
        return self._body

    @property
    def json(self) -> Any:
        """Its body as JSON; None if it is none, or too large."""
        if self._json is _NOT_DECODED:
            self._json = _json_of(self.body)
        return self._json

    @property
    def text(self) -> str | None:
        """The beginning of its body as text; None if it is not UTF-8."""
        whole = self.body
        body = whole[: 4 * FILTER_TEXT_CHARACTERS]
        try:
            return body.decode()[:FILTER_TEXT_CHARACTERS]
        except UnicodeDecodeError as error:
            # The last character may be cut.
            if error.start < len(body) - 3 or len(body) == len(whole):
                return None
            return body[: error.start].decode()[:FILTER_TEXT_CHARACTERS]

    @property
    def timestamp(self) -> datetime | None:
        """The time at which it was enqueued; None if unknown."""
        ms = self.message.timestamp
        return datetime.fromtimestamp(ms / _MS, UTC) if ms else None

    @property
    def expires_at(self) -> int | None:
        """When it expires by its own expiration, in ms since 1970; None if it never does."""
        lifetime = lifetime_ms(self.properties.get("expiration"))
        return None if lifetime is None else (self.message.timestamp or self.now) + lifetime

    @property
    def age(self) -> float | None:
        """The seconds since it was enqueued."""
        ms = self.message.timestamp
        return max(self.now - ms, 0) / _MS if ms else None


def _json_of(body: bytes) -> Any:
    if len(body) > FILTER_JSON_BYTES:
        return None
    # Imported here: most brokers never filter.
    import msgspec

    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None
