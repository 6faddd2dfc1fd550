"""Names that are resolved without Spark are right or wrong as Spark says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from harebell.pipeline.run.failures import suppress_tracebacks
from harebell.pipeline.spec import statements
from harebell.pipeline.spec.relations import relation_of
from harebell.pipeline.spec.resolving import Resolver, unknown_functions
from harebell.pipeline.spec.spark_functions import is_function

QUERIES = Path(__file__).parents[1] / "unit" / "pipeline" / "spec" / "queries.sql"
SCHEMA = """
    value BINARY, routing_key STRING, offset BIGINT, timestamp TIMESTAMP, x INT, y INT, k STRING,
    name STRING, properties STRUCT<message_id: STRING, timestamp: TIMESTAMP>,
    headers MAP<STRING, STRING>, at TIMESTAMP, xs ARRAY<INT>, v VARIANT, a STRING, b STRING,
    data STRUCT<id: BIGINT, total: DOUBLE, items: ARRAY<STRUCT<sku: STRING, n: INT>>,
        inner: STRUCT<deep: STRUCT<k: INT>>>, items ARRAY<STRUCT<id: INT>>, m MAP<STRING, INT>
"""
VIEWS = ("s", "t", "source")
RIGHT = """
SELECT data.*, timestamp FROM source WHERE data.total > 100
SELECT DATA.Id, source.DATA.total, Source.Offset FROM source
SELECT data.items.sku, data.items[0].sku, data.inner.deep.k, headers.any, headers['any'] FROM s
SELECT item.sku, item.n + 1 FROM s LATERAL VIEW explode(data.items) t AS item
SELECT i.sku FROM s, LATERAL explode(data.items) AS e(i)
SELECT transform(data.items, i -> i.n * x), filter(data.items, i -> i.sku = name) FROM s
SELECT data.total * 2 AS twice, twice + 1 AS more FROM s WHERE data.total > 1
SELECT data.id AS id, count(*) AS n FROM s GROUP BY id HAVING n > 1 ORDER BY n, id
SELECT window.start, k, count(*) FROM s GROUP BY window(at, '1 minute'), k
SELECT n FROM (SELECT data.id AS n, * FROM s) WHERE n > 1 AND data.total > n AND x > 1
SELECT q.n FROM (SELECT data.id FROM s) AS q(n)
WITH c AS (SELECT data.* FROM s), d (p, q) AS (SELECT x, y FROM t) SELECT id, total, p FROM c, d
SELECT s.x, t.x FROM s JOIN t ON s.x = t.y
SELECT x, s.y FROM s JOIN t USING (x)
SELECT x FROM s LEFT ANTI JOIN t USING (x)
SELECT s.* FROM s LEFT SEMI JOIN t ON s.x = t.x
SELECT x FROM s WHERE EXISTS (SELECT 1 FROM t WHERE t.x = s.x AND k = a)
SELECT x FROM s WHERE x IN (SELECT y FROM t WHERE t.k = s.name)
SELECT (SELECT max(t.x) FROM t WHERE t.y = s.y) FROM s
SELECT CAST(x AS STRING), (y), properties.message_id FROM (SELECT x, y, properties FROM s)
SELECT x, properties FROM (SELECT CAST(x AS STRING), (properties) FROM s)
SELECT message_id FROM (SELECT properties.message_id FROM s)
SELECT `count(1)` FROM (SELECT count(1) FROM s)
SELECT j.a, j.b.c FROM (SELECT from_json(a, 'a INT, b STRUCT<c: INT>') AS j FROM s)
SELECT from_json(a, 'STRUCT<p: INT>').p FROM s
SELECT * EXCEPT (x, y) FROM s
SELECT data.* EXCEPT (id) FROM s
SELECT x FROM s UNION ALL SELECT y FROM t
SELECT u.x FROM (SELECT x FROM s UNION SELECT y FROM t) u
SELECT v:any.field FROM s
SELECT user AS u, current_date AS d, current_timestamp FROM s
SELECT max(struct(at, x)).x FROM s
SELECT struct(x AS p).p, named_struct('a', 1).a FROM s
SELECT col FROM (SELECT explode(xs) FROM s)
SELECT key, value FROM (SELECT explode(headers) FROM s)
SELECT p FROM (SELECT posexplode(xs) AS (p, q) FROM s)
SELECT sum(x) OVER (PARTITION BY k ORDER BY at), rank() OVER w FROM s WINDOW w AS (ORDER BY x)
SELECT x AS p FROM s ORDER BY x, p
SELECT dateadd(DAY, 1, at), timestampdiff(HOUR, at, timestamp), extract(YEAR FROM at) FROM s
SELECT to_json(struct(data.*)) AS value, to_json(struct(x, y)) AS z FROM s
SELECT x FROM s WHERE NOT isnull(x) AND (k LIKE 'a%' OR k IN ('a', 'b')) AND x BETWEEN 1 AND y
SELECT x FROM s WHERE headers['a'] = '1' AND data IS NOT NULL AND data = data
SELECT * FROM (SELECT x, y, k FROM s) PIVOT (sum(y) FOR k IN ('a', 'b'))
SELECT x FROM s GROUP BY ALL
SELECT count(*) FILTER (WHERE x > 1), count_if(x > 1) FROM s
SELECT i.sku FROM (SELECT explode(data.items) AS i FROM s)
SELECT CASE WHEN x > 1 THEN data.id ELSE offset END AS c, if(x > 1, 'a', 'b') FROM s
FROM s |> WHERE x > 1 |> SELECT x, y |> SELECT y
""".strip().splitlines()
WRONG = """
SELECT data.totl FROM source
SELECT totl FROM source
SELECT total FROM source
SELECT source.ofset FROM source
SELECT data.items.qty FROM source
SELECT data.items[0].qty FROM source
SELECT data.inner.deep.z FROM source
SELECT properties.mesage_id FROM source
SELECT offset.x FROM source
SELECT nope.x FROM source
SELECT x FROM source WHERE z > 1
SELECT data.id AS n FROM source WHERE n > 1
SELECT x FROM source GROUP BY x HAVING z > 1
SELECT x FROM source ORDER BY z
SELECT y FROM (SELECT x FROM s)
SELECT q.x FROM (SELECT data.id FROM s) AS q(n)
WITH c AS (SELECT data.* FROM s) SELECT idd FROM c
SELECT s.x FROM s JOIN t ON s.x = t.z
SELECT s.x FROM s JOIN t USING (z)
SELECT x FROM s WHERE EXISTS (SELECT 1 FROM t WHERE t.z = s.x)
SELECT x FROM s WHERE x IN (SELECT z FROM t)
SELECT item.q FROM s LATERAL VIEW explode(data.items) t AS item
SELECT item FROM s LATERAL VIEW explode(data.itms) t AS item
SELECT transform(data.items, i -> i.n * z) FROM s
SELECT x.* FROM s
SELECT data.* EXCEPT (idd) FROM s
SELECT j.c FROM (SELECT from_json(a, 'a INT, b STRING') AS j FROM s)
SELECT conact(k, 'a') FROM s
SELECT iff(x > 1, 1, 2) FROM s
SELECT x FROM s WHERE x
SELECT x FROM s WHERE x + 1
SELECT x FROM s WHERE k = 'a' AND y
SELECT x FROM s WHERE data > 1
SELECT x FROM s WHERE headers = 'a'
SELECT explode(x) FROM s
SELECT u.y FROM (SELECT x FROM s UNION SELECT y FROM t) u
SELECT sum(z) OVER (PARTITION BY k) FROM s
SELECT sum(x) OVER (PARTITION BY z) FROM s
""".strip().splitlines()


@pytest.fixture
def views(spark: SparkSession) -> Iterator[SparkSession]:
    suppress_tracebacks()
    for name in VIEWS:
        spark.createDataFrame([], SCHEMA).createOrReplaceTempView(name)
    yield spark
    for name in VIEWS:
        spark.catalog.dropTempView(name)


def mistakes(sql: str) -> list[str]:
    parsed = statements.query(sql)
    resolver = Resolver(dict.fromkeys(VIEWS, relation_of(SCHEMA)))
    if parsed.tree is not None:
        resolver.columns_of(parsed.tree)
    return [each.text for each in (*resolver.mistakes, *unknown_functions(parsed.called))]


def spark_takes(spark: SparkSession, sql: str) -> bool:
    try:
        spark.sql(sql)
    except PySparkException:
        return False
    return True


def test_nothing_is_wrong_with_what_spark_takes(views: SparkSession) -> None:
    refused = {
        sql: mistakes(sql)
        for sql in (*RIGHT, *QUERIES.read_text().splitlines())
        if spark_takes(views, sql) and mistakes(sql)
    }
    assert not refused
    assert not [sql for sql in RIGHT if not spark_takes(views, sql)]


def test_names_unknown_to_spark_are_not_found(views: SparkSession) -> None:
    assert not [sql for sql in WRONG if spark_takes(views, sql)]
    assert not [sql for sql in WRONG if len(mistakes(sql)) != 1]


def test_the_columns_of_a_query_are_those_that_spark_makes(views: SparkSession) -> None:
    for sql in RIGHT:
        parsed = statements.query(sql)
        resolver = Resolver(dict.fromkeys(VIEWS, relation_of(SCHEMA)))
        found = None if parsed.tree is None else resolver.columns_of(parsed.tree)
        if found is None or found.is_open or not spark_takes(views, sql):
            continue
        made = views.sql(sql).columns
        assert all(found.may_have(name) for name in made), sql
        assert set(found.names) <= set(made), sql


def test_every_function_of_spark_is_known(spark: SparkSession) -> None:
    names = [row[0] for row in spark.sql("SHOW FUNCTIONS").collect()]
    assert not [each for each in names if each.isidentifier() and not is_function(each)]
