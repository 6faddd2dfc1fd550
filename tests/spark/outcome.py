"""What went in, what the SQL makes of it, and what came out: every row once, or what is wrong.

    lost         a row is missing
    doubled      a row is there more than once
    changed      a row is not what the SQL makes of what was sent
    phantom      a row that nobody sent, or that the SQL drops
    uncommitted  the sink has a micro-batch that Spark has not committed, or one of it twice

The output of a query is judged after the query has processed everything.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

SQL = """
SELECT /*+ REPARTITION(2) */ value.id, value.text, md5(concat(value.id, value.text)) AS digest
FROM {source} WHERE value.id % 5 <> 3
"""
"""What the queries do with their rows; the shuffle has them come in another order every time."""

KINDS = ("lost", "doubled", "changed", "phantom", "uncommitted")
_SHOWN = 5
_LETTERS = 'abcdefghij äöü€\U0001f426"\\\n'
_LONGEST = 60

Row = tuple[int, str, str]
"""What comes out: number, text, and a digest of both."""


@dataclass
class Verdict:
    """What was found, each violation as a sentence."""

    rows: int = 0
    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    phantom: list[str] = field(default_factory=list)
    uncommitted: list[str] = field(default_factory=list)

    def check(self, where: str) -> None:
        """Raise AssertionError when something is wrong.

        Args:
            where: which output, and how to come back here; it leads the message.
        """
        found = [f"{kind}: {text}" for kind in KINDS for text in getattr(self, kind)]
        if found:
            shown = "\n  ".join(found[:_SHOWN])
            raise AssertionError(f"{where}: {len(found)} violations\n  {shown}")


class Inputs:
    """The rows that were sent, made from a seed.

    Args:
        rng: makes the texts.
    """

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._texts: list[str] = []

    def __len__(self) -> int:
        return len(self._texts)

    def more(self, count: int) -> list[bytes]:
        """The bodies of so many new rows."""
        first = len(self._texts)
        for _ in range(count):
            length = self._rng.randrange(_LONGEST)
            self._texts.append("".join(self._rng.choices(_LETTERS, k=length)))
        return [
            json.dumps({"id": number, "text": self._texts[number]}).encode()
            for number in range(first, first + count)
        ]

    def expected(self) -> dict[int, Row]:
        """What the SQL makes of all of them."""
        return {
            number: (number, text, hashlib.md5(f"{number}{text}".encode()).hexdigest())
            for number, text in enumerate(self._texts)
            if number % 5 != 3
        }

    def judge(
        self, rows: Iterable[Row], batches: Sequence[int] = (), committed: int | None = None
    ) -> Verdict:
        """Compare with what came out.

        Args:
            rows: all of them.
            batches: the micro-batches that the sink says it has, where it says so.
            committed: the last one that Spark has committed.
        """
        verdict = Verdict()
        expected = self.expected()
        times: Counter[int] = Counter()
        for row in rows:
            number = row[0]
            verdict.rows += 1
            times[number] += 1
            if number not in expected:
                why = "the SQL drops it" if 0 <= number < len(self) else "nobody sent it"
                verdict.phantom.append(f"row {number} came out, and {why}")
            elif row != expected[number]:
                verdict.changed.append(f"row {number} is {row!r}, not {expected[number]!r}")
        verdict.lost += [f"row {number} never came out" for number in expected.keys() - times]
        verdict.doubled += [
            f"row {number} came out {count} times" for number, count in times.items() if count > 1
        ]
        for batch, count in sorted(Counter(batches).items()):
            if count > 1:
                verdict.uncommitted.append(f"micro-batch {batch} is in the sink {count} times")
            if committed is not None and batch > committed:
                verdict.uncommitted.append(
                    f"micro-batch {batch} is in the sink, and Spark has committed up to {committed}"
                )
        return verdict


@dataclass(frozen=True)
class Lake:
    """What Spark's file sink has committed.

    Args:
        rows: those of its files.
        batches: the micro-batches in its log, as far as they are not drawn together.
    """

    rows: list[Row]
    batches: list[int]


def read_lake(directory: Path) -> Lake:
    """Read Parquet as Spark reads what its file sink wrote: only files that are in its log.

    _spark_metadata/9.compact    the files of micro-batches 0 to 9, one in a line
    _spark_metadata/10           those of micro-batch 10
    """
    log = directory / "_spark_metadata"
    compact = [int(path.name.removesuffix(".compact")) for path in log.glob("*.compact")]
    single = sorted(int(path.name) for path in log.iterdir() if path.name.isdigit())
    names = [f"{max(compact)}.compact"] if compact else []
    since = [number for number in single if not compact or number > max(compact)]
    rows: list[Row] = []
    for name in names + [str(number) for number in since]:
        for line in (log / name).read_text().splitlines()[1:]:
            path = Path(json.loads(line)["path"].removeprefix("file://"))
            table: pa.Table = pq.read_table(path)
            columns = [table[name].to_pylist() for name in ("id", "text", "digest")]
            rows += zip(*columns, strict=True)
    return Lake(rows, sorted(set(single) | set(compact)))


def row_of(body: bytes) -> Row:
    """The row of a message that a query has published."""
    found = json.loads(body)
    return found["id"], found["text"], found["digest"]


def last_of(directory: Path) -> int:
    """The highest number of a file in one of Spark's logs; -1 where there is none."""
    if not directory.is_dir():
        return -1
    return max((int(path.name) for path in directory.iterdir() if path.name.isdigit()), default=-1)
