"""Findings: what needs somebody, as commands and metrics show it.

`harebell.management.health` finds them. Of each rule and vhost the first FINDINGS_SHOWN are told
one by one, and the others are counted, so that no vhost hides what there is in another one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from msgspec import Struct

ALARM = "alarm"
"""The kind of what is short; every user may see it, as the alarms themselves."""
QUEUE = "queue"
QUERY = "query"
NODE = "node"


class Finding(Struct, frozen=True):
    """Something that needs somebody.

    Args:
        rule: what was found, such as "no-consumer".
        kind: what it is about: ALARM, QUEUE, QUERY or NODE.
        vhost: its vhost; "" for the node.
        name: its name; "" where `more` counts.
        why: what was seen.
        since: when it began, in milliseconds since 1970.
        advice: what repairs it.
        command: the command line for that; "" for none.
        more: how many more there are that are not told one by one.
        generation: of the queue that it is about; "" for anything else.
    """

    rule: str
    kind: str
    vhost: str
    name: str
    why: str
    since: int
    advice: str
    command: str
    more: int = 0
    generation: str = ""

    def row(self, node: str) -> dict[str, Any]:
        """Return it as an answer has it."""
        return {"node": node, **{name: getattr(self, name) for name in self.__struct_fields__}}


class Findings(Protocol):
    """The findings of a broker."""

    @property
    def found(self) -> Sequence[Finding]:
        """What was found, by rule; empty before the broker was looked at."""


class NoFindings:
    """A broker that nothing looks at."""

    found: Sequence[Finding] = ()


def verdict(count: int) -> str:
    """Return the state of a broker with this number of findings, in a sentence."""
    if not count:
        return "Healthy"
    return "1 thing needs you" if count == 1 else f"{count} things need you"


def counted(rows: Sequence[dict[str, Any]]) -> int:
    """Return how many findings some rows tell of."""
    return sum([each["more"] or 1 for each in rows])
