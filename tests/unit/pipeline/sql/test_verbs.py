"""Statements are read by their words: tables in queries, and the three verbs."""

from __future__ import annotations

import re

import pytest

from harebell.pipeline.spec.description import Route
from harebell.pipeline.spec.statements import StatementError
from harebell.pipeline.sql.selections import SelectStatement, TableReference
from harebell.pipeline.sql.verbs import SettleStatement, understand


def test_tables_of_a_query_become_views_and_the_rest_stays_as_it_was() -> None:
    found = understand(
        "SELECT q.routing_key, 'queue(1)' AS a -- queue('no')\n"
        "FROM queue('orders') q JOIN lake(\"t/customers\") c ON q.offset = c.id, queue('orders');"
    )
    assert isinstance(found, SelectStatement)
    assert found.tables == (
        TableReference("queue", "orders", "queue_1"),
        TableReference("lake", "t/customers", "lake_2"),
    )
    assert found.sql == (
        "SELECT q.routing_key, 'queue(1)' AS a -- queue('no')\n"
        "FROM queue_1 q JOIN lake_2 c ON q.offset = c.id, queue_1"
    )


@pytest.mark.parametrize("head", ["EXPLAIN", "explain formatted", "-- why\nEXPLAIN\n  COST"])
def test_tables_behind_explain_become_views_too(head: str) -> None:
    found = understand(f"{head} SELECT q.x AS \"explain\" FROM queue('orders') q;")
    assert isinstance(found, SelectStatement)
    assert found.tables == (TableReference("queue", "orders", "queue_1"),)
    assert found.explains == 'SELECT q.x AS "explain" FROM queue_1 q'
    assert found.sql == f"{head.removeprefix('-- why').lstrip()} {found.explains}"


@pytest.mark.parametrize(
    ("sql", "sentence"),
    [
        ("EXPLAIN", "say what to explain"),
        ("EXPLAIN FORMATTED", "say what to explain"),
        ("EXPLAIN DROP TABLE a", "EXPLAIN is for a SELECT: this is no query but DROP"),
        ("EXPLAIN SELECT FROM WHERE", "EXPLAIN is for a SELECT: this is no SQL"),
        ("EXPLAIN SELECT * FROM STREAM queue('q')", "leave out STREAM"),
        ("EXPLAIN SELECT * FROM queu('q')", "there is no table queu(): did you mean queue?"),
    ],
)
def test_a_statement_that_cannot_be_explained_is_refused(sql: str, sentence: str) -> None:
    with pytest.raises(StatementError, match=re.escape(sentence)):
        understand(sql)


def test_a_query_may_begin_with_with_and_need_no_queue() -> None:
    assert understand("WITH a AS (SELECT 1 AS x) SELECT * FROM a") == SelectStatement(
        "WITH a AS (SELECT 1 AS x) SELECT * FROM a", ()
    )


@pytest.mark.parametrize(
    ("sql", "settlement"),
    [
        (
            "DELETE FROM queue('q') WHERE routing_key = 'to' AND value LIKE '%set%'",
            SettleStatement("DELETE", "q", "routing_key = 'to' AND value LIKE '%set%'"),
        ),
        (
            "move from queue('a') to queue('b') where true;",
            SettleStatement("MOVE", "a", "true", Route("", "b")),
        ),
        (
            "MOVE FROM queue('a') TO exchange('e', 'k')\nSET value = concat(value, ', x'), "
            "routing_key = upper(routing_key)\nWHERE offset < 5",
            SettleStatement(
                "MOVE",
                "a",
                "offset < 5",
                Route("e", "k"),
                {"value": "concat(value, ', x')", "routing_key": "upper(routing_key)"},
            ),
        ),
        (
            "RETRY FROM queue('dead') WHERE headers['x-first-death-reason'] = 'rejected'",
            SettleStatement("RETRY", "dead", "headers['x-first-death-reason'] = 'rejected'"),
        ),
        (
            "RETRY FROM queue('dead') TO exchange('e') WHERE offset IN (SELECT 1)",
            SettleStatement("RETRY", "dead", "offset IN (SELECT 1)", Route("e")),
        ),
    ],
)
def test_a_verb_says_what_becomes_of_which_messages(sql: str, settlement: SettleStatement) -> None:
    assert understand(sql) == settlement


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("", "there is no statement; begin with SELECT"),
        ("DELET FROM queue('q') WHERE true", "there is no verb DELET: did you mean DELETE?"),
        ("SELECT * FROM exchange('a')", "an exchange keeps no messages that could be read"),
        ("SELECT * FROM queue('a', 'b')", "queue takes one name in quotes: queue('orders')"),
        ("SELECT 'a", "this is no SQL"),
        ("DROP TABLE x", "this is no query but DROP"),
        ("DELETE FROM queue('q')", "DELETE needs a WHERE"),
        ("DELETE FROM q WHERE true", "say whose messages: DELETE FROM queue('orders')"),
        ("DELETE WHERE true", "say whose messages"),
        ("DELETE FROM lake('q') WHERE true", "say whose messages"),
        ("DELETE FROM queue('q') q WHERE true", "that is no clause: 'q'"),
        ("DELETE FROM queue('q') TO queue('r') WHERE true", "that is MOVE"),
        ("DELETE FROM queue('q') WHERE", "this is no SQL"),
        ("DELETE FROM queue('q') WHERE a ORDER BY b", "is more than a condition"),
        ("MOVE FROM queue('q') WHERE true", "say where to: MOVE FROM queue('a') TO queue('b')"),
        ("MOVE FROM queue('q') TO b WHERE true", "say where to: TO queue('name')"),
        ("MOVE FROM queue('q') TO lake('b') WHERE true", "messages cannot be moved to lake"),
        ("MOVE FROM queue('q') WHERE true TO queue('b')", "say where to"),
        ("MOVE TO queue('b') FROM queue('q') WHERE true", "FROM must stand before TO"),
        ("MOVE FROM queue('q') FROM queue('q') WHERE true", "FROM stands twice in this MOVE"),
        (
            "MOVE FROM queue('q') TO queue('b') SET offset = 1 WHERE true",
            "SET cannot change offset, only value and routing_key of a message",
        ),
        ("MOVE FROM queue('q') TO queue('b') SET value WHERE true", "column = expression"),
        (
            "MOVE FROM queue('q') TO queue('b') SET value = 'a', value = 'b' WHERE true",
            "SET names value twice",
        ),
    ],
)
def test_a_statement_that_cannot_be_understood_says_how_to_correct_it(sql: str, said: str) -> None:
    with pytest.raises(StatementError) as error:
        understand(sql)
    assert said in str(error.value)
