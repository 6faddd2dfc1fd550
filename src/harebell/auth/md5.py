"""MD5 (RFC 1321) that can be resumed from its state after a block.

`hashlib` does not give access to its state, and CRAM-MD5 with a stored state needs it: HMAC-MD5 is
resumed after its first block. No other code should use this module.
"""

from __future__ import annotations

import math
import struct

BLOCK_BYTES = 64
STATE_BYTES = 16

_MASK = 0xFFFFFFFF
_START = struct.pack("<4I", 0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476)
_SINES = tuple(int(abs(math.sin(step + 1)) * 2**32) for step in range(BLOCK_BYTES))
_TURNS = ((7, 12, 17, 22), (5, 9, 14, 20), (4, 11, 16, 23), (6, 10, 15, 21))
_LENGTH_BYTES = 8


def absorbed(block: bytes, state: bytes = _START) -> bytes:
    """Return the state after one more block of BLOCK_BYTES bytes."""
    words = struct.unpack("<16I", block)
    before = a, b, c, d = struct.unpack("<4I", state)
    for step, sine in enumerate(_SINES):
        turn = step // 16
        if turn == 0:
            mixed, word = (b & c) | (~b & d), step
        elif turn == 1:
            mixed, word = (d & b) | (~d & c), (5 * step + 1) % 16
        elif turn == 2:
            mixed, word = b ^ c ^ d, (3 * step + 5) % 16
        else:
            mixed, word = c ^ (b | (~d & _MASK)), (7 * step) % 16
        total = (a + mixed + sine + words[word]) & _MASK
        by = _TURNS[turn][step % 4]
        turned = (total << by | total >> (32 - by)) & _MASK
        a, b, c, d = d, (b + turned) & _MASK, b, c
    after = zip(before, (a, b, c, d), strict=True)
    return struct.pack("<4I", *((old + new) & _MASK for old, new in after))


def finished(state: bytes, rest: bytes, absorbed_bytes: int = BLOCK_BYTES) -> bytes:
    """Return the digest of the absorbed blocks followed by the rest.

    Args:
        state: the state after whole blocks.
        rest: the bytes after them.
        absorbed_bytes: the number of bytes in the state.
    """
    length = 8 * (absorbed_bytes + len(rest))
    padding = -(len(rest) + 1 + _LENGTH_BYTES) % BLOCK_BYTES
    rest += b"\x80" + bytes(padding) + length.to_bytes(_LENGTH_BYTES, "little")
    for start in range(0, len(rest), BLOCK_BYTES):
        state = absorbed(rest[start : start + BLOCK_BYTES], state)
    return state
