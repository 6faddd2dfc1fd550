"""The base class of typed methods, and the list of all methods.

A class must be in the list before anything asks for it by name: a version adds the classes of its
methods when its tables are loaded.
"""

from __future__ import annotations

from typing import Any, ClassVar

from msgspec import Struct

Table = dict[str, Any]

METHODS: dict[str, type[Method]] = {}
"""The types of all methods by their names."""


class Method(Struct):
    """Any method. `NAME` is its name in the specification, for example `queue.declare-ok`."""

    NAME: ClassVar[str] = ""
    __test__: ClassVar[bool] = False
    """0-8 has methods such as test.integer: `TestInteger` is no test."""
