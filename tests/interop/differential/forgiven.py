"""Mistakes that the two brokers answer differently, each with the reason why that may be.

Every difference has to have its entry, and every entry has to be needed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

LIVES = r".*lives"
DROPPED = "ended"


def closed(*codes: int) -> str:
    """The connection is closed with one of these codes."""
    return f"0 closed with ({'|'.join(map(str, codes))}); ended"


@dataclass(frozen=True)
class Difference:
    """One kind of difference.

    Args:
        mistakes: a pattern of their names.
        ours: a pattern of what Harebell says, with "; " between.
        theirs: the same of RabbitMQ.
        why: why Harebell does not do the same.
    """

    mistakes: str
    ours: str
    theirs: str
    why: str

    def covers(self, mistake: str, ours: str, theirs: str) -> bool:
        """Whether a difference is of this kind."""
        patterns = ((self.mistakes, mistake), (self.ours, ours), (self.theirs, theirs))
        return all(re.fullmatch(pattern, text) for pattern, text in patterns)


DIFFERENCES = (
    Difference(
        r".* cut at \d+|.* and more|a table that says \d+|a method of \d octets",
        closed(502), closed(501),
        "502 is the specification's code for fields that cannot be read, and the text names them",
    ),
    Difference(
        r"method .*|table: .*|frame type 1 over by 1",
        closed(502, 503, 540), DROPPED,
        "RabbitMQ's reader fails and the socket is closed without a word; a code helps to mend",
    ),
    Difference(
        r"properties .*", closed(505), closed(541),
        "the peer's mistake is no internal error of the broker",
    ),
    Difference(
        r"properties 000[12]", closed(505), LIVES,
        "flags of properties that do not exist cannot be carried through",
    ),
    Difference(
        r"(basic\.publish to|queue\.declare of) b'\\x.*",
        closed(501), f"{LIVES}|1 closed with 404.*",
        "names and routing keys are text (0-9-1r: short strings are UTF-8), all of them",
    ),
    Difference(
        r"basic\.(publish|return|deliver|get-ok) on no open channel|lone type [23] on [0-9]",
        closed(504, 505), closed(501, 505),
        "where a frame may stand is looked at before what it is",
    ),
    Difference(
        r"basic\.(return|deliver|get-ok) on an open channel", closed(503), closed(505),
        "where a frame may stand is looked at before what it is",
    ),
    Difference(
        r"long heartbeat on [19]", closed(505), closed(501),
        "where a frame may stand is looked at before what it is",
    ),
    Difference(
        r"body too long|body of (9|18|5)\d+", closed(501), closed(505),
        "as in newer versions of RabbitMQ",
    ),
    Difference(
        r"body of 134217729", "1 closed with 406; .*", closed(505),
        "the header already tells that the message is too large; RabbitMQ waits for all of it",
    ),
    Difference(
        r"connection\.close while .*", "0 ConnectionCloseOk.*", f"{DROPPED}|{closed(504)}",
        "a client that gives up is answered",
    ),
)  # fmt: skip
