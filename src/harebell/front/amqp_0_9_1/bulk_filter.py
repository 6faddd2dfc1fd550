"""The filter `where` of a bulk read: a condition of the filter language on the messages of a range.

The same range has to give the same rows whenever it is read, so a condition may not refer to the
age of a message or to whether it waits for an acknowledgement.
"""

from __future__ import annotations

from functools import lru_cache

from harebell.base.errors import ProtocolError
from harebell.base.message import Message, Properties
from harebell.front.convert.editor import EDITOR
from harebell.front.limits import BULK_FILTER_UNITS
from harebell.kernels.batches import BatchBuilder
from harebell.kernels.properties import parse_properties
from harebell.model.filter.columns import changes
from harebell.model.filter.condition import Filter, compile_filter
from harebell.model.filter.errors import FilterError
from harebell.model.filter.subject import Subject
from harebell.wire.v09.header_texts import bounded_count

_NO_PROPERTIES = Properties(b"\0\0")


@lru_cache(maxsize=64)
def repeatable_filter(text: str) -> Filter:
    """Parse a condition; cached, because readers repeat the same one.

    Raises:
        FilterError: it is invalid, or refers to a column that changes by itself.
    """
    condition = compile_filter(text)
    name = changes(condition.columns)
    if name:
        raise FilterError(
            f"column '{name}' changes while a message waits, so that a range read again would "
            "have other rows: use offset, timestamp or another column"
        )
    return condition


class MessageTest:
    """Test the messages of one read; the batch is full when the read has done its work.

    Args:
        condition: which messages become rows.
        builder: the batch builder.
    """

    __slots__ = ("_builder", "_condition", "_subject", "_units")

    def __init__(self, condition: Filter, builder: BatchBuilder) -> None:
        self._condition = condition
        self._builder = builder
        self._subject = Subject(EDITOR)
        self._units = BULK_FILTER_UNITS

    def __call__(
        self,
        exchange: bytes,
        key: bytes,
        raw: bytes,
        body: bytes,
        time: int,
        offset: int,
        failed: int,
        again: bool,
    ) -> bool:
        """True if the condition is true for a message.

        Raises:
            FilterError: the test takes too long.
        """
        try:
            properties = parse_properties(raw)
            # The columns are null where the encoded properties cannot be read.
            selected = self._selects(exchange, key, properties, body, time, offset, failed, again)
        except ProtocolError:
            selected = self._selects(
                exchange, key, _NO_PROPERTIES, body, time, offset, failed, again
            )
        if self._units <= 0:
            # The reader continues behind this message: the condition has used up its turn.
            self._builder.full = True
        return selected

    def _selects(
        self,
        exchange: bytes,
        key: bytes,
        properties: Properties,
        body: bytes,
        time: int,
        offset: int,
        failed: int,
        again: bool,
    ) -> bool:
        message = Message(
            exchange.decode("utf-8", "replace"), key.decode("utf-8", "replace"), properties, body
        )
        message.timestamp = time
        subject = self._subject
        subject.is_now(message, offset, failed, "", redelivered=again)
        if not failed and "delivery_count" in self._condition.columns:
            subject.delivery_count = _count(subject, again=again)
        self._units -= self._condition.units(message)
        return self._condition.selects(subject)


def _count(subject: Subject, *, again: bool) -> int:
    """Return the value of the column `delivery_count`, as rows have it."""
    return bounded_count(subject.headers, redelivered=again)
