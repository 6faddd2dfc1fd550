"""Metadata of a vhost, and their stored form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from harebell.base.durability import parse_durability
from harebell.base.errors import HarebellError
from harebell.base.names import did_you_mean

QUEUE_TYPES = ("classic", "quorum", "stream")
"""Valid default queue types of a vhost."""


class MetadataError(HarebellError):
    """Invalid metadata; the text is a sentence that says what is allowed."""


class Metadata(Struct, frozen=True):
    """The metadata of one vhost; immutable.

    Args:
        description: a description for people.
        tags: tags for people and tools.
        default_queue_type: queue type without `x-queue-type`; "" for that of the broker.
        durability: see `harebell.base.durability`; "" for that of the broker.
        tracing: whether the firehose is on.

    Raises:
        MetadataError: one of them is invalid.
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
        """Return the metadata as they are stored."""
        return {**asdict(self), "tags": ",".join(self.tags)}


def metadata_of(row: Mapping[str, Any]) -> Metadata:
    """Return the metadata of a stored row.

    Raises:
        MetadataError: this version does not support them.
    """
    members = {name: row[name] for name in Metadata.__struct_fields__}
    members["tags"] = tuple(tag for tag in row["tags"].split(",") if tag)
    return Metadata(**members)
