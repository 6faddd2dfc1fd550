SELECT * FROM lake('shop') ORDER BY id;
SELECT count(*) AS n, sum(price) AS paid, max(at) AS latest, min(day) AS first, avg(share) AS mean FROM lake('shop')
WHERE at > TIMESTAMP '2026-01-01 03:00:00' AND name LIKE 'x%' AND price > 1;
SELECT detail.a, labels['k'] AS k FROM lake('shop') WHERE detail.z = '3' OR labels['k'] IS NULL ORDER BY id;
SELECT a.id, b.name FROM lake('shop') AS a JOIN lake('shop') AS b ON a.id = b.n + 1 WHERE b.ok ORDER BY a.id;
SELECT id FROM lake('shop') WHERE day BETWEEN DATE '2026-01-03' AND DATE '2026-01-05' AND value <> X'32' ORDER BY id;
SELECT l.name, count(q.offset) AS orders FROM lake('shop') AS l LEFT JOIN queue('orders') AS q ON q.offset = l.id
GROUP BY l.name ORDER BY l.name;
SELECT offset FROM queue('orders') WHERE offset IN (SELECT id FROM lake('shop') WHERE NOT ok) ORDER BY offset;
