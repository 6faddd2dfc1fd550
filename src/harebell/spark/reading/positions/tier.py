"""Read a stream and its tier as one: old messages from Parquet files, the others from the broker.

    tier      part-<first>-<end>-... | part-<first>-<end>-...      made by `harebell lake tier`
    broker                    first ................................ end

What the tier has is read from it, also while the broker has it still. A task looks by itself how
far the tier is, and looks again for what the broker has no more, so it does not matter what
retention removes after planning.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import fs
from pyarrow import parquet as pq

from harebell.base.eras import shared_until
from harebell.base.errors import HarebellError
from harebell.spark.options.values import OptionError
from harebell.spark.reading.errors import SourceError

if TYPE_CHECKING:
    from harebell.client.bulk import Span
    from harebell.spark.options.source_options import Options

HIDDEN = "_tier"
ABOUT = "tier.json"
ERAS = "eras"
"""In that file: the eras of the offsets (`harebell.base.eras`)."""
_ENDLESS = 2**64
_STREAM = "stream"
_PART = re.compile(r"part-(\d{20})-(\d{20})-(\d+)-([0-9a-f]{64})\.parquet")
_PASSWORD = re.compile(r"://[^/@\s]*@")
_FIRST: dict[tuple[str, str, str], int] = {}
"""The first offset of a tier, by its place and the identity and eras of the stream's log."""


@dataclass(frozen=True)
class TierPart:
    """A file of a tier.

    Args:
        name: of the file, in the directory of the stream.
        first: its first offset.
        end: the offset after its last.
        rows: number of its messages.
        checksum: SHA-256 of the file.
    """

    name: str
    first: int
    end: int
    rows: int
    checksum: str


def parts_in(files: fs.FileSystem, directory: str) -> list[TierPart]:
    """Return the files of a tier in a directory, in the order of their offsets.

    Raises:
        OSError: the directory cannot be read.
    """
    listed = files.get_file_info(fs.FileSelector(directory, allow_not_found=True))
    parts = [part for info in listed if (part := part_of(info.base_name)) is not None]
    return sorted(parts, key=lambda part: part.first)


def part_of(name: str) -> TierPart | None:
    """Return what the name of a file says; None if it is no part of a tier."""
    match = _PART.fullmatch(name)
    if match is None:
        return None
    first, end, rows = (int(match[number]) for number in (1, 2, 3))
    return TierPart(name, first, end, rows, match[4])


def shared_offsets(eras: str, others: str) -> int:
    """Return the first offset that two histories do not share, as far as both are known."""
    return shared_until(eras, others) if eras and others else _ENDLESS


def lost_parts(place: str, parts: list[TierPart], shared: int) -> str:
    """Return a sentence about files with messages that the broker has lost; "" without one.

    Args:
        place: of the tier.
        parts: its files.
        shared: the first offset that the tier and the broker may have as different messages.
    """
    lost = [part for part in parts if part.end > shared]
    if not lost:
        return ""
    return (
        f"{len(lost)} of the files of the tier {place}, from {lost[0].name} on, have messages that "
        "the broker has lost: its data is of an older date, and it gives the offsets from "
        f"{shared} on to other messages. Move these files elsewhere to keep what they have, and "
        "run `harebell lake tier` again: the stream has what comes before them"
    )


def shown(text: str) -> str:
    """Return a place, or a text that has one, without its password."""
    return _PASSWORD.sub("://***@", text)


def opened(place: str) -> tuple[fs.FileSystem, str]:
    """Return the file system of a path or an address, and the path in it."""
    if "://" not in place:
        return fs.LocalFileSystem(), str(Path(place).expanduser().resolve())
    files, base = fs.FileSystem.from_uri(place)
    return files, base


@contextmanager
def storage_errors(kind: type[HarebellError], what: str, comfort: str) -> Iterator[None]:
    """Convert errors of a file system, an object store or a file into one sentence.

    Args:
        kind: the error to raise.
        what: begins the sentence: what cannot be done.
        comfort: ends it: what is not lost.
    """
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        reason = getattr(error, "strerror", None) or str(error).partition("\n")[0]
        raise kind(f"{what}: {shown(reason)}; {comfort}") from error


