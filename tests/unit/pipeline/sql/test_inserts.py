"""Statements that write: what they say, and what they are as pipelines."""

from __future__ import annotations

from pathlib import Path

import pytest

from harebell.pipeline.sinks.exchange import EXPRESSION
from harebell.pipeline.spec.description import Route, Trigger
from harebell.pipeline.spec.statements import StatementError
from harebell.pipeline.sql.inserts import ContinuousStatement, InsertStatement
from harebell.pipeline.sql.selections import SelectStatement, TableReference
from harebell.pipeline.sql.verbs import understand

URL = "amqp://guest:guest@127.0.0.1/"


@pytest.mark.parametrize(
    ("target", "route"),
    [
        ("exchange('e')", Route("e")),
        ("exchange('e', 'key')", Route("e", "key")),
        ("queue('q')", Route("", "q")),
    ],
)
def test_an_insert_publishes_what_a_query_gives(target: str, route: Route) -> None:
    found = understand(f"INSERT INTO {target} SELECT * FROM queue('a') WHERE offset > 1;")
    tables = (TableReference("queue", "a", "queue_1"),)
    query = SelectStatement("SELECT * FROM queue_1 WHERE offset > 1", tables)
    assert found == InsertStatement(route, query)


@pytest.mark.parametrize("table", ["STREAM queue('a')", "stream(queue('a'))"])
def test_an_insert_from_a_stream_is_a_pipeline_without_end(table: str, tmp_path: Path) -> None:
    found = understand(f"INSERT INTO exchange('e', 'key') SELECT value FROM {table}")
    assert isinstance(found, ContinuousStatement)
    made = found.described(URL, tmp_path)
    assert (made.name, made.trigger) == ("insert-e-from-a", Trigger("asap"))
    assert made.checkpoint == tmp_path / "_pipelines" / "insert-e-from-a"
    assert made.sources[0].options == {"url": URL, "queue": "a", "startingOffsets": "earliest"}
    assert (made.sources[0].name, made.steps[0].sql) == ("queue_1", "SELECT value FROM queue_1")
    assert (made.sinks[0].kind, made.sinks[0].target) == ("exchange", "e")
    assert made.sinks[0].options == {EXPRESSION: "'key'"}


def test_a_streaming_table_is_a_delta_table_and_goes_on_only_when_told(tmp_path: Path) -> None:
    select = "AS SELECT DISTINCT routing_key FROM STREAM stream('s')"
    found = understand(f"CREATE STREAMING TABLE counts {select}")
    assert isinstance(found, ContinuousStatement)
    made = found.described(URL, tmp_path)
    assert (made.name, made.sinks[0].kind) == ("counts", "delta")
    assert made.sinks[0].target == str(tmp_path / "counts")
    assert made.stateful
    (tmp_path / "counts" / "_delta_log").mkdir(parents=True)
    with pytest.raises(StatementError, match="CREATE OR REFRESH STREAMING TABLE counts goes on"):
        found.described(URL, tmp_path)
    again = understand(f"create or refresh streaming table counts {select}")
    assert isinstance(again, ContinuousStatement)
    assert again.described(URL, tmp_path) == made


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("INSERT INTO e SELECT 1", "line 1, column 13: say where to publish: INSERT INTO exchange"),
        ("INSERT\nINTO lake('e') SELECT 1", "line 2, column 6: lake cannot be written"),
        ("INSERT INTO queue('a', 'b') SELECT 1", "queue cannot be written"),
        ("INSERT", "say where to publish"),
        ("INSERT INTO queue('a')", "the query is missing"),
        ("INSERT INTO queue('a') DELETE FROM b", "this is no query but DELETE: INSERT INTO"),
        (
            "INSERT INTO queue('a') SELECT * FROM STREAM queue('b'), queue('c')",
            "queue('c') is read once and the others continuously",
        ),
        (
            "INSERT INTO queue('a') SELECT * FROM STREAM lake('b')",
            "line 1, column 38: a lake cannot be followed",
        ),
        ("CREATE TABLE a AS SELECT 1", "the one thing to create here is a streaming table"),
        ("CREATE STREAMING TABLE", "'' is no name of a table"),
        ("CREATE STREAMING TABLE '../a' AS SELECT 1", "'../a' is no name of a table"),
        ("CREATE STREAMING TABLE a SELECT 1", "say what the table a is made of"),
        ("CREATE STREAMING TABLE a AS", "the query is missing"),
        (
            "CREATE STREAMING TABLE a AS SELECT * FROM queue('b')",
            "a streaming table follows a queue",
        ),
        (
            "CREATE STREAMING TABLE a AS SELECT value FROM STREAM queue('b') LIMIT 5",
            "the messages after them would be acknowledged and written nowhere",
        ),
        (
            "INSERT INTO queue('a') SELECT count(*) FROM STREAM queue('b')",
            "needs a watermark, which a statement cannot have: use a pipeline file",
        ),
        ("SELECT * FROM STREAM queue('b')", "queue('b') with STREAM does not"),
        (
            "SELECT *\nFROM queus('b')",
            "line 2, column 6: there is no table queus(): did you mean queue?",
        ),
        ("SELECT * FROM queue('b'), lak('c')", "there is no table lak(): did you mean lake?"),
        ("INSRT INTO queue('a') SELECT 1", "there is no verb INSRT: did you mean INSERT?"),
    ],
)
def test_a_wrong_statement_is_told_with_its_place_and_the_nearest_right_name(
    sql: str, said: str
) -> None:
    with pytest.raises(StatementError) as error:
        understand(sql)
    assert said in str(error.value)


def test_functions_with_one_text_are_left_to_spark() -> None:
    found = understand("SELECT a, lower('X'), trim('b') FROM VALUES ('x'), ('y') AS t(a)")
    assert isinstance(found, SelectStatement)
    assert found.tables == ()


@pytest.mark.parametrize("sql", ["SHOW TABLES", "DESCRIBE t", "SET x = 1", "USE default"])
def test_statements_about_the_session_are_left_to_spark(sql: str) -> None:
    assert understand(sql) == SelectStatement(sql, ())
