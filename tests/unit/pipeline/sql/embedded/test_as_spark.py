"""The embedded engine answers as Spark does: what it once answered otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from harebell.client.url import URL
from harebell.pipeline.sql.embedded.engine import Answer, Engine, translate
from harebell.pipeline.sql.embedded.kinds import NeedsSpark
from harebell.pipeline.sql.selections import SelectStatement
from harebell.pipeline.sql.verbs import understand

ZEROS = "(SELECT -0e0 AS d UNION ALL SELECT 0e0)"
TWO = "(SELECT 1 AS a UNION ALL SELECT 2)"


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with Engine() as engine:
        yield engine


def asked(sql: str) -> SelectStatement:
    """The question as a statement."""
    statement = understand(sql)
    assert isinstance(statement, SelectStatement)
    return statement


def answer(engine: Engine, sql: str) -> Answer:
    """What the engine answers to a question that reads no queue."""
    return engine.answer(asked(sql), URL(), 100)


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        (f"SELECT d FROM {ZEROS} GROUP BY d", [(0.0,)]),
        (f"SELECT d, d AS x FROM {ZEROS} GROUP BY 1", [(0.0, 0.0)]),
        (f"SELECT d + d AS x FROM {ZEROS} GROUP BY x", [(0.0,)]),
        (f"SELECT DISTINCT d FROM {ZEROS} ORDER BY d", [(0.0,)]),
        ("SELECT -0e0 AS d UNION SELECT 0e0 ORDER BY d", [(0.0,)]),
        (f"SELECT d FROM {ZEROS} EXCEPT ALL SELECT 0e0", [(0.0,)]),
    ],
)
def test_what_is_grouped_or_told_apart_has_one_zero(
    engine: Engine, sql: str, rows: list[tuple[Any, ...]]
) -> None:
    assert repr(answer(engine, sql).rows) == repr(rows)


def test_a_zero_that_is_only_read_keeps_its_sign(engine: Engine) -> None:
    assert repr(answer(engine, "SELECT -0e0 AS d").rows) == "[(-0.0,)]"


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        (f"SELECT count_if(NULL), count_if(a > 1), count_if(a > 2) FROM {TWO}", [(0, 1, 0)]),
        ("SELECT CAST(NULL AS BIGINT) / 0", [(None,)]),
        ("SELECT '7' / 2", [(3.5,)]),
        (f"SELECT -a AS a FROM {TWO} ORDER BY a + 0", [(-2,), (-1,)]),
        (f"SELECT -a AS a FROM {TWO} ORDER BY a", [(-2,), (-1,)]),
        ("SELECT CAST(X'61eda08062' AS STRING)", [("a\ufffdb",)]),
        ("SELECT CAST(X'61eda0ed' AS STRING)", [("a\ufffd\ufffd",)]),
        (
            "SELECT TIMESTAMP '0001-01-01 00:00:00' - INTERVAL 366 DAYS",
            [("0000-01-01 00:00:00",)],
        ),
        (
            "SELECT TIMESTAMP '0001-01-01 00:00:00' - INTERVAL 731 DAYS",
            [("-0001-01-01 00:00:00",)],
        ),
    ],
)
def test_the_values_are_those_of_spark(
    engine: Engine, sql: str, rows: list[tuple[Any, ...]]
) -> None:
    assert answer(engine, sql).rows == rows


GUARDED = "(SELECT 'x' AS t, false AS ok UNION ALL SELECT '12', true UNION ALL SELECT NULL, NULL)"


@pytest.mark.parametrize(
    ("written", "values"),
    [
        ("ok AND CAST(t AS INT) > 1", [False, True, None]),
        ("NOT ok OR CAST(t AS INT) > 1", [True, True, None]),
        ("t <> 'x' AND ok AND CAST(t AS INT) > 1 AND t <> 'y'", [False, True, None]),
        ("NOT (ok AND CAST(t AS INT) > 1)", [True, False, None]),
        ("CASE WHEN ok AND CAST(t AS INT) > 1 THEN 1 END", [None, 1, None]),
        ("if(NOT ok OR CAST(t AS INT) > 1, 1, 0)", [1, 1, 0]),
        ("EXISTS (SELECT 1) AND ok AND CAST(t AS INT) > 1", [False, True, None]),
    ],
)
def test_a_value_that_is_not_needed_is_not_converted(
    engine: Engine, written: str, values: list[object]
) -> None:
    found = answer(engine, f"SELECT {written} AS v FROM {GUARDED}")
    assert [row[0] for row in found.rows] == values


@pytest.mark.parametrize(
    ("written", "name", "value"),
    [
        ("count_if(ok AND CAST(t AS INT) > 1)", "count_if((ok AND (CAST(t AS INT) > 1)))", 1),
        ("max(CAST(t AS INT)) FILTER (WHERE ok)", "max(CAST(t AS INT)) FILTER (WHERE ok)", 12),
        ("count(*) FILTER (WHERE t = 'x')", "count(1) FILTER (WHERE (t = x))", 1),
        (
            "count(DISTINCT t) FILTER (WHERE t <> 'x')",
            "count(DISTINCT t) FILTER (WHERE (NOT (t = x)))",
            1,
        ),
        ("avg(CAST(t AS INT)) FILTER (WHERE ok)", "avg(CAST(t AS INT)) FILTER (WHERE ok)", 12.0),
    ],
)
def test_only_rows_of_the_filter_are_converted(
    engine: Engine, written: str, name: str, value: object
) -> None:
    found = answer(engine, f"SELECT {written}, count(*) FROM {GUARDED}")
    assert (found.columns[0], found.rows) == (name, [(value, 3)])


@pytest.mark.parametrize(
    ("body", "path", "found"),
    [
        ('{"a": null, "a": 2}', "$.a", "2"),
        ('{"a": 1, "a": 2}', "$.a", "1"),
        ('{"a": {"x": 1}, "a": {"b": 2}}', "$.a.b", "2"),
        ('{"a": {"b": null}, "b": 1}', "$.a.b", None),
        ('[{"a": null, "a": 2}]', "$[0].a", "2"),
        ('{"a": [null], "a": [1]}', "$.a[0]", "null"),
        ("[null, 1]", "$[0]", "null"),
        ("[null, 1]", "$[2]", None),
        ("[null] x", "$[0]", "null"),
    ],
)
def test_the_first_value_of_a_name_that_is_no_null_is_taken(
    engine: Engine, body: str, path: str, found: str | None
) -> None:
    assert answer(engine, f"SELECT get_json_object('{body}', '{path}')").rows == [(found,)]


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("instr(t, 'b')", "instr(t, b)"),
        ("locate('b', t)", "locate(b, t, 1)"),
        ("position('b' IN t)", "locate(b, t, 1)"),
        ("substr(t, 2)", "substr(t, 2, 2147483647)"),
        ("substring(t, 2, 1)", "substring(t, 2, 1)"),
        ("nvl(t, 'x')", "nvl(t, x)"),
        ("ifnull(t, 'x')", "ifnull(t, x)"),
        ("lower(nvl(t, 'x'))", "lower(nvl(t, x))"),
        ("char_length(t)", "char_length(t)"),
        ("regexp_like(t, 'a')", "REGEXP_LIKE(t, a)"),
        ("now()", "now()"),
        ("ceiling(1.5e0)", "ceiling(1.5)"),
        ("mod(7, 2)", "mod(7, 2)"),
        ("7 % 2", "(7 % 2)"),
        ("true OR t = 'a' OR t = 'b'", "((true OR (t = a)) OR (t = b))"),
        ("true OR true OR false OR false", "((true OR true) OR (false OR false))"),
        ("01", "1"),
        ("1L", "1"),
        ("2D", "2.0"),
        ("-2147483648", "-2147483648"),
        ("DATE '2026-01-01'", "DATE '2026-01-01'"),
        ("TIMESTAMP '2026-01-01'", "TIMESTAMP '2026-01-01 00:00:00'"),
        ("CAST('2026-01-01' AS DATE)", "CAST(2026-01-01 AS DATE)"),
        ("CAST('1' AS DECIMAL(10, 2))", "CAST(1 AS DECIMAL(10,2))"),
        ("CAST(t AS STRING)", "t"),
        ("upper(CAST(t AS STRING))", "upper(CAST(t AS STRING))"),
        ("t IS NOT NULL", "(t IS NOT NULL)"),
        ("NOT t IS NULL", "(NOT (t IS NULL))"),
        ("date_trunc('HOUR', now())", "date_trunc(HOUR, now())"),
        ("now() + INTERVAL 1 HOUR", "now() + INTERVAL '01' HOUR"),
        ("now() - INTERVAL -5 MINUTES", "now() - INTERVAL '-05' MINUTE"),
        ("now() + INTERVAL 2 WEEKS", "now() + INTERVAL '14' DAY"),
        (
            "count(*) OVER ()",
            "count(1) OVER (ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)",
        ),
        (
            "rank() OVER (PARTITION BY t ORDER BY t DESC)",
            "RANK() OVER (PARTITION BY t ORDER BY t DESC NULLS LAST "
            "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)",
        ),
        (
            "max(t) OVER (ORDER BY t)",
            "max(t) OVER (ORDER BY t ASC NULLS FIRST "
            "RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)",
        ),
    ],
)
def test_a_column_without_a_name_is_called_as_spark_calls_it(
    engine: Engine, written: str, name: str
) -> None:
    assert answer(engine, f"SELECT {written} FROM (SELECT 'abc' AS t)").columns == (name,)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1 WHERE 'true'",
        "SELECT 1 WHERE NULL",
        "SELECT if('true', 1, 2)",
        "SELECT CASE WHEN NULL THEN 1 END",
        "SELECT NOT 'true'",
        f"SELECT count_if('true') FROM {TWO}",
        f"SELECT a, -a AS a FROM {TWO} ORDER BY a",
        f"SELECT DISTINCT -a AS b FROM {TWO} ORDER BY a",
        f"SELECT a FROM {TWO} LIMIT 2147483648",
        f"SELECT a FROM {TWO} OFFSET 2147483648",
        f"SELECT row_number() OVER () FROM {TWO}",
        f"SELECT count(DISTINCT a) OVER () FROM {TWO}",
        f"SELECT d FROM {ZEROS} GROUP BY ALL",
        "SELECT greatest(1)",
        "SELECT 1 IN (SELECT 1) AS v",
        f"SELECT a FROM {TWO} WHERE a = 1 OR a NOT IN (SELECT 1)",
        f"SELECT a FROM {TWO} WHERE NOT (a = 2 AND a IN (SELECT 1))",
        f"SELECT a, (SELECT 1 FROM {TWO} AS b WHERE b.a < t.a) AS v FROM {TWO} AS t GROUP BY a",
        f"SELECT {' AND '.join(['CAST(a AS STRING) > 1'] * 200)} AS v FROM {TWO}",
        "SELECT 1e400",
        "SELECT now() - INTERVAL 999999999 DAYS",
        # Spark has names of its own for these.
        f"SELECT a < 2.5 FROM {TWO}",
        f"SELECT EXISTS (SELECT 1 FROM {TWO} AS b WHERE b.a = t.a) FROM {TWO} AS t",
        "SELECT TIMESTAMP '2026-01-01 00:00:00+02:00'",
        "SELECT substr('abc', 2), substring('abc', 2)",
        "SELECT get_json_object('{}', '$[\"a\"]')",
    ],
)
def test_what_spark_answers_in_a_way_of_its_own_is_left_to_it(sql: str) -> None:
    with pytest.raises(NeedsSpark):
        translate(asked(sql))


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT a < 2.5 AS less FROM {TWO}",
        f"SELECT a FROM {TWO} LIMIT 2147483647",
        f"SELECT avg(a) AS mean FROM {TWO} GROUP BY ALL",
        f"SELECT a FROM {TWO} WHERE a NOT IN (SELECT 1) AND (a = 2 OR a IN (SELECT 2))",
        f"SELECT (SELECT max(b.a) FROM {TWO} AS b WHERE b.a < t.a) AS v FROM {TWO} AS t",
        f"SELECT {' OR '.join(['a = 1'] * 200)} AS v FROM {TWO}",
    ],
)
def test_what_is_the_same_stays_with_the_embedded_engine(sql: str) -> None:
    translate(asked(sql))
