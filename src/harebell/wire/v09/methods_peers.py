"""The methods of the classes `tunnel`, `test` and `dtx` of 0-8; see `harebell.wire.v09.methods`.

They are what peers do with each other beside messages: pass on blocks of another protocol, check
that both read and write data alike, and take part in a transaction that somebody else coordinates.
"""

from __future__ import annotations

from harebell.wire.v09.method import Method, Table

# --- dtx, class 100 -----------------------------------------------------------------------------


class DtxSelect(Method):
    """The channel uses distributed transactions from now on."""


class DtxSelectOk(Method):
    """It does."""


class DtxStart(Method):
    """What follows on the channel is part of this transaction."""

    dtx_identifier: str = ""


class DtxStartOk(Method):
    """The transaction has started."""


# --- tunnel, class 110 --------------------------------------------------------------------------


class TunnelRequest(Method):
    """A block of another protocol, as a content, with what the recipient has to know of it."""

    meta_data: Table = {}


# --- test, class 120 ----------------------------------------------------------------------------


class TestInteger(Method):
    """The sum, the least or the greatest of four integers is asked for."""

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
    """Two strings together, the shorter or the longer of them is asked for."""

    __test__ = False

    string_1: str = ""
    string_2: bytes = b""
    operation: int = 0


class TestStringOk(Method):
    """The result."""

    __test__ = False

    result: bytes = b""


class TestTable(Method):
    """The same is asked for the integers, and for the strings, of a field table."""

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
    """A content whose checksum is asked for."""

    __test__ = False


class TestContentOk(Method):
    """The sum of its octets, and the content itself again."""

    __test__ = False

    content_checksum: int = 0
