"""The base class of typed methods: its name in the specification, and the list of all methods.

The methods of 0-9-1 and its extensions, which later and earlier versions share, are in
`harebell.wire.v09.methods`; what other versions have beside them is in files of its own. A class
must be imported before a table names it.
"""

from __future__ import annotations

from typing import Any, ClassVar

from msgspec import Struct

Table = dict[str, Any]

METHODS: dict[str, type[Method]] = {}
"""Every method by its name."""

_DTX_CLASSES = ("demarcation", "coordination")
"""The second words of the only AMQP classes that have two."""


class Method(Struct):
    """Any method. `NAME` is its name in the specification, for example `queue.declare-ok`."""

    NAME: ClassVar[str] = ""

    def __init_subclass__(cls) -> None:
        words = "".join(f" {c.lower()}" if c.isupper() else c for c in cls.__name__).split()
        of_class = 2 if words[0] == "dtx" and words[1] in _DTX_CLASSES else 1
        cls.NAME = f"{'-'.join(words[:of_class])}.{'-'.join(words[of_class:])}"
        METHODS[cls.NAME] = cls
