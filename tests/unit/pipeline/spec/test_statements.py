"""What SQL says is found out without Spark: queries, their views, what needs state, schemas."""

from __future__ import annotations

from pathlib import Path

import pytest

from harebell.pipeline.spec.statements import ParsedQuery, StatementError, columns, condition, query

QUERIES = Path(__file__).with_name("queries.sql")


@pytest.mark.parametrize(
    ("sql", "tables", "stateful"),
    [
        ("SELECT data.* FROM source", ("source",), ""),
        ("SELECT * FROM source LATERAL VIEW explode(data.items) AS item", ("source",), ""),
        ("SELECT transform(xs, x -> x + 1), headers['x'] FROM source", ("source",), ""),
        ("WITH a AS (SELECT * FROM source) SELECT * FROM a", ("source",), ""),
        ("SELECT * FROM parquet.`some/directory`", (), ""),
        ("SELECT count(*) OVER (PARTITION BY a) FROM source", ("source",), ""),
        ("SELECT a, count(*) FROM source GROUP BY a", ("source",), "an aggregate"),
        ("SELECT window(t, '1 minute'), max(x) FROM s GROUP BY 1", ("s",), "an aggregate"),
        ("SELECT DISTINCT a FROM source", ("source",), "DISTINCT"),
        ("SELECT * FROM a JOIN b ON a.x = b.x", ("a", "b"), "a join"),
        ("SELECT * FROM a UNION ALL SELECT * FROM b", ("a", "b"), ""),
    ],
)
def test_a_query_names_its_views_and_whether_it_keeps_state(
    sql: str, tables: tuple[str, ...], stateful: str
) -> None:
    found = query(sql)
    assert found == ParsedQuery(found.tables, stateful)
    assert set(found.tables) == set(tables)


@pytest.mark.parametrize("sql", QUERIES.read_text().splitlines())
def test_statements_that_spark_reads_are_read(sql: str) -> None:
    # tests/spark/test_sql.py asks Spark's parser about the same queries.
    query(sql)


def test_a_window_over_time_is_told_from_a_named_window() -> None:
    sql = "SELECT sum(a) OVER w FROM s GROUP BY window(t, '1 hour') WINDOW w AS (ORDER BY a)"
    assert query(sql) == ParsedQuery(("s",), "an aggregate")


@pytest.mark.parametrize(
    ("sql", "line", "said"),
    [
        ("INSERT INTO x SELECT 1", 1, "this is no query but INSERT"),
        ("SET x = 1", 1, "this is no query but SET"),
        ("DROP TABLE x", 1, "this is no query but DROP"),
        ("SELECT 1; SELECT 2", 1, "this is 2 statements; write one"),
        ("", 1, "this is nothing; write one"),
        ("SELECT a\nFROM source\nWHERE", 3, "this is no SQL near 'WHERE'"),
        ("SELECT 'a", 1, "this is no SQL"),
    ],
)
def test_an_invalid_query_is_refused_with_its_line(sql: str, line: int, said: str) -> None:
    with pytest.raises(StatementError) as error:
        query(sql)
    assert said in str(error.value)
    assert "<class" not in str(error.value)
    assert error.value.line == line


@pytest.mark.parametrize("sql", ["total > 5", "a LIKE 'x%' AND NOT b", "concat('a', b)"])
def test_an_expression_is_accepted(sql: str) -> None:
    condition(sql)


@pytest.mark.parametrize(
    "sql", ["a >", "a ORDER BY b", "a GROUP BY b", "a; DROP TABLE t", "a LIMIT 1"]
)
def test_more_or_less_than_an_expression_is_refused(sql: str) -> None:
    with pytest.raises(StatementError):
        condition(sql)


def test_a_schema_has_its_columns() -> None:
    assert columns("id BIGINT, total DECIMAL(10, 2)") == ("id", "total")
    assert columns("a STRUCT<x: INT, y: ARRAY<STRING>>, b MAP<STRING, INT>") == ("a", "b")


@pytest.mark.parametrize(
    ("ddl", "said"),
    [
        ("id BIGIT", "there is no type BIGIT: did you mean BIGINT?"),
        ("id BIGINT, name TXT", "there is no type TXT"),
        ("id", "this is no schema; write columns and types as in `id BIGINT, total DOUBLE`"),
        ("", "this is no schema"),
        ("a INT, a STRING", "the column a stands twice in the schema"),
    ],
)
def test_an_invalid_schema_is_refused_with_a_correction(ddl: str, said: str) -> None:
    with pytest.raises(StatementError) as error:
        columns(ddl)
    assert said in str(error.value)
