"""What a rule is: it looks at a trail, and says why somebody is needed.

A rule tells what it sees now. `passes` is how many looks in a row have to see it before it is a
finding, and a finding ends when two looks in a row do not see it. While it is one, `on` is true,
and the rule takes `eased` thresholds: what is near a threshold does not come and go.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from harebell.config import Config
    from harebell.management.health.trails import NodeTrail, QueueTrail

_EASED = 0.7
_MINUTE, _HOUR, _DAY = 60, 3_600, 86_400


class Seen(NamedTuple):
    """Something that a rule has seen.

    Args:
        why: what was seen.
        advice: what repairs it.
        command: the command line for that; "" for none.
        since: when it began, in milliseconds since 1970; 0 for when it was seen first.
        name: what it is about, if that is no queue.
        vhost: where that is; "" for the node.
        generation: of the queue that it is about; "" for anything else.
    """

    why: str
    advice: str
    command: str = ""
    since: int = 0
    name: str = ""
    vhost: str = ""
    generation: str = ""


class QueueRule(NamedTuple):
    """A rule about each queue that has messages.

    Args:
        name: what it finds.
        look: returns what it sees of a queue, given whether that is a finding.
        passes: how many looks in a row have to see it.
    """

    name: str
    look: Callable[[QueueTrail, Config, bool], Seen | None]
    passes: int = 3


IsOn = Callable[[str, str], bool]
"""Returns whether there is a finding of this rule about a vhost and a name."""


class NodeRule(NamedTuple):
    """A rule about anything else.

    Args:
        name: what it finds.
        kind: what that is about.
        look: yields what it sees, and None where the work may be interrupted.
        passes: how many looks in a row have to see it.
    """

    name: str
    kind: str
    look: Callable[[NodeTrail, Config, IsOn], Iterator[Seen | None]]
    passes: int = 3


def eased(threshold: float, on: bool) -> float:
    """Return the least value that counts: a lower one for what was found already."""
    return threshold * _EASED if on else threshold


def widened(threshold: float, on: bool) -> float:
    """Return the largest value that counts: a higher one for what was found already."""
    return threshold / _EASED if on else threshold


def command(*words: str, vhost: str = "/", about: str = "", only: str = "") -> str:
    """Return a command line.

    Args:
        *words: what follows `harebell`.
        vhost: the vhost that it is for.
        about: the name at its end; "" for none.
        only: the generation of the queue that it is for; "" for any of that name.
    """
    line = ["harebell", *words]
    if vhost != "/":
        line.append(f"--vhost={vhost}")
    if only:
        line.append(f"--generation={only}")
    if about:
        line += ["--", about] if about.startswith("-") else [about]
    return shlex.join(line)


def span(seconds: float) -> str:
    """Return a time in words, such as "12 minutes"."""
    for unit, word in ((_DAY, "day"), (_HOUR, "hour"), (_MINUTE, "minute")):
        if seconds >= 2 * unit:
            return f"{seconds / unit:.0f} {word}s"
    whole = round(seconds)
    return f"{whole} second{'' if whole == 1 else 's'}"


def rounded(number: float) -> str:
    """Return a rate as people read it."""
    return f"{number:,.0f}" if number >= 10 else f"{number:.1f}"
