"""The entries of state tables: what follows when an event meets a state.

    table[state][event]   a state   the event is legal; the state that usually follows
                          IGNORED   nothing happens: the peer did not know of the end yet
                          a Fault   the event is an error, with this code and text

Each protocol has its tables in modules of its own. `tools/state_pages.py` draws them.
"""

from __future__ import annotations

import enum

from msgspec import Struct

from harebell.base.errors import ProtocolError


class Ignored(enum.Enum):
    """The type of `IGNORED`."""

    IGNORED = "ignored"


IGNORED = Ignored.IGNORED


class Fault(Struct, frozen=True):
    """An error that an event is in a state.

    Args:
        code: the reply code.
        text: why, with the names of values in braces.
    """

    code: int
    text: str

    def error(self, class_id: int = 0, method_id: int = 0, **values: object) -> ProtocolError:
        """Make the error, which closes the connection; `values` fill the text."""
        text = self.text.format(class_id=class_id, **values)
        return ProtocolError(self.code, text, class_id, method_id)
