"""`harebell pipeline archive`, `replay`, `mirror` and `stats` as people type them.

The commands run in this process, where they find the session of the tests.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from harebell.cli.main import harebell
from harebell.pipeline.builtin import builtin_pipelines as shipped
from harebell.pipeline.hosting import host
from harebell.pipeline.registry import state_of
from harebell.pipeline.spec.description import Trigger
from harebell.pipeline.views import View
from tests.spark.asking import taken_bodies

pytestmark = pytest.mark.timeout(1_200)

Command = Callable[..., Result]


@pytest.fixture
def command(spark: SparkSession, broker_url: str, tmp_path: Path) -> Command:
    """Runs an action of `harebell pipeline`."""
    assert spark.getActiveSession() is not None, "the commands use it"
    about = {"HAREBELL_URL": broker_url, "HAREBELL_PIPELINES": str(tmp_path / "registry")}

    def run(*arguments: str) -> Result:
        return CliRunner().invoke(harebell, ["pipeline", *arguments], env=about)

    return run


def fill(channel: Any, queue: str, numbers: range) -> None:
    for number in numbers:
        channel.basic_publish("", queue, b"%d" % number)


def test_an_archive_is_compacted_and_replayed_from_where_it_stopped(
    command: Command, channel: Any, queue: str, tmp_path: Path
) -> None:
    lake = tmp_path / "lake"
    for first in (0, 5):
        fill(channel, queue, range(first, first + 5))
        done = command("archive", queue, "--to", str(lake), "--compact-every", "1")
        assert done.exit_code == 0, done.output
        assert f"archive-{queue}: 5 rows read; written 5 to lake" in done.output
    table = DeltaTable(lake)
    assert len(table.file_uris()) == 1, "every micro-batch was put together with those before it"
    assert table.to_pyarrow_table().num_rows == 10
    assert state_of(tmp_path / "registry", f"archive-{queue}").lag == {queue: 0}

    wrong = command("replay", str(lake), "--routing-key", "no.such.queue", "--skip", "7")
    assert wrong.exit_code == 1
    skip = re.search(r"go on with --skip (\d+)", wrong.output)
    assert skip is not None, wrong.output
    assert skip[1] == "7", "none of the others has gone"
    rest = command("replay", str(lake), "--routing-key", queue, "--skip", skip[1])
    assert rest.output == "3 messages published and confirmed\n"
    assert taken_bodies(channel, queue) == [b"7", b"8", b"9"]


def test_a_queue_is_mirrored_by_the_command(
    command: Command, broker_url: str, channel: Any, queue: str, tmp_path: Path
) -> None:
    channel.queue_declare(f"{queue}.copy")
    fill(channel, queue, range(4))
    flags = ("--to", broker_url, "--to-queue", f"{queue}.copy", "--checkpoint", str(tmp_path / "s"))
    done = command("mirror", queue, *flags)
    assert f"mirror-{queue}: 4 rows read; written 4 to mirror" in done.output
    assert sorted(taken_bodies(channel, f"{queue}.copy")) == [b"0", b"1", b"2", b"3"]
    channel.queue_delete(f"{queue}.copy")


def test_the_flow_of_a_queue_is_watched_without_taking_anything(
    spark: SparkSession, broker_url: str, channel: Any, queue: str, tmp_path: Path
) -> None:
    channel.exchange_declare(f"{queue}.x", "topic")
    channel.queue_bind(queue, f"{queue}.x", "#")
    for number in range(8):
        channel.basic_publish(f"{queue}.x", "hot" if number < 6 else f"k{number}", b"x" * 10)
    said: list[str] = []
    year = 365 * 86_400.0
    for keys in (None, 2):
        described = shipped.stats(
            broker_url,
            queue,
            seconds=year,
            keys=keys,
            trigger=Trigger(),
            checkpoint=tmp_path / f"checkpoint{keys}",
        )
        view = View(said.append, terminal=False)
        (state,) = host([described], tmp_path / "registry", view, spark=spark)
        assert (state.state, state.error, state.rows) == ("ended", "", 8)
        # Exploring a stream has no end of its own: what came is what is shown.
        assert state.batches >= 1
    tables = [each.split() for each in said]
    flow = next(row for row in tables if row[:1] == ["start"])
    numbers = dict(zip(flow, tables[tables.index(flow) + 1][1:], strict=True))
    assert (numbers["messages"], numbers["octets"], numbers["keys"]) == ("8", "80", "3")
    assert (numbers["octets_p99"], numbers["hottest_percent"]) == ("10", "75")
    assert any(row[-3:] == ["hot", "6", "75"] for row in tables), said
    assert channel.queue_declare(queue, passive=True).method.message_count == 8
    channel.exchange_delete(f"{queue}.x")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("stats", "q", "--every", "soon"), "--every wants a time such as 5s or 2m, not 'soon'"),
        (("stats", "q", "--window", "x"), "--window wants a time such as 10s or 1m, not 'x'"),
        (("stats", "q", "--every", "5s", "--output", "csv"), "--to DIRECTORY keeps the windows"),
        (("stats", "q", "--to", "lake"), "--to belongs to --every"),
        (("stats", "q", "--metrics", "1"), "--metrics belongs to --every"),
        (("archive", "--to", "lake"), "say what to keep: a queue, or --exchange NAME"),
        (("archive", "q", "--to", "lake", "--metrics", "x"), "--metrics wants PORT or HOST:PORT"),
        (("mirror", "q", "--to", "ftp://x", "--checkpoint", "s"), "--to: "),
        (("replay", "lake", "--where", "a ="), "--where: this is no SQL"),
    ],
)
def test_a_wrong_argument_is_reported_before_anything_starts(
    arguments: tuple[str, ...], said: str
) -> None:
    done = CliRunner().invoke(harebell, ["pipeline", *arguments])
    assert done.exit_code == 2
    assert said in done.output


def test_a_pipeline_is_not_begun_over_spark_connect(tmp_path: Path) -> None:
    words = ("mirror", "q", "--to", "amqp://there", "--checkpoint", str(tmp_path / "state"))
    about = {"HAREBELL_PIPELINES": str(tmp_path / "registry")}
    master = "sc://127.0.0.1:1"
    done = CliRunner().invoke(harebell, ["pipeline", *words, "--master", master], env=about)
    assert done.exit_code == 1
    assert f"pipelines cannot run over Spark Connect ({master})" in done.output