class Tier:
    """The tier of a stream, for reading.

    Args:
        place: a path, or an address such as s3://bucket/events.

    Raises:
        SourceError: the place cannot be used.
    """

    def __init__(self, place: str) -> None:
        self._place = shown(place)
        with self._errors():
            self._files, self._base = opened(place)

    def check(self, vhost: str, stream: str, generation: str, eras: str) -> list[TierPart]:
        """Check that the tier is of this stream, and return its files.

        Raises:
            SourceError: it is of another one, the broker has lost a part of it, or there is no
                tier.
        """
        with self._errors():
            try:
                with self._files.open_input_stream(f"{self._base}/{HIDDEN}/{ABOUT}") as file:
                    listed = json.loads(file.read())
            except FileNotFoundError:
                raise SourceError(
                    f"there is no tier at {self._place}, which the option tier names: "
                    f"`harebell lake tier {stream} --to {self._place}` makes it"
                ) from None
        if (listed["vhost"], listed["stream"]) != (vhost, stream):
            raise SourceError(
                f"the tier {self._place} has messages of the stream {listed['stream']!r} in vhost "
                f"{listed['vhost']!r}, and not of {stream!r} in {vhost!r}: correct the option tier"
            )
        if listed["generation"] != generation:
            raise SourceError(
                f"the tier {self._place} has messages of an earlier stream {stream!r} that was "
                "deleted, whose offsets are others: read it with "
                f'spark.read.parquet("{self._place}"), and leave the option tier out'
            )
        parts = self.parts()
        # The tier may have got more since the end of the stream was looked up.
        said = lost_parts(self._place, parts, shared_offsets(listed.get(ERAS, ""), eras))
        if said:
            raise SourceError(said)
        return parts

    def parts(self) -> list[TierPart]:
        """Return the files, in the order of their offsets."""
        with self._errors():
            return parts_in(self._files, self._base)

    def batches(
        self, part: TierPart, schema: pa.Schema, first: int, end: int, rows: int
    ) -> Iterator[pa.RecordBatch]:
        """Yield the messages of a file between two offsets.

        Args:
            part: the file.
            schema: the wanted columns.
            first: first offset.
            end: offset after the last.
            rows: most rows of a batch.
        """
        # The offsets say which rows are asked for, whether or not Spark reads that column.
        columns = list(dict.fromkeys([*schema.names, "offset"]))
        with self._errors(), self._files.open_input_file(f"{self._base}/{part.name}") as file:
            for batch in pq.ParquetFile(file).iter_batches(rows, columns=columns):
                offsets = batch.column("offset")
                chosen = batch
                # Only the batches at both ends of the range have rows that are not asked for.
                if offsets[0].as_py() < first or offsets[-1].as_py() >= end:
                    chosen = batch.filter(
                        pc.and_(pc.greater_equal(offsets, first), pc.less(offsets, end))
                    )
                if chosen.num_rows:
                    arrays = [_fitted(chosen.column(field.name), field.type) for field in schema]
                    yield pa.RecordBatch.from_arrays(arrays, schema=schema)

    def position_at(self, time_ms: int) -> int | None:
        """Return the offset of the first message of a time or later; None without one."""
        moment = pa.scalar(time_ms * 1000, pa.timestamp("us", tz="UTC"))
        for part in self.parts():
            with (
                self._errors(),
                self._files.open_input_file(f"{self._base}/{part.name}") as file,
            ):
                table = pq.read_table(file, columns=["offset", "timestamp"])
            later = table.filter(pc.greater_equal(table["timestamp"], moment))
            if later.num_rows:
                return int(later["offset"][0].as_py())
        return None

    def _errors(self) -> AbstractContextManager[None]:
        what = f"the tier {self._place} cannot be read"
        return storage_errors(
            SourceError, what, "the query goes on from its checkpoint when it can"
        )


def check_kind(options: Options, kind: str) -> None:
    """Check that the option tier is about a stream.

    Raises:
        OptionError: it is not.
    """
    if options.tier is not None and kind != _STREAM:
        raise OptionError(
            f"the option tier belongs to streams, and {options.queue!r} is a {kind} queue, whose "
            "messages are in no tier: leave it out"
        )


def with_tier(span: Span, eras: str, options: Options, time_ms: int) -> Span:
    """Return the positions of a stream together with those of its tier.

    Args:
        span: what the broker has.
        eras: of its positions; "" if unknown.
        options: with a tier.
        time_ms: the time that `span.position` is about; 0 for none.

    Raises:
        SourceError: the tier cannot be read, is of another stream, or has what the broker lost.
    """
    place = options.tier
    assert place is not None, "only asked for with a tier"
    check_kind(options, span.kind)
    tier_of = (place, span.generation, eras)
    first = _FIRST.get(tier_of)
    if first is None or (time_ms and span.position <= span.first):
        tier = Tier(place)
        parts = tier.check(options.url.vhost, options.queue, span.generation, eras)
        if not parts:
            return span
        # Files are only added, so the first one stays the first.
        first = _FIRST[tier_of] = parts[0].first
        # Where the broker names its first message, an older one in the tier may be the right one.
        if time_ms and span.position <= span.first:
            position = tier.position_at(time_ms)
            if position is not None:
                span = replace(span, position=min(span.position, position))
    if first >= span.first:
        return span
    more = span.first - first
    size = span.octets // max(1, span.messages)
    return replace(
        span, first=first, messages=span.messages + more, octets=span.octets + more * size
    )


def _fitted(array: Any, kind: pa.DataType) -> pa.Array:
    """Return an array with this type, which may have only some of its fields."""
    if array.type.equals(kind):
        return array
    if not pa.types.is_struct(kind):
        return array.cast(kind)
    children = [_fitted(array.field(field.name), field.type) for field in kind]
    return pa.StructArray.from_arrays(children, fields=list(kind), mask=array.is_null())
