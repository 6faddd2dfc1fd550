DELETE FROM queue('orders') WHERE true;
DELETE FROM queue('orders') WHERE get_json_object(CAST(value AS STRING), '$.total') > 80;
DELETE FROM queue('orders') WHERE headers['region'] IS NULL OR headers['region'] LIKE 'N%';
DELETE FROM queue('orders') WHERE offset % 7 = 3 AND NOT redelivered AND delivery_count = 0;
DELETE FROM queue('orders') WHERE properties.timestamp >= TIMESTAMP '2026-03-02 00:00:00' AND properties.priority IN (1, 2);
DELETE FROM queue('orders') WHERE CAST(headers['n'] AS INT) BETWEEN 10 AND 20 AND properties.message_id RLIKE 'm1[0-4]';
MOVE FROM queue('orders') TO queue('customers') SET value = concat('x', CAST(value AS STRING)) WHERE offset < 5;
MOVE FROM queue('orders') TO exchange('e') SET routing_key = concat(routing_key, '.', headers['region']) WHERE offset < 9;
MOVE FROM queue('orders') TO exchange('e') SET routing_key = offset, value = value WHERE length(value) > 80;
MOVE FROM queue('orders') TO queue('customers')
SET value = CASE WHEN offset < 3 THEN 'small' ELSE get_json_object(CAST(value AS STRING), '$.price') END,
  routing_key = upper(routing_key) WHERE routing_key = 'orders';
RETRY FROM queue('odd') SET value = coalesce(get_json_object(CAST(value AS STRING), '$.a'), 'none') WHERE length(value) > 0;
DELETE FROM queue('odd') WHERE CAST(value AS STRING) LIKE '%a%' AND queue = 'odd' AND exchange = '';
