"""The Parquet files of a tier, on a path or in an object store.

    <place>/part-<first>-<end>-<rows>-<checksum>.parquet    offsets from first to before end
    <place>/_tier/tier.json                                 the stream, its log and the log's eras
    <place>/_tier/<uuid>.parquet                            a file that is not verified yet

A file is written under a name that readers ignore, read back, compared by checksum and by its
offsets, and only then renamed. So every file with the name of a part is complete.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import uuid
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harebell.pipeline.errors import PipelineError
from harebell.pipeline.sinks.staging import sync
from harebell.spark.reading.positions.tier import (
    ABOUT,
    ERAS,
    HIDDEN,
    TierPart,
    lost_parts,
    opened,
    parts_in,
    shared_offsets,
    shown,
    storage_errors,
)

if TYPE_CHECKING:
    import pyarrow as pa


class TierFiles:
    """The files of one tier.

    Args:
        place: a path, or an address such as s3://bucket/events.
    """

    def __init__(self, place: str) -> None:
        from pyarrow import fs

        self.place = shown(place)
        with self._errors():
            self._files, self._base = opened(place)
        self._local = isinstance(self._files, fs.LocalFileSystem)

    def take_up(
        self, vhost: str, stream: str, generation: str, eras: str, end: int
    ) -> list[TierPart]:
        """Check that the place is of this stream; an empty place becomes its.

        Args:
            vhost: the name of the vhost.
            stream: the name of the stream.
            generation: identity of its log.
            eras: of its offsets; "" if unknown.
            end: where it ends.

        Returns:
            The files, in the order of their offsets.

        Raises:
            PipelineError: it is of another stream, the broker has lost what a file has, or the
                place cannot be used.
        """
        about = {"vhost": vhost, "stream": stream, "generation": generation}
        with self._errors():
            stored = self._read(f"{HIDDEN}/{ABOUT}")
            if stored is None:
                self._files.create_dir(f"{self._base}/{HIDDEN}", recursive=True)
            listed = about if stored is None else json.loads(stored)
        before = listed.pop(ERAS, "")
        if listed != about:
            which = (
                f"an earlier stream {stream} that was deleted"
                if (listed["vhost"], listed["stream"]) == (vhost, stream)
                else f"the stream {listed['stream']} in vhost {listed['vhost']}"
            )
            raise PipelineError(f"{self.place} has messages of {which}: use another place")
        parts = self.parts()
        said = lost_parts(self.place, parts, min(end, shared_offsets(before, eras)))
        if said:
            raise PipelineError(said)
        # After the comparison: the broker has all that the files have, so its history goes on
        # theirs.
        if stored is None or eras != before:
            self._describe(about | {ERAS: eras})
        return parts

    def parts(self) -> list[TierPart]:
        """Return the files, in the order of their offsets.

        Raises:
            PipelineError: two of them overlap, or the place cannot be read.
        """
        with self._errors():
            parts = parts_in(self._files, self._base)
        for before, after in itertools.pairwise(parts):
            if after.first < before.end:
                raise PipelineError(
                    f"the files {before.name} and {after.name} in {self.place} have the same "
                    "messages: two jobs wrote there; remove the one whose offsets others have"
                )
        return parts

    def add(self, rows: pa.Table, first: int, end: int) -> TierPart:
        """Write, verify and publish a file.

        Args:
            rows: its messages.
            first: its first offset.
            end: the offset after its last.

        Raises:
            PipelineError: it cannot be written, or is not what was written.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        out = pa.BufferOutputStream()
        pq.write_table(rows, out, compression="zstd")
        data = out.getvalue()
        checksum = hashlib.sha256(data).hexdigest()
        part = TierPart(
            f"part-{first:020}-{end:020}-{rows.num_rows}-{checksum}.parquet",
            *(first, end, rows.num_rows, checksum),
        )
        hidden = f"{HIDDEN}/{uuid.uuid4().hex}.parquet"
        with self._errors():
            self._write(hidden, data)
            try:
                self._verify(hidden, part)
            except BaseException:
                self._files.delete_file(f"{self._base}/{hidden}")
                raise
            self._files.move(f"{self._base}/{hidden}", f"{self._base}/{part.name}")
            self._sync("")
        return part

    def verify(self, part: TierPart) -> None:
        """Read a file back, compare it with its name, and sync that name.

        The job that wrote the file may have ended before it had synced the directory.

        Raises:
            PipelineError: it is damaged, or cannot be read.
        """
        with self._errors():
            self._verify(part.name, part)
            self._sync("")

    def clear(self) -> None:
        """Remove files that were not verified: those of jobs that were killed."""
        from pyarrow import fs

        with self._errors():
            selector = fs.FileSelector(f"{self._base}/{HIDDEN}", allow_not_found=True)
            for info in self._files.get_file_info(selector):
                if info.base_name.endswith(".parquet"):
                    self._files.delete_file(info.path)

    def _verify(self, name: str, part: TierPart) -> None:
        import pyarrow as pa
        import pyarrow.compute as pc
        import pyarrow.parquet as pq

        # From the store, not from memory: what counts is what a reader gets.
        data = self._read(name)
        if data is None or hashlib.sha256(data).hexdigest() != part.checksum:
            raise PipelineError(
                f"the file {name} in {self.place} is not what was written to it: its checksum "
                "differs"
            )
        offsets = pq.read_table(pa.BufferReader(data))["offset"]
        span = (pc.min(offsets).as_py(), pc.max(offsets).as_py() + 1, len(offsets))
        if span != (part.first, part.end, part.rows):
            raise PipelineError(
                f"the file {name} in {self.place} has {span[2]} messages from offset {span[0]} to "
                f"{span[1] - 1}, and should have {part.rows} from {part.first} to {part.end - 1}"
            )

    def _read(self, name: str) -> bytes | None:
        try:
            with self._files.open_input_stream(f"{self._base}/{name}") as file:
                return bytes(file.read())
        except FileNotFoundError:
            return None

    def _describe(self, about: dict[str, str]) -> None:
        """Store which stream the tier is of; a crash leaves the old or the new description."""
        with self._errors():
            self._write(f"{HIDDEN}/{ABOUT}.new", json.dumps(about).encode())
            place = f"{self._base}/{HIDDEN}/{ABOUT}"
            self._files.move(f"{place}.new", place)
            self._sync(HIDDEN)

    def _write(self, name: str, data: Any) -> None:
        with self._files.open_output_stream(f"{self._base}/{name}") as file:
            file.write(data)
        self._sync(name)

    def _sync(self, name: str) -> None:
        """Sync a file or the directory; an object store has done it when it answers."""
        if self._local:
            sync(Path(self._base, name))

    def _errors(self) -> AbstractContextManager[None]:
        what = f"the tier {self.place} cannot be used"
        lost = "no message is lost: the stream keeps what the tier does not have"
        return storage_errors(PipelineError, what, lost)
