"""The differences between Harebell and Debian's RabbitMQ 3.10 that were looked at and are meant.

Harebell follows RabbitMQ 3.13. Whatever a newer RabbitMQ says differently is brought to one form
here, each with its reason; everything else has to be equal.
"""

from __future__ import annotations

import re
from typing import Any

from harebell.wire.v09.content import decode_properties, encode_properties

DIFFERENCES: tuple[tuple[str, str, str], ...] = (
    (
        r"ACCESS_REFUSED - (configure|write|read) access to",
        "ACCESS_REFUSED - access to",
        "which permission was missing is said since RabbitMQ 3.12",
    ),
)
"""A pattern in what a broker says, what stands for it, and why."""

_DELIVERY = re.compile(
    r"(?P<channel>\d\.\d) BasicDeliver\(consumer_tag='(?P<consumer>\w+)', "
    r"delivery_tag=(?P<tag>\d+), (?P<rest>.*)",
    re.DOTALL,
)

_BACK = "redelivered=True"

NEWER_HEADERS = {
    "x-acquired-count": "since RabbitMQ 4.3",
    "x-last-death-exchange": "since RabbitMQ 3.13",
    "x-last-death-queue": "since RabbitMQ 3.13",
    "x-last-death-reason": "since RabbitMQ 3.13",
}
"""Headers that only the newer broker adds, and why they are left out."""


def as_reviewed(said: str) -> str:
    """What a broker said, without the differences that are meant."""
    for pattern, instead, _ in DIFFERENCES:
        said = re.sub(pattern, instead, said)
    return said


def sent_in_another_turn(ours: list[str], theirs: list[str]) -> bool:
    """Whether only the turn differs in which consumers of a channel were sent what each got.

    Messages that come back to a quorum queue together go to its consumers one by one. Harebell
    sends them like that. RabbitMQ gathers them in a map by consumer, and sends it in the order that
    Erlang has for its keys: by consumer tag up to 3.13, by the age of the consumer since 4.0. Who
    gets what, and in which order, is the same; the delivery tags are others from then on.
    """
    return _by_consumer(ours) == _by_consumer(theirs)


def came_back_in_another_order(ours: list[str], theirs: list[str]) -> bool:
    """Whether only the order differs in which a channel that ended gave messages to others.

    Its consumers of a quorum queue go one after the other. What the first of them had can reach the
    next, which is about to go, and comes back with what that one had: behind it by its place in
    Harebell, before it in RabbitMQ. Nobody has seen that delivery; both count it.
    """
    if not any(" ChannelClose(" in note for note in ours):
        return False
    return _in_any_order(ours) == _in_any_order(theirs)


def _in_any_order(notes: list[str]) -> dict[tuple[str, str], tuple[list[str], list[str]]]:
    """As `_by_consumer`, with what came back apart from the rest, in no order."""
    return {
        key: (
            [note for note in said if _BACK not in note],
            sorted(note for note in said if _BACK in note),
        )
        for key, said in _by_consumer(notes).items()
    }


def sent_after_the_end(ours: list[str], theirs: list[str]) -> bool:
    """Whether only RabbitMQ delivers on a channel after the answer that closed it.

    Its queues are told one after the other that a channel is closed. What one gives back and then
    dead-letters may reach another first, which sends it to a consumer of that channel; where that
    acknowledges nothing, it is lost. Harebell sends nothing after channel.close and keeps it.
    """
    kept: list[str] = []
    closed: set[str] = set()
    for note in theirs:
        channel, _, said = note.partition(" ")
        if said.startswith("ChannelClose("):
            closed.add(channel)
        if channel not in closed or _DELIVERY.fullmatch(note) is None:
            kept.append(note)
    return kept != theirs and kept == ours


def _by_consumer(notes: list[str]) -> dict[tuple[str, str], list[str]]:
    """What each consumer was sent, the delivery tags of each channel, and all else."""
    found: dict[tuple[str, str], list[str]] = {}
    for note in notes:
        delivery = _DELIVERY.fullmatch(note)
        if delivery is None:
            found.setdefault(("else", ""), []).append(note)
            continue
        channel, consumer, tag, rest = delivery.groups()
        found.setdefault((channel, consumer), []).append(rest)
        found.setdefault((channel, "tags"), []).append(tag)
    return found


def shown(raw: bytes, *, returned: bool = False) -> str:
    """Encoded properties as text: as they are, but for what brokers write into them."""
    properties = decode_properties(raw)
    headers = properties.headers or {}
    if returned:
        # RabbitMQ 3.10 takes BCC out of what it returns; a newer one returns what was published.
        headers.pop("BCC", None)
        return repr(properties)
    kept: dict[str, Any] = {
        name: value for name, value in headers.items() if name not in NEWER_HEADERS
    }
    if "x-delivery-count" in kept:
        # Written anew for both brokers: what stood beside it may be left out.
        if kept["x-delivery-count"] == 0 or "x-death" in kept:
            # RabbitMQ writes a count of none into what is got from a quorum queue, but not into
            # what is delivered; Harebell counts when there is something to count. The count of a
            # dead letter begins anew in RabbitMQ 3.10, and goes on in a newer one.
            del kept["x-delivery-count"]
        properties.headers = kept or None
        raw = encode_properties(properties)
    if "x-death" not in kept:
        return repr(raw)
    # The two brokers look at their clocks one after the other, and the newer RabbitMQ writes
    # original-expiration before and not behind the others.
    kept["x-death"] = [dict(sorted({**death, "time": "now"}.items())) for death in kept["x-death"]]
    properties.headers = dict(sorted(kept.items()))
    return repr(properties)
