SELECT queue, count(*) AS messages FROM queue('orders') GROUP BY queue;
SELECT * FROM queue('orders') ORDER BY offset LIMIT 5;
SELECT offset, CAST(value AS STRING) AS body FROM queue('orders') WHERE offset BETWEEN 7 AND 9 ORDER BY offset;
SELECT DISTINCT routing_key FROM queue('orders') ORDER BY routing_key;
SELECT get_json_object(CAST(value AS STRING), '$.customer.name') AS name, count(*) AS orders
FROM queue('orders') GROUP BY get_json_object(CAST(value AS STRING), '$.customer.name') ORDER BY name;
SELECT offset FROM queue('orders') WHERE get_json_object(CAST(value AS STRING), '$.total') > 80 ORDER BY offset;
SELECT offset FROM queue('orders') WHERE get_json_object(CAST(value AS STRING), '$.total') > 80.5 ORDER BY offset;
SELECT sum(CAST(get_json_object(CAST(value AS STRING), '$.total') AS INT)) AS total,
  avg(CAST(get_json_object(CAST(value AS STRING), '$.total') AS DOUBLE)) AS mean FROM queue('orders');
SELECT headers['region'] AS region, count(*) AS n, min(offset) AS first, max(offset) AS last
FROM queue('orders') GROUP BY headers['region'] ORDER BY region;
SELECT offset, properties.message_id, properties.priority FROM queue('orders')
WHERE properties.priority >= 8 ORDER BY offset DESC;
SELECT offset, properties.timestamp FROM queue('orders') WHERE properties.timestamp IS NOT NULL ORDER BY offset;
SELECT date_trunc('hour', properties.timestamp) AS hour, count(*) AS n FROM queue('orders')
GROUP BY 1 ORDER BY 1;
SELECT year(properties.timestamp) AS y, month(properties.timestamp) AS m, day(properties.timestamp) AS d,
  hour(properties.timestamp) AS h FROM queue('orders') WHERE offset = 10;
SELECT to_date(properties.timestamp) AS day, count(*) AS n FROM queue('orders')
WHERE properties.timestamp < TIMESTAMP '2026-03-02 00:00:00' GROUP BY 1 ORDER BY 1;
SELECT offset, properties.timestamp - INTERVAL 90 MINUTES AS before FROM queue('orders')
WHERE offset < 3 ORDER BY offset;
SELECT offset / 3 AS third, offset % 7 AS rest, offset div 2 AS half, -offset AS minus, offset * 1e0 AS same
FROM queue('orders') WHERE offset < 20 ORDER BY offset;
SELECT round(offset / 7, 2) AS a, floor(offset / 7) AS b, ceil(offset / 7) AS c, abs(-offset) AS d
FROM queue('orders') WHERE offset < 20 ORDER BY offset;
SELECT CASE WHEN offset < 10 THEN 'small' WHEN offset < 50 THEN 'middle' ELSE 'large' END AS size, count(*) AS n
FROM queue('orders') GROUP BY 1 ORDER BY 2, 1;
SELECT coalesce(headers['region'], 'none') AS region, if(offset > 95, 'late', 'early') AS part, nullif(offset, 99) AS o
FROM queue('orders') WHERE offset > 93 ORDER BY offset;
SELECT upper(routing_key) AS u, lower('ABC') AS l, length(value) AS bytes, length(routing_key) AS signs,
  substring(routing_key, 1, 3) AS s, trim('  x ') AS t, concat(routing_key, '-', offset) AS c
