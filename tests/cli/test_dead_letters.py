"""Dead letters on the command line: shown in groups, saved, discarded, brought back, retried."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from harebell.client.blocking import connect
from tests.cli.conftest import done, error_of, run
from tests.patience import eventually
from tests.running import RunningBroker

BODIES = [b'{"n": 1}', b"\xff\x00", "ä\u202e".encode()]


@pytest.fixture
def letters(broker: RunningBroker) -> Iterator[RunningBroker]:
    """A broker with three dead letters of one group."""
    with connect(broker.address()) as connection:
        channel = connection.channel()
        for name in ("failed", "held"):
            channel.declare_queue(name, durable=True)
        to_failed = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "failed"}
        channel.declare_queue("paid", durable=True, arguments=to_failed)
        for number, body in enumerate(BODIES):
            error = {"x-exception-message": f"order {number} is late"}
            channel.publish(body, routing_key="paid", persistent=True, headers=error)
            channel.get("paid").reject()
        assert eventually(lambda: ready(broker, "failed") == 3)
        yield broker
        for name in ("failed", "held", "paid"):
            channel.delete_queue(name)


def ready(broker: RunningBroker, queue: str) -> int:
    shown = json.loads(done(broker, "queues", "show", queue, "--json"))
    count: int = shown["messages_ready"]
    return count


def test_a_group_is_discarded_brought_back_and_tried_again(letters: RunningBroker) -> None:
    (group,) = json.loads(done(letters, "dead-letters", "list", "--json"))["groups"]
    assert (group["origin"], group["reason"], group["messages"]) == ("paid", "rejected", 3)
    assert group["where"] in done(letters, "dead-letters", "list", "--queue", "failed")
    acts = ("dead-letters", "discard", "failed", group["where"])
    job = json.loads(done(letters, *acts, "--reason", "old", "--hold", "held", "--json"))["id"]
    assert eventually(lambda: ready(letters, "held") == 3)
    assert json.loads(done(letters, "jobs", "show", str(job), "--json"))["reason"] == "old"
    assert "goes through 3 messages" in done(letters, "dead-letters", "undo", str(job))
    assert eventually(lambda: ready(letters, "failed") == 3)
    done(letters, "dead-letters", "retry", "failed", group["where"], "--payload", "again")
    assert eventually(lambda: ready(letters, "paid") == 3)
    lines = done(letters, "queues", "browse", "paid", "--json").splitlines()
    assert [json.loads(line)["payload"] for line in lines] == ["again"] * 3


def test_dead_letters_are_saved_as_lines_and_as_parquet(
    letters: RunningBroker, tmp_path: Path
) -> None:
    lines, table = tmp_path / "saved.ndjson", tmp_path / "saved.parquet"
    said = done(letters, "dead-letters", "export", "failed", str(lines))
    assert said == f"3 messages of queue 'failed' in vhost '/': {lines}"
    rows = [json.loads(line) for line in lines.read_text().splitlines()]
    assert [row["value"] for row in rows] == ['{"n": 1}', "/wA=", BODIES[2].decode()]
    assert rows[1]["value_encoding"] == "base64"
    assert rows[0]["headers"]["x-first-death-queue"] == "paid"
    done(letters, "dead-letters", "export", "failed", str(table))
    found = pq.read_table(table).to_pylist()
    assert [row["value"] for row in found] == BODIES
    assert json.loads(found[0]["headers"])["x-death"][0]["queue"] == "paid"
    assert found[0]["timestamp"].year >= 2026
    # What is there is not written over, and a condition without a match makes an empty file.
    again = run(letters, "dead-letters", "export", "failed", str(table))
    assert error_of(again).endswith(f"{table} exists: name another file")
    none = tmp_path / "none.parquet"
    done(letters, "dead-letters", "export", "failed", str(none), "--where", "offset < 0")
    assert pq.read_table(none).num_rows == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        *("none.parquet", "saved.ndjson", "saved.parquet")
    ]


def test_a_wrong_export_leaves_no_file(letters: RunningBroker, tmp_path: Path) -> None:
    saved = tmp_path / "saved.ndjson"
    wrong = run(letters, "dead-letters", "export", "failed", str(saved), "--where", "nope = 1")
    assert "there is no column 'nope'" in error_of(wrong)
    absent = run(letters, "dead-letters", "export", "nope", str(saved))
    assert "no queue 'nope'" in error_of(absent)
    nowhere = run(letters, "dead-letters", "export", "failed", str(tmp_path / "no" / "file"))
    assert "cannot write" in error_of(nowhere)
    assert list(tmp_path.iterdir()) == []
