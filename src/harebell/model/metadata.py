"""What a vhost is told about itself beside its name, and how that is written down."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harebell.base.durability import parse_durability
from harebell.base.errors import HarebellError
from harebell.base.names import did_you_mean

QUEUE_TYPES = ("classic", "quorum", "stream")
"""What may be the default type of a vhost's queues."""


class MetadataError(HarebellError):
    """Metadata that mean nothing; the text is a sentence that says what is allowed."""


@dataclass(frozen=True, slots=True)
class Metadata:
    """Metadata of one vhost. A change makes new ones.

    Args:
        description: for people.
        tags: for people and tools.
        default_queue_type: of queues declared without `x-queue-type`; "" for the broker's.
        durability: as `harebell.base.durability` reads it; "" for the broker's.
        tracing: whether messages are shown to the firehose.

    Raises:
        MetadataError: one of them means nothing.
    """

    description: str = ""
    tags: tuple[str, ...] = ()
    default_queue_type: str = ""
    durability: str = ""
    tracing: bool = False

    def __post_init__(self) -> None:
        for tag in self.tags:
            if not tag or "," in tag or tag != tag.strip():
                raise MetadataError(
                    f"the tag '{tag}' cannot be used: a tag has no comma, and no space at its ends"
                )
        kind = self.default_queue_type
        if kind and kind not in QUEUE_TYPES:
            nearest = did_you_mean(kind, QUEUE_TYPES, quote="'")
            raise MetadataError(f"the default queue type '{kind}' is unknown: {nearest}")
        if self.durability:
            try:
                parse_durability(self.durability)
            except ValueError as error:
                raise MetadataError(str(error)) from None

    def row(self) -> dict[str, Any]:
        """As it stands in the definitions."""
        return {
            "description": self.description,
            "tags": ",".join(self.tags),
            "default_queue_type": self.default_queue_type,
            "durability": self.durability,
            "tracing": self.tracing,
        }


def metadata_of(row: Mapping[str, Any]) -> Metadata:
    """Metadata from the definitions.

    Raises:
        MetadataError: this version does not know them.
    """
    return Metadata(
        row["description"],
        tuple(tag for tag in row["tags"].split(",") if tag),
        row["default_queue_type"],
        row["durability"],
        row["tracing"],
    )
