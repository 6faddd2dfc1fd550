"""The checker of the chaos harness finds every kind of wrong row that is planted before it."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.spark.outcome import KINDS, Inputs, Row, read_lake

BATCHES = 4


@pytest.fixture
def inputs() -> Inputs:
    made = Inputs(random.Random(7))
    made.more(100)
    return made


@pytest.fixture
def rows(inputs: Inputs) -> list[Row]:
    """What comes out when nothing is wrong."""
    found = list(inputs.expected().values())
    random.Random(8).shuffle(found)
    return found


def test_a_good_run_passes_in_any_order(inputs: Inputs, rows: list[Row]) -> None:
    verdict = inputs.judge(rows, range(BATCHES), BATCHES - 1)
    verdict.check("never shown")
    assert verdict.rows == len(rows) == 80


@pytest.mark.parametrize(
    ("kind", "plant", "words"),
    [
        ("lost", lambda rows: rows[1:], "never came out"),
        ("doubled", lambda rows: [*rows, rows[3]], "came out 2 times"),
        ("changed", lambda rows: [(rows[0][0], *rows[1][1:]), *rows[1:]], " is "),
        ("phantom", lambda rows: [*rows, (100, "", "")], "nobody sent it"),
        ("phantom", lambda rows: [*rows, (8, "", "")], "the SQL drops it"),
    ],
)
def test_a_planted_fault_is_found_and_no_other(
    inputs: Inputs, rows: list[Row], kind: str, plant: Callable[[list[Row]], list[Row]], words: str
) -> None:
    verdict = inputs.judge(plant(rows))
    assert [name for name in KINDS if getattr(verdict, name)] == [kind]
    with pytest.raises(AssertionError, match=f"seed 7: 1 violations\n  {kind}: .*{words}"):
        verdict.check("seed 7")


@pytest.mark.parametrize("batches", [[0, 1, 2, 3, 4], [0, 1, 1, 2, 3]])
def test_a_micro_batch_that_was_not_committed_once_is_found(
    inputs: Inputs, rows: list[Row], batches: list[int]
) -> None:
    assert len(inputs.judge(rows, batches, BATCHES - 1).uncommitted) == 1


# --- a lake, as Spark's file sink leaves it -------------------------------------------------------


def write_batch(lake: Path, batch: int, rows: list[Row], *, compact: bool = False) -> Path:
    """A micro-batch as a file and a line in the log, which is all that makes it count."""
    path = lake / f"part-{batch}.parquet"
    columns = list(zip(*rows, strict=True))
    named = dict(zip(("id", "text", "digest"), columns, strict=True))
    pq.write_table(pa.table({name: list(values) for name, values in named.items()}), path)
    log = lake / "_spark_metadata"
    log.mkdir(exist_ok=True)
    line = json.dumps({"path": f"file://{path}", "action": "add"})
    lines = ["v1", line]
    if compact:
        lines[1:1] = (log / f"{batch - 1}").read_text().splitlines()[1:]
    (log / f"{batch}{'.compact' if compact else ''}").write_text("\n".join(lines))
    return path


@pytest.fixture
def lake(rows: list[Row], tmp_path: Path) -> Path:
    """Four micro-batches, the first two drawn together."""
    directory = tmp_path / "lake"
    directory.mkdir()
    for batch in range(BATCHES):
        write_batch(directory, batch, rows[batch::BATCHES], compact=batch == 1)
    return directory


def test_a_good_lake_passes(inputs: Inputs, lake: Path) -> None:
    found = read_lake(lake)
    inputs.judge(found.rows, found.batches, BATCHES - 1).check("never shown")
    assert found.batches == [0, 1, 2, 3]


def lose_a_batch(lake: Path, inputs: Inputs) -> None:
    (lake / "_spark_metadata" / "2").unlink()


def write_a_batch_again(lake: Path, inputs: Inputs) -> None:
    rows = [row for row in read_lake(lake).rows if row[0] % 10 == 0]
    write_batch(lake, BATCHES, rows)


def write_what_nobody_sent(lake: Path, inputs: Inputs) -> None:
    write_batch(lake, BATCHES, [(12_345, "", "")])


@pytest.mark.parametrize(
    ("plant", "kinds"),
    [
        (lose_a_batch, {"lost"}),
        (write_a_batch_again, {"doubled", "uncommitted"}),
        (write_what_nobody_sent, {"phantom", "uncommitted"}),
    ],
)
def test_planted_faults_in_a_lake_are_found(
    inputs: Inputs, lake: Path, plant: Callable[[Path, Inputs], None], kinds: set[str]
) -> None:
    plant(lake, inputs)
    found = read_lake(lake)
    verdict = inputs.judge(found.rows, found.batches, BATCHES - 1)
    assert {kind for kind in KINDS if getattr(verdict, kind)} == kinds