FROM queue('orders') WHERE offset IN (1, 2, 3) ORDER BY offset;
SELECT offset FROM queue('orders') WHERE headers['region'] LIKE 'n%' AND routing_key NOT LIKE '%x%' ORDER BY offset;
SELECT count(*) AS n FROM queue('orders') WHERE CAST(value AS STRING) RLIKE '"name": "(ada|bob)".*7[0-9]*\\}$';
SELECT count(*) AS n FROM queue('orders') WHERE startswith(routing_key, 'or') AND contains(CAST(value AS STRING), 'ada');
SELECT count(DISTINCT headers['region']) AS regions, count(headers['region']) AS named, count(*) AS n FROM queue('orders');
SELECT headers['region'] AS region, count(*) AS n FROM queue('orders') GROUP BY headers['region']
HAVING count(*) > 20 ORDER BY n DESC, region NULLS LAST;
WITH big AS (SELECT offset, headers['region'] AS region FROM queue('orders') WHERE offset >= 50)
SELECT region, count(*) AS n FROM big GROUP BY region ORDER BY n, region;
SELECT c.key, count(o.offset) AS orders
FROM (SELECT get_json_object(CAST(value AS STRING), '$.key') AS key FROM queue('customers')) AS c
LEFT JOIN (SELECT offset, get_json_object(CAST(value AS STRING), '$.customer.name') AS name FROM queue('orders')) AS o
ON c.key = o.name GROUP BY c.key ORDER BY c.key;
SELECT o.offset FROM queue('orders') AS o LEFT SEMI JOIN queue('customers') AS c ON o.offset = c.offset ORDER BY o.offset;
SELECT o.offset FROM queue('orders') AS o LEFT ANTI JOIN queue('customers') AS c ON o.offset = c.offset
WHERE o.offset < 10 ORDER BY o.offset;
SELECT a.offset, b.offset AS following FROM queue('orders') AS a JOIN queue('orders') AS b ON b.offset = a.offset + 1
WHERE a.offset < 5 ORDER BY a.offset;
SELECT 'orders' AS name, count(*) AS n FROM queue('orders') UNION ALL SELECT 'customers', count(*) FROM queue('customers')
ORDER BY name;
SELECT offset FROM queue('orders') WHERE offset IN (SELECT offset * 2 FROM queue('customers')) ORDER BY offset;
SELECT offset FROM queue('orders') AS o
WHERE EXISTS (SELECT 1 FROM queue('customers') AS c WHERE c.offset = o.offset) ORDER BY offset;
SELECT offset, (SELECT max(offset) FROM queue('customers')) AS most FROM queue('orders') WHERE offset < 2 ORDER BY offset;
SELECT offset, row_number() OVER (PARTITION BY headers['region'] ORDER BY offset DESC) AS place,
  count(*) OVER (PARTITION BY headers['region']) AS n FROM queue('orders') ORDER BY offset LIMIT 12;
SELECT sum(CAST(get_json_object(CAST(value AS STRING), '$.price') AS DECIMAL(10, 2))) AS paid FROM queue('orders');
SELECT offset, CAST(value AS STRING) AS body, get_json_object(CAST(value AS STRING), '$.a') AS a,
  get_json_object(CAST(value AS STRING), '$.list[1]') AS second, get_json_object(CAST(value AS STRING), '$.inner') AS inner
FROM queue('odd') ORDER BY offset;
SELECT count(*) FROM queue('odd') WHERE value = X'fffe';
SELECT offset, properties.timestamp AS t, CAST(properties.timestamp AS BIGINT) AS s FROM queue('odd')
WHERE properties.timestamp IS NOT NULL ORDER BY offset;
SELECT count(*), sum(offset), min(routing_key), CAST(max(offset) AS STRING) FROM stream('log')
WHERE delivery_count IS NULL OR delivery_count = 0 OR NOT redelivered;
SELECT 1 AS one, 2.50 AS two, 'it''s' AS three, NULL AS four, 7 / 2 AS five, CAST('12' AS INT) + 1 AS six,
  CAST(2.7e0 AS INT) AS seven, 1 = 1.0 AS eight, greatest(1, 3, 2) AS nine;
