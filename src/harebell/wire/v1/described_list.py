"""The base class of the composites of AMQP 1.0."""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec


class DescribedList(msgspec.Struct):
    """A composite: a described list with fields.

    A field that is None, its default, or an empty tuple is not sent; a mandatory one always is.

    Attributes:
        NAME: its name in the specification, as `sasl-init`.
        SPEC: what the table says of it (`harebell.wire.v1.spec.CompositeSpec`).
    """

    NAME: ClassVar[str] = ""
    SPEC: ClassVar[Any] = None

    def encoded(self) -> bytes:
        """Return its octets.

        Raises:
            TypeError, ValueError: a value does not fit its field; the text names both.
        """
        octets: bytes = self.SPEC.write(self)
        return octets
