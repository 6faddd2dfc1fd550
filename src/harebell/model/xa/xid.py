"""Xids: names of branches of distributed transactions (X/Open XA).

    bytes    u32 format | u8 g | u8 b | g bytes of the transaction's id | b bytes of the branch's

All numbers are big-endian, as in the domain `xid` of the transitional AMQP 0-10; the final one has
the same three parts as a struct. The transaction manager chooses them, and every broker and
database in a transaction gets a branch.
"""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple

from harebell.model.limits import XID_PART_BYTES

_HEAD = Struct(">IBB")
_FORMATS = 2**32
FORMAT_0_8 = int.from_bytes(b"0-8")
"""The format of branches that were started with AMQP 0-8, which has an identifier only."""
_PARTS = 3


class XidError(ValueError):
    """Bytes or a text that are no valid xid; the text says why."""


class Xid(NamedTuple):
    """The name of a branch.

    Args:
        format: the format of the ids, chosen by the transaction manager.
        global_id: the id of the transaction.
        branch_id: at most 64 bytes, unique in the transaction.
    """

    format: int
    global_id: bytes
    branch_id: bytes

    def encode(self) -> bytes:
        """Return the xid as the transitional 0-10 sends it."""
        head = _HEAD.pack(self.format, len(self.global_id), len(self.branch_id))
        return head + self.global_id + self.branch_id

    def __str__(self) -> str:
        return f"{self.format}:{self.global_id.hex()}:{self.branch_id.hex()}"


def checked_xid(format_id: int, global_id: bytes, branch_id: bytes) -> Xid:
    """Return an xid of these parts.

    Raises:
        XidError: one of the parts is too long.
    """
    for part, name in ((global_id, "transaction id"), (branch_id, "branch id")):
        if len(part) > XID_PART_BYTES:
            raise XidError(
                f"the {name} of an xid has {len(part)} octets, and {XID_PART_BYTES} is the most"
            )
    return Xid(format_id, bytes(global_id), bytes(branch_id))


def xid_of_bytes(data: bytes) -> Xid:
    """Return the xid of bytes.

    Raises:
        XidError: they are none.
    """
    if len(data) < _HEAD.size:
        raise XidError(f"an xid has at least {_HEAD.size} octets, and this one {len(data)}")
    format_id, first, second = _HEAD.unpack_from(data)
    if _HEAD.size + first + second != len(data):
        raise XidError(
            f"the two lengths in an xid, {first} and {second}, say {first + second} octets of "
            f"data, and there are {len(data) - _HEAD.size}"
        )
    start = _HEAD.size
    return checked_xid(format_id, data[start : start + first], data[start + first :])


def xid_of_text(text: str) -> Xid:
    """Return the xid of a text that `str` has made.

    Raises:
        XidError: it is none.
    """
    parts = text.split(":")
    try:
        if len(parts) != _PARTS:
            raise ValueError
        format_id = int(parts[0])
        if not 0 <= format_id < _FORMATS:
            raise ValueError
        global_id, branch_id = bytes.fromhex(parts[1]), bytes.fromhex(parts[2])
    except ValueError:
        raise XidError(
            f"'{text}' is no xid: that is a number, and two ids in hexadecimal, with colons "
            "between them, such as 0:7478:6231"
        ) from None
    return checked_xid(format_id, global_id, branch_id)
