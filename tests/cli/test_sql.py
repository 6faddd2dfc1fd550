"""`harebell sql` with the embedded engine: on a real broker, and without Java."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from harebell.cli.statement_runner import RunningOptions, StatementRunner
from harebell.client.blocking import Channel, connect
from harebell.client.url import URL
from harebell.pipeline.errors import PipelineError
from harebell.pipeline.sql.embedded.engine import Answer, Engine
from harebell.pipeline.sql.embedded.kinds import NeedsSpark
from harebell.pipeline.sql.selections import SelectStatement
from harebell.pipeline.sql.verbs import understand
from tests.cli.conftest import Result, bodies, error_of, run_harebell
from tests.patience import eventually
from tests.running import command, environment, running_broker

MESSAGES = 3_000
NO_JAVA = {"JAVA_HOME": "/no/java"}
ENDLESS = ", ".join(f"queue('jobs') AS {name}" for name in "abcd")


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """A broker with some messages."""
    with running_broker() as broker:
        url = f"{broker.address()}/%2F"
        with connect(url) as connection:
            channel = connection.channel()
            channel.declare_queue("jobs", durable=True)
            bodies = [b'{"id": %d, "size": %d}' % (n, n % 4) for n in range(MESSAGES)]
            channel.publish_many(bodies, routing_key="jobs")
        yield url


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with Engine() as made:
        yield made


def asked(engine: Engine, address: str, sql: str, rows: int = 10) -> Answer:
    statement = understand(sql)
    assert isinstance(statement, SelectStatement)
    return engine.answer(statement, URL.parse(address), rows)


def sql(address: str, *words: str, stdin: bytes = b"") -> Result:
    return run_harebell("sql", *words, "--url", address, stdin=stdin, env=NO_JAVA)


def test_a_query_is_answered_without_java(address: str) -> None:
    done = sql(address, "SELECT queue, count(*) AS messages FROM queue('jobs') GROUP BY queue")
    assert done.stdout.decode() == "queue  messages\njobs   3000\n"
    assert done.stderr == b""


def test_rows_are_printed_as_json_and_those_left_out_are_told(address: str) -> None:
    text = "SELECT offset, CAST(value AS STRING) AS body FROM queue('jobs') ORDER BY offset DESC"
    done = sql(address, text, "--json", "--rows", "1")
    assert json.loads(done.stdout) == {"offset": 2999, "body": '{"id": 2999, "size": 3}'}
    assert b"... and more: --rows 10" in done.stderr


def test_spark_is_asked_for_what_the_engine_does_not_know_and_one_line_says_so(
    address: str,
) -> None:
    done = sql(address, "SELECT explode(headers) FROM queue('jobs')")
    assert done.returncode == 1
    first, second = done.stderr.decode().splitlines()
    assert first == "Spark is asked: the embedded engine does not know explode()"
    assert "JAVA_HOME" in second


def test_the_engine_that_is_asked_for_answers_alone(address: str) -> None:
    done = sql(address, "SELECT explode(headers) FROM queue('jobs')", "--engine", "duckdb")
    assert error_of(done) == "the embedded engine does not know explode(): --engine spark does"
    done = sql(address, "SET x = 1", "--engine", "duckdb")
    assert error_of(done) == "this is a statement for Spark: leave out --engine"
    done = sql(address, "SELECT 1", "--engine", "spark")
    assert "JAVA_HOME" in error_of(done)


def test_the_broker_sends_only_the_messages_that_fit(engine: Engine, address: str) -> None:
    text = "SELECT count(*) FROM queue('jobs') WHERE "
    assert asked(engine, address, f"{text} routing_key = 'other'").read == 0
    assert asked(engine, address, f"{text} routing_key IN ('x', 'y')").read == 0
    assert asked(engine, address, f"{text} offset >= 2990 AND delivery_count < 1").read == 10
    # A condition of a part of the rows is none of all of them.
    assert asked(engine, address, f"{text} routing_key = 'other' OR offset = 1").rows == [(1,)]


def test_parquet_files_are_read_without_java(address: str, tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    parquet.write_table(pa.table({"id": [1, 2], "name": ["a", "b"]}), tmp_path / "t" / "1.parquet")
    text = "SELECT l.name FROM lake('t') l JOIN queue('jobs') q ON q.offset = l.id ORDER BY l.name"
    done = sql(address, text, "--lake", str(tmp_path))
    assert (done.stdout, done.stderr) == (b"name\na\nb\n", b"")
    assert "no table at" in error_of(sql(address, "SELECT * FROM lake('u')"))
    asks = ("SELECT * FROM lake('t')", "--lake", str(tmp_path), "--engine", "duckdb")
    (tmp_path / "t" / "2.parquet").write_bytes(b"PAR1 is what this is not")
    assert "does not know a file of lake()" in error_of(sql(address, *asks))
    parquet.write_table(pa.table({"id": [3]}), tmp_path / "t" / "2.parquet")
    assert "which have different columns" in error_of(sql(address, *asks))
    parquet.write_table(pa.table({"id": [[3]]}), tmp_path / "t" / "1.parquet")
    (tmp_path / "t" / "2.parquet").unlink()
    assert "does not know a column of the type list" in error_of(sql(address, *asks))
    (tmp_path / "t" / "day=1").mkdir()
    assert "what else is in the directory of lake(): 'day=1'" in error_of(sql(address, *asks))
    (tmp_path / "t" / "_delta_log").mkdir()
    assert "does not know the Delta table of lake()" in error_of(sql(address, *asks))


@pytest.fixture
def letters(address: str) -> Iterator[Channel]:
    """A channel, and queues with dead letters that died in the queue `work`."""
    with connect(address) as connection:
        channel = connection.channel()
        for queue in ("work", "dead", "later"):
            channel.declare_queue(queue, durable=True)
        for number in range(10):
            headers = {"n": number, "x-first-death-queue": "work"}
            channel.publish(b"%d" % number, routing_key="dead", headers=headers)
        yield channel
        for queue in ("work", "dead", "later"):
            channel.delete_queue(queue)


def test_messages_are_deleted_moved_and_retried_without_java(
    address: str, letters: Channel
) -> None:
    done = sql(address, "DELETE FROM queue('dead') WHERE CAST(headers['n'] AS INT) % 3 = 0")
    assert done.stdout == b"4 of 10 messages of queue 'dead' deleted\n", done.stderr
    text = (
        "MOVE FROM queue('dead') TO queue('later') SET value = concat('x', CAST(value AS STRING)) "
        "WHERE CAST(value AS STRING) < '3' AND offset < 99"
    )
    done = sql(address, text, "--engine", "duckdb")
    assert done.stdout == b"2 of 6 messages of queue 'dead' moved to queue later\n", done.stderr
    done = sql(address, "RETRY FROM queue('dead') WHERE headers['n'] = 7 OR redelivered AND 1 = 2")
    assert done.returncode == 0, done.stderr
    assert done.stderr == b""
    assert bodies(letters, "later") == [b"x1", b"x2"]
    assert bodies(letters, "work") == [b"7"]
    assert bodies(letters, "dead") == [b"4", b"5", b"8"]


def test_ctrl_c_while_messages_are_selected_settles_nothing(
    address: str, letters: Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    cancelled = threading.Event()

    def selected(*_: object) -> list[tuple[int, None, None]]:
        os.kill(os.getpid(), signal.SIGINT)
        assert cancelled.wait(100)
        return [(0, None, None)]

    monkeypatch.setattr(Engine, "selected", selected)
    monkeypatch.setattr(Engine, "cancel", lambda _: cancelled.set())
    options = RunningOptions(address, None, False, "table", 10, Path())
    with StatementRunner(options) as runner, pytest.raises(KeyboardInterrupt):
        runner.run("DELETE FROM queue('dead') WHERE true")
    assert bodies(letters, "dead") == [b"%d" % number for number in range(10)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("DELETE FROM queue('dead')\nWHERE nope = 1", "line 2, column 7: there is no column"),
        ("DELETE FROM queue('none') WHERE true", "there is no queue 'none'"),
        ("DELETE FROM queue('dead') WHERE CAST(value AS STRING)", "STRING as a condition"),
        ("MOVE FROM queue('dead') TO queue('none') WHERE true", "none"),
        (
            "MOVE FROM queue('dead') TO queue('later') SET value = headers['no'] WHERE true",
            "SET value gives null for message 0: nothing was settled",
        ),
        (
            "DELETE FROM queue('dead') WHERE routing_key IN (SELECT 'dead' FROM taken_messages)",
            "the embedded engine does not know the table taken_messages: --engine spark does",
        ),
        (
            "DELETE FROM queue('dead') WHERE CAST(CAST(value AS STRING) AS TIMESTAMP) IS NULL",
            "the embedded engine does not know a text as TIMESTAMP: --engine spark does",
        ),
    ],
)
def test_a_statement_that_is_wrong_settles_nothing(
    address: str, letters: Channel, text: str, said: str
) -> None:
    done = sql(address, text, "--engine", "duckdb")
    assert said in error_of(done)
    assert bodies(letters, "dead") == [b"%d" % number for number in range(10)]


def test_a_queue_that_is_named_twice_is_read_once(engine: Engine, address: str) -> None:
    text = "SELECT count(*) FROM queue('jobs') a JOIN queue('jobs') b ON a.offset = b.offset + 1"
    answer = asked(engine, address, text)
    assert (answer.rows, answer.read) == ([(MESSAGES - 1,)], MESSAGES)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("SELECT ofset FROM queue('jobs')", "line 1, column 8: there is no column 'ofset'"),
        ("SELECT 1,\n  uper('a')", "line 2, column 3: there is no function 'uper'"),
        ("SELECT * FROM queue('job')", "there is no queue 'job'"),
        ("SELECT 1 / 0", "division by zero"),
        ("SELECT offset % 0 FROM queue('jobs')", "division by zero"),
        ("SELECT CAST(routing_key AS INT) FROM queue('jobs')", "jobs is no INT"),
        ("SELECT 9223372036854775807 + 1", "Overflow in addition"),
        ("SELECT " + "(" * 5_000 + "1" + ")" * 5_000, "nested too deeply"),
        ("SELECT 1 WHERE " + " AND ".join(["1 = 1"] * 5_000), "nested too deeply"),
        (f"SELECT a.value FROM {ENDLESS} ORDER BY a.value, b.value, c.value", "512 MiB of memory"),
        ("COPY (SELECT 1) TO '/tmp/x'", "this is no query but COPY"),
        ("ATTACH '/tmp/x.db'", "there is no verb ATTACH"),
        ("INSTALL httpfs", "there is no verb INSTALL"),
        ("LOAD httpfs", "this is no query but LOAD"),
        ("PRAGMA database_list", "this is no query but PRAGMA"),
        ("SELECT 1; DROP TABLE x", "this is 2 statements"),
    ],
)
def test_what_is_wrong_with_a_statement_is_one_sentence(
    engine: Engine, address: str, text: str, said: str
) -> None:
    with pytest.raises(PipelineError) as error:
        asked(engine, address, text)
    assert said in str(error.value)
    assert asked(engine, address, "SELECT 1").rows == [(1,)]


@pytest.mark.parametrize(
    "text",
    [
        *("SELECT * FROM read_csv('/etc/passwd')", "SELECT * FROM '/etc/passwd'"),
        *("SELECT * FROM csv.`/etc/passwd`", "SELECT read_text('/etc/passwd')"),
        *("SELECT * FROM duckdb_settings()", "SELECT * FROM information_schema.tables"),
        *("SELECT * FROM pg_class", "SELECT * FROM queue_1", "SET memory_limit = '100GB'"),
        *("SELECT reflect('java.lang.System', 'getenv')", "SELECT repeat('x', 3000000000)"),
        *("SELECT * FROM glob('/*')", "SELECT * FROM range(1000000000000)"),
        "WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM t) SELECT * FROM t",
    ],
)
def test_nothing_of_duckdb_but_what_spark_has_can_be_reached(
    engine: Engine, address: str, text: str
) -> None:
    with pytest.raises((NeedsSpark, PipelineError)):
        asked(engine, address, text)


def test_names_of_queues_and_columns_are_never_sql(engine: Engine, address: str) -> None:
    hostile = 'jobs"; DROP TABLE x; --'
    with pytest.raises(PipelineError, match="there is no queue"):
        asked(engine, address, f"SELECT * FROM queue('{hostile}')")
    answer = asked(engine, address, f"SELECT 'it''s' AS `a\"b; {hostile}`")
    assert (answer.columns, answer.rows) == ((f'a"b; {hostile}',), [("it's",)])


def test_files_and_the_network_are_closed_below_the_statements(
    engine: Engine, tmp_path: Path
) -> None:
    import duckdb

    database = engine._database
    for statement in (
        *(f"COPY (SELECT 1) TO '{tmp_path}/x'", f"ATTACH '{tmp_path}/x.db'", "INSTALL httpfs"),
        *("LOAD httpfs", "SELECT * FROM read_text('/etc/passwd')", "SELECT * FROM glob('/*')"),
        *("SET enable_external_access = true", "SET memory_limit = '100GB'"),
    ):
        with pytest.raises(duckdb.Error):
            database.execute(statement)
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_ends_a_query_that_would_not_end(address: str) -> None:
    words = [command(), "sql", f"SELECT count(*) FROM {ENDLESS} WHERE a.value <> d.value"]
    process = subprocess.Popen(
        [*words, "--url", address],
        env=environment(NO_JAVA),
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        status = Path(f"/proc/{process.pid}/status")
        # DuckDB's threads have begun.
        assert eventually(lambda: "Threads:\t1\n" not in status.read_text())
        process.send_signal(signal.SIGINT)
        assert process.wait(100) == 130
    finally:
        process.kill()
        written = process.communicate()[0]
    assert written == b""
