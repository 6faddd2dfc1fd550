"""The manifest of a backup: which files it has, and where their bytes are.

    TARGET/
      000001-20260131T030000Z/       a backup
          files/queues/<identity>/...    the files that no earlier backup has, as far as they belong
          files/definitions.sqlite       to it
          files/stores/2/...             the same of store 2, of a broker with several workers
          manifest                       written last: without it there is no backup
      000002-20260201T030000Z/

A manifest is text in lines that end with a line feed:

    {"harebell_backup": 1, "node": ..., "version": ...,                  JSON, in one line
     "store": ..., "commit": ..., "began": ...,
     "stores": ...}                                                      of several workers, with 2
                                                                         in place of 1 above
    <size> <SHA-256> <backup> <mark> <path>                              one line per file
    end <number of files> <SHA-256 of all lines before>

The bytes of a file are in `files/<path>` of the backup that its line names: this one or an earlier
one. The mark tells whether the file of the data directory is still the same one: its inode and the
time of its last change.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from msgspec import Struct, field

from harebell.base.errors import StoreError
from harebell.base.printable import printable
from harebell.store.definitions import NAME as DEFINITIONS
from harebell.store.limits import BACKUP_LINES_PER_PAUSE, BACKUP_STORES

MANIFEST = "manifest"
FILES = "files"
VERSION, VERSION_OF_SEVERAL = 1, 2
"""The format with one store, and that with several, which earlier versions cannot restore."""
_NAME = re.compile(r"\d{6,}-\d{8}T\d{6}Z")
_LINE = re.compile(
    r"(\d{1,19}) ([0-9a-f]{64}) (\d{6,}-\d{8}T\d{6}Z) ([0-9-]{1,60}) "
    rf"((?:stores/[1-9][0-9]?/)?"
    rf"(?:{re.escape(DEFINITIONS)}|queues/[0-9A-Za-z-]{{1,99}}/[0-9A-Za-z]{{1,99}}\.seg))"
)
_VERSION_KEY = "harebell_backup"


class BackupError(StoreError):
    """A backup cannot be made, read or restored; the text is a sentence for the user."""


class BackedUp(NamedTuple):
    """A file of a backup.

    Args:
        path: in the data directory.
        size: in bytes.
        digest: its SHA-256, in hexadecimal.
        place: the name of the backup that has its bytes.
        mark: tells whether the file of the data directory is the same one.
    """

    path: str
    size: int
    digest: str
    place: str
    mark: str

    @property
    def stored(self) -> str:
        """Return the path of its bytes in the target."""
        return f"{self.place}/{FILES}/{self.path}"

    @property
    def line(self) -> str:
        """Return its line in a manifest."""
        return f"{self.size} {self.digest} {self.place} {self.mark} {self.path}\n"


class Manifest(Struct):
    """The content of a backup.

    Args:
        name: of the backup.
        about: its origin: "node", "version", "store", "commit", and "began", a time; the number of
            "stores" if there are several.
        files: by their paths.
        pause: called now and then while it is encoded, to let other threads run.
    """

    name: str
    about: dict[str, Any]
    files: dict[str, BackedUp] = field(default_factory=dict)
    pause: Callable[[], object] = int

    def encode(self) -> Iterator[bytes]:
        """Yield the lines of the manifest."""
        digest = hashlib.sha256()
        version = VERSION if self.stores == 1 else VERSION_OF_SEVERAL
        about = json.dumps({_VERSION_KEY: version, **self.about})
        lines = (file.line for file in self.files.values())
        for number, line in enumerate(itertools.chain((f"{about}\n",), lines), 1):
            data = line.encode("ascii")
            digest.update(data)
            yield data
            if number % BACKUP_LINES_PER_PAUSE == 0:
                self.pause()
        yield f"end {len(self.files)} {digest.hexdigest()}\n".encode()

    @property
    def stores(self) -> int:
        """Return how many stores it has."""
        return int(self.about.get("stores", 1))

    def definitions(self) -> list[str]:
        """Return the paths of the definitions of all stores, which every backup has."""
        others = (f"stores/{number}/{DEFINITIONS}" for number in range(2, self.stores + 1))
        return [DEFINITIONS, *others]

    @property
    def places(self) -> set[str]:
        """Return the names of the backups that have bytes of this one."""
        return {file.place for file in self.files.values()}


def decode(name: str, content: bytes, shown: str, pause: Callable[[], object] = int) -> Manifest:
    """Decode a manifest.

    Args:
        name: of the backup.
        content: the file.
        shown: the target, for errors.
        pause: called now and then, to let other threads run.

    Raises:
        BackupError: it is damaged, or of a later version.
    """
    where = f"the backup {name} in {shown}"
    before, _, last = content.removesuffix(b"\n").rpartition(b"\n")
    try:
        first, *lines = before.decode("ascii").split("\n")
        about = json.loads(first)
        version = about.pop(_VERSION_KEY)
    except (ValueError, AttributeError, KeyError, RecursionError):
        raise BackupError(f"{where} is damaged: its manifest is no list of files") from None
    digest = hashlib.sha256(before + b"\n").hexdigest()
    if last != f"end {len(lines)} {digest}".encode():
        raise BackupError(f"{where} is damaged: the checksum of its manifest is wrong")
    if version not in (VERSION, VERSION_OF_SEVERAL):
        raise BackupError(
            f"{where} has format {printable(str(version))}, and this version of Harebell reads "
            f"{VERSION_OF_SEVERAL}: use the version that made it"
        )
    manifest = Manifest(name, about, dict(_files(lines, where, pause)), pause)
    stores = about.get("stores", 1)
    if (
        not isinstance(stores, int)
        or not 1 <= stores <= BACKUP_STORES
        or not manifest.files.keys() >= set(manifest.definitions())
        or not isinstance(about.get("began"), str)
    ):
        raise BackupError(f"{where} is damaged: its manifest lacks the definitions or its time")
    return manifest


def _files(
    lines: Iterable[str], where: str, pause: Callable[[], object]
) -> Iterator[tuple[str, BackedUp]]:
    for number, line in enumerate(lines, 1):
        if number % BACKUP_LINES_PER_PAUSE == 0:
            pause()
        match = _LINE.fullmatch(line)
        if match is None:
            raise BackupError(f"{where} is damaged: a line of its manifest names no file")
        yield match[5], BackedUp(match[5], int(match[1]), match[2], match[3], match[4])


def is_name(name: str) -> bool:
    """Return whether this is the name of a backup."""
    return _NAME.fullmatch(name) is not None


def next_name(names: Iterable[str], moment: str) -> str:
    """Return the name of the next backup: names are in the order of their numbers.

    Args:
        names: of all backups, finished or not.
        moment: the time, such as 20260131T030000Z.
    """
    return f"{1 + max(map(number_of, names), default=0):06d}-{moment}"


def number_of(name: str) -> int:
    """Return the number of a backup."""
    return int(name.partition("-")[0])
