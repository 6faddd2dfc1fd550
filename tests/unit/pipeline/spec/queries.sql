SELECT count(*) FROM s GROUP BY window(at, '10 seconds')
SELECT window.start, count(*) FROM s GROUP BY window(at, '10 seconds', '5 seconds'), data.k
SELECT count(*) FROM s GROUP BY session_window(at, '5 minutes')
SELECT window_time(window), count(*) FROM s GROUP BY window(at, '1 minute')
FROM s |> WHERE x > 1 |> SELECT x
FROM s |> AGGREGATE count(*) AS c GROUP BY x |> ORDER BY c DESC |> LIMIT 5
SELECT * EXCEPT (x) FROM s
SELECT data.* EXCEPT (x) FROM s
SELECT s.* FROM s
SELECT x, count(*) FROM s GROUP BY ALL
SELECT x, y, count(*) FROM s GROUP BY GROUPING SETS ((x), (y))
SELECT x, count(*) FROM s GROUP BY CUBE (x, y)
SELECT x, count(*) FROM s GROUP BY x WITH ROLLUP
SELECT x, grouping_id() FROM s GROUP BY ROLLUP (x)
SELECT explode(xs) AS x FROM s
SELECT x, item.id FROM s LATERAL VIEW OUTER explode(items) t AS item
SELECT posexplode(xs) AS (pos, x) FROM s
SELECT inline(items) FROM s
SELECT t.x FROM s, LATERAL explode(xs) AS t(x)
SELECT * FROM s, LATERAL (SELECT s.x + 1 AS y)
SELECT try_cast(x AS INT), x::int, cast(x AS DECIMAL(10,2)) FROM s
SELECT v:field.sub, v:arr[0]::int FROM s
SELECT parse_json(cast(value AS STRING)):a FROM s
SELECT from_json(value, 'a INT, b STRING').a FROM s
SELECT * FROM s TABLESAMPLE (10 PERCENT)
SELECT * FROM (SELECT x, y FROM s) PIVOT (sum(y) FOR x IN ('a' AS a, 'b'))
SELECT * FROM s UNPIVOT (v FOR n IN (a, b))
SELECT * FROM VALUES (1, 'a'), (2, 'b') AS t(id, name)
VALUES (1), (2)
SELECT s.x FROM s JOIN VALUES (1, 'a') AS t(id, name) ON s.id = t.id
SELECT x FROM s WHERE at > TIMESTAMP '2020-01-01' - INTERVAL 1 DAY
SELECT at + INTERVAL '1' DAY, at + INTERVAL '1 02:03:04' DAY TO SECOND, DATE '2020-01-01' FROM s
SELECT at + make_interval(0, 0, 0, 1), at - INTERVAL 2 HOURS 3 MINUTES FROM s
SELECT x <=> y, NOT x, !x, x DIV 2, x % 2, x ^ 1, ~x, x & 1, x | 2, x || 'a', x == 1, x <> 2 FROM s
SELECT transform(xs, x -> x + 1), filter(xs, (x, i) -> i > 0), aggregate(xs, 0, (a, x) -> a + x, a -> a * 2) FROM s
SELECT map('a', 1)['a'], array(1,2)[0], named_struct('a', 1).a, struct(x, y), headers['k'] FROM s
SELECT count(*) FILTER (WHERE x > 1), sum(DISTINCT x), count(DISTINCT x, y) FROM s
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY x), mode() WITHIN GROUP (ORDER BY y) FROM s
SELECT listagg(x, ',') WITHIN GROUP (ORDER BY x), string_agg(x) FROM s
SELECT approx_percentile(x, array(0.5, 0.9), 100), approx_count_distinct(x), percentile(x, 0.5) FROM s
SELECT max_by(x, y), min_by(x, y), any_value(x), first(x, true), last(x) IGNORE NULLS FROM s
SELECT first_value(x) IGNORE NULLS OVER (PARTITION BY y ORDER BY at ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) FROM s
SELECT sum(x) OVER w FROM s WINDOW w AS (PARTITION BY y ORDER BY at)
SELECT row_number() OVER (PARTITION BY y ORDER BY at DESC NULLS LAST) AS r FROM s
SELECT sum(x) OVER (ORDER BY at RANGE BETWEEN INTERVAL 1 HOUR PRECEDING AND CURRENT ROW) FROM s
SELECT lag(x, 1, 0) OVER (ORDER BY at), ntile(4) OVER (ORDER BY x) FROM s
SELECT a.x FROM a LEFT SEMI JOIN b ON a.x = b.x
SELECT a.x FROM a LEFT ANTI JOIN b USING (x)
SELECT a.x FROM a ANTI JOIN b ON a.x = b.x
SELECT * FROM a NATURAL JOIN b
SELECT * FROM a CROSS JOIN b
SELECT * FROM a FULL OUTER JOIN b ON a.x = b.x AND a.at BETWEEN b.at - INTERVAL 1 HOUR AND b.at
SELECT /*+ BROADCAST(b) */ a.x FROM a JOIN b ON a.x = b.x
SELECT x FROM a UNION SELECT x FROM b
SELECT x FROM a INTERSECT SELECT x FROM b
SELECT x FROM a EXCEPT SELECT x FROM b
SELECT x FROM a MINUS SELECT x FROM b
WITH a AS (SELECT 1 AS x), b (y) AS (SELECT x FROM a) SELECT * FROM b, s
WITH RECURSIVE t(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM t WHERE n < 5) SELECT n FROM t
SELECT x FROM s WHERE x IN (SELECT y FROM b) AND EXISTS (SELECT 1 FROM b WHERE b.x = s.x)
SELECT (SELECT max(y) FROM b) AS m, x FROM s
SELECT x FROM s WHERE name RLIKE '^a' AND name NOT LIKE ALL ('%b', '%c') OR name ILIKE 'X%'
SELECT x FROM s WHERE name LIKE '10\%' ESCAPE '\\' OR name REGEXP 'a'
SELECT x FROM s WHERE (a, b) IN ((1, 2), (3, 4))
SELECT x FROM s WHERE x IS DISTINCT FROM y AND z IS NOT DISTINCT FROM 1 AND b IS TRUE
SELECT CASE x WHEN 1 THEN 'a' ELSE 'b' END, CASE WHEN x > 1 THEN 1 END, if(x, 1, 2), nvl(x, 0), coalesce(x, 1), nullif(x, 1) FROM s
SELECT date_trunc('HOUR', at), extract(YEAR FROM at), date_format(at, 'yyyy-MM-dd'), to_timestamp(a, 'yyyy'), unix_timestamp(at), dateadd(DAY, 1, at), datediff(at, b), timestampdiff(HOUR, a, b) FROM s
SELECT date_add(at, 1), date_sub(at, 1), add_months(at, 1), trunc(at, 'MM'), current_timestamp(), current_date, now() FROM s
SELECT concat_ws(',', a, b), substring(a, 1, 2), substr(a FROM 1 FOR 2), trim(BOTH 'x' FROM a), position('a' IN b), overlay(a PLACING 'b' FROM 1), split(a, ',')[0], regexp_extract(a, '(\\d+)', 1) FROM s
SELECT X'1CE0', 1L, 1S, 2Y, 1.5D, 1.5F, 1.5BD, 1e3, r'\d', "double quoted", 'it''s', 'a' 'b' FROM s
SELECT `weird name`, `a.b`, s.`x y` FROM s
SELECT x AS `Ünïcode`, 'ü' FROM s
SELECT x FROM s ORDER BY x NULLS FIRST LIMIT 10 OFFSET 5
SELECT x FROM s DISTRIBUTE BY y SORT BY z
SELECT x FROM s CLUSTER BY y
SELECT x FROM s LIMIT ALL
SELECT TRANSFORM(a, b) USING 'cat' AS (c, d) FROM s
SELECT hash(*), to_json(struct(*)), xxhash64(a) FROM s
SELECT to_json(struct(data.*)) AS value, concat('a.', data.k) AS routing_key FROM s
SELECT * FROM range(10)
SELECT * FROM range(start => 0, end => 10)
SELECT * FROM explode(array(1,2)) AS t(x)
SELECT * FROM parquet.`/some/path`
SELECT * FROM delta.`/x` VERSION AS OF 1
SELECT * FROM cat.db.t TIMESTAMP AS OF '2020-01-01'
SELECT x COLLATE UNICODE_CI FROM s WHERE name COLLATE UTF8_LCASE = 'a'
SELECT ai.x, at.y FROM s ai JOIN t AS at ON ai.x = at.x
SELECT timestamp, offset, queue, value, key, headers, properties, date, time, year, user, count, position, name, type, value FROM s
SELECT source.timestamp AS time, source.offset FROM source
SELECT max(struct(at, x)).x FROM s
SELECT element_at(xs, 1), array_sort(xs, (l, r) -> l - r), sequence(1, 5), flatten(xss), arrays_zip(a, b), map_filter(m, (k, v) -> v > 1) FROM s
SELECT decode(x, 1, 'a', 'b'), decode(value, 'UTF-8'), cast(value AS STRING), base64(value), unhex('00'), sha2(value, 256) FROM s
SELECT uuid(), rand(), monotonically_increasing_id(), input_file_name() FROM s
SELECT current_user(), user, session_user FROM s
SELECT x FROM s HAVING count(*) > 1
SELECT x, count(*) AS c FROM s GROUP BY x HAVING c > 1 AND sum(y) < 5
SELECT grouping(x), sum(y) FROM s GROUP BY x, y GROUPING SETS ((x, y), ())
SELECT stack(2, 1, 'a', 2, 'b') AS (n, l) FROM s
SELECT json_tuple(value, 'a', 'b') AS (a, b) FROM s
SELECT get_json_object(value, '$.a'), schema_of_json('{}'), schema_of_variant(v), variant_get(v, '$.a', 'int') FROM s
SELECT nested.deep.field[0].x['k'] FROM s
SELECT -x, +x, -(-1) FROM s
SELECT x /* comment */ FROM s -- the end
SELECT DISTINCT x, y FROM s
SELECT ALL x FROM s
SELECT IDENTIFIER('x') FROM IDENTIFIER('s')
SELECT TIMESTAMP_NTZ '2020-01-01', TIMESTAMP_LTZ '2020-01-01', INTERVAL -1 MONTH FROM s
SELECT typeof(x), bit_count(x), bitmap_count(x), hll_sketch_agg(x), kurtosis(x), corr(x, y), regr_slope(x, y), histogram_numeric(x, 5) FROM s
SELECT count_if(x), bool_and(x), every(x), some(y), collect_list(x), collect_set(y), array_agg(x) FROM s
SELECT width_bucket(x, 0, 10, 5), greatest(a, b), round(x, 2), bround(x), ceil(x), log(2, x), pmod(x, 3), mod(x, 3) FROM s
SELECT a FROM (s)
SELECT a FROM (a JOIN b ON a.x = b.x)
(SELECT a FROM s) UNION ALL (SELECT a FROM t) ORDER BY a LIMIT 3
SELECT * FROM s QUALIFY row_number() OVER (PARTITION BY x ORDER BY y) = 1
SELECT * FROM STREAM s
SELECT x FROM STREAM(s)
FROM s SELECT x
FROM s SELECT x WHERE x > 1
SELECT st_point(1, 2), time '10:00:00', current_time() FROM s
SELECT x FROM s WHERE at >= '2020-01-01' AND value IS NOT NULL AND NOT isnan(x)
SELECT make_date(1, 2, 3), last_day(at), next_day(at, 'Mon'), months_between(a, b), weekofyear(at), dayofweek(at), hour(at) FROM s
SELECT f.x FROM s f JOIN LATERAL (SELECT * FROM t WHERE t.x = f.x LIMIT 1) u
SELECT 1 WHERE 1 = 1
SELECT raise_error('x'), assert_true(x), try_divide(1, x), try_to_number(a, '9') FROM s
SELECT /*+ REPARTITION(4) */ x FROM s
SELECT approx_top_k(x), theta_sketch_agg(x) FROM s
SELECT x.*, y FROM s
SELECT count(*), count(1), count(DISTINCT *) FROM s
SELECT `count`, sum(a) AS sum, max(b) max FROM s GROUP BY 1
SELECT 0x1F, 1_000 FROM s
SELECT window, x FROM s
SELECT window.end FROM s
SELECT a window FROM s
SELECT x << 1, x >> 1, shiftrightunsigned(x, 1) FROM s
