"""What the checkpoint of a pipeline says about the claims of its last finished micro-batch."""

from __future__ import annotations

import json
from pathlib import Path

from harebell.pipeline.run.logged_claims import claims_of
from harebell.spark.reading.offsets import ClaimOffset


def log(checkpoint: Path, kind: str, number: int, *offsets: object) -> None:
    """A file as Spark writes it, with its checksum beside it."""
    directory = checkpoint / kind
    directory.mkdir(exist_ok=True)
    lines = ["v1", '{"batchWatermarkMs":0}', *(json.dumps(offset) for offset in offsets)]
    (directory / str(number)).write_text("\n".join(lines))
    (directory / f".{number}.crc").write_bytes(b"crc")


def claim(number: int) -> dict[str, object]:
    return {"orders": {"generation": "ab", "group": "spark-1", "claim": number}}


def test_claims_are_those_of_the_last_micro_batch_that_spark_has_finished(tmp_path: Path) -> None:
    assert list(claims_of(tmp_path, "commits")) == []
    stream = {"events": {"generation": "cd", "position": 7}}
    for number in (9, 10, 11):
        log(tmp_path, "offsets", number, claim(number + 1), stream)
    assert list(claims_of(tmp_path, "commits")) == []
    for number in (9, 10):
        log(tmp_path, "commits", number)
    assert list(claims_of(tmp_path, "commits")) == [("orders", ClaimOffset("ab", "spark-1", 11))]


def test_offsets_of_plain_amqp_and_of_other_formats_are_no_claims(tmp_path: Path) -> None:
    log(tmp_path, "commits", 0)
    log(tmp_path, "offsets", 0, {"position": 3, "spool": "4f"}, {"topic": {"0": 5}}, 17)
    assert list(claims_of(tmp_path, "commits")) == []