SELECT count(*) FILTER (WHERE offset < 10) AS few, count_if(redelivered) AS again, NULL <=> NULL AS same
FROM queue('orders');
SELECT upper('Straße ﬁn'), lower('ΟΔΟΣ İ'), trim(' x '), 'İ' ILIKE 'i%', floor(9223372036854775807), round(1e300, 2),
  floor(CAST('NaN' AS DOUBLE)), ceil(-0.5e0), avg(offset) FROM queue('customers');
SELECT CASE WHEN offset < 2 THEN 'a' ELSE 'b' END, CASE offset WHEN 1 THEN 'x' END, if(offset > 1, 1, -2), offset IS NOT NULL,
  year(properties.timestamp), month(to_date(properties.timestamp)), redelivered IS NOT TRUE, NOT redelivered
FROM queue('customers') ORDER BY offset;
SELECT d, -d AS minus, count(*) AS n, count_if(d > 1), count_if(NULL) FROM (SELECT -0e0 AS d UNION ALL SELECT 0e0 UNION ALL
SELECT CAST('NaN' AS DOUBLE) UNION ALL SELECT NULL) GROUP BY d ORDER BY d;
SELECT DISTINCT d FROM (SELECT -0e0 AS d UNION ALL SELECT 0e0 UNION ALL SELECT CAST('NaN' AS DOUBLE)) ORDER BY d DESC;
SELECT -0e0 AS d UNION SELECT 0e0 UNION SELECT 1 ORDER BY d;
SELECT -offset AS offset FROM queue('customers') ORDER BY offset + 0;
SELECT instr(t, 'b'), locate('b', t), substr(t, 2), nvl(t, 'x'), ifnull(t, 'x'), len(t), lcase(t), upper(CAST(t AS STRING)),
  CAST(t AS STRING), 01, 1L, 2D, - 1, ceiling(1.5e0), mod(7, 2), DATE '2026-01-01', TIMESTAMP '2026-01-01', t IS NOT NULL,
  CAST('2026-01-01' AS DATE), CAST('1' AS DECIMAL(10, 2)) FROM (SELECT 'abc' AS t);
SELECT offset, count(*) OVER (), row_number() OVER (ORDER BY offset), rank() OVER (PARTITION BY offset % 2 ORDER BY offset DESC),
  max(offset) OVER (PARTITION BY redelivered), min(routing_key) OVER (ORDER BY offset NULLS LAST)
FROM queue('customers') ORDER BY offset;
SELECT date_trunc('HOUR', t), t + INTERVAL 1 HOUR, t - INTERVAL -5 MINUTES, t - INTERVAL 2 WEEKS, t - INTERVAL 100000 WEEKS
FROM (SELECT TIMESTAMP '2026-01-01 10:20:30' AS t);
SELECT '7' / 2, NULL = '7', 7 div '2', -2147483648, l / 0 FROM (SELECT CAST(NULL AS BIGINT) AS l);
SELECT CAST(X'61eda080c08062f09f98' AS STRING) AS s;
SELECT ok AND CAST(t AS INT) > 1 AS v, NOT ok OR CAST(t AS INT) > 1 OR t = 'a' OR ok, if(ok AND CAST(t AS INT) > 1, 1, 0) AS c
FROM (SELECT 'x' AS t, false AS ok UNION ALL SELECT '12', true UNION ALL SELECT NULL, NULL) ORDER BY v;
SELECT max(CAST(t AS INT)) FILTER (WHERE ok), count(t) FILTER (WHERE ok), count_if(ok AND CAST(t AS INT) > 1)
FROM (SELECT 'x' AS t, false AS ok UNION ALL SELECT '12', true UNION ALL SELECT NULL, NULL);
SELECT properties.priority, CAST(properties.priority AS STRING), CAST(offset AS STRING), headers['region'], upper(headers['region']),
  CAST(headers['n'] AS INT) FROM queue('orders') WHERE offset NOT IN (SELECT offset FROM queue('customers'))
AND (headers['n'] IS NULL OR offset IN (SELECT offset + 10 FROM queue('customers'))) ORDER BY properties.priority, 3;
