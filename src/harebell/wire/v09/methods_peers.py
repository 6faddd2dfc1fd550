"""The methods of the classes `tunnel`, `test` and `dtx` of 0-8; see `harebell.wire.v09.methods`.

They are what peers do with each other beside messages: pass on blocks of another protocol, check
that both read and write data alike, and take part in a transaction that somebody else coordinates.
"""

from __future__ import annotations

from harebell.wire.v09.method import Method, Table

# --- dtx, class 100 -----------------------------------------------------------------------------


class DtxSelect(Method):
    """Put the channel into the mode of distributed transactions."""


class DtxSelectOk(Method):
    """The channel is in this mode."""


class DtxStart(Method):
    """Begin work on a transaction: what follows on the channel is part of it."""

    dtx_identifier: str = ""


class DtxStartOk(Method):
    """The transaction has started."""


# --- tunnel, class 110 --------------------------------------------------------------------------


class TunnelRequest(Method):
    """Send a block of another protocol as content, with metadata for its recipient."""

    meta_data: Table = {}


# --- test, class 120 ----------------------------------------------------------------------------


class TestInteger(Method):
    """Ask for the sum, the minimum or the maximum of four integers."""

    __test__ = False

    integer_1: int = 0
    integer_2: int = 0
    integer_3: int = 0
    integer_4: int = 0
    operation: int = 0


class TestIntegerOk(Method):
    """The result."""

    __test__ = False

    result: int = 0


class TestString(Method):
    """Ask for two strings concatenated, the shorter or the longer of them."""

    __test__ = False

    string_1: str = ""
    string_2: bytes = b""
    operation: int = 0


class TestStringOk(Method):
    """The result."""

    __test__ = False

    result: bytes = b""


class TestTable(Method):
    """Ask for the same of the integers, and of the strings, in a field table."""

    __test__ = False

    table: Table = {}
    integer_op: int = 0
    string_op: int = 0


class TestTableOk(Method):
    """Both results."""

    __test__ = False

    integer_result: int = 0
    string_result: bytes = b""


class TestContent(Method):
    """Send content, and ask for its checksum."""

    __test__ = False


class TestContentOk(Method):
    """The sum of the content's octets, with the same content."""

    __test__ = False

    content_checksum: int = 0
