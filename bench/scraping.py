"""What a scrape costs: `python -m bench.scraping [QUEUES]`.

A broker with that many queues, which have a message each, is scraped again and again.
Printed are the samples, the broker's CPU time per scrape, and how late its event loop was.
"""

from __future__ import annotations

import sys
import time
from urllib.request import urlopen

from bench.process import exact_cpu_seconds
from harebell.client.blocking import connect
from tests.ports import free_port
from tests.running import running_broker

_QUEUES = 1_200
_SCRAPES = 20
_PATHS = (
    "metrics",
    "metrics/per-object",
    "metrics/detailed?family=queue_coarse_metrics&family=harebell_queue_ages",
)


def _samples(text: bytes) -> int:
    return sum(not line.startswith(b"#") for line in text.splitlines())


def _lag(text: bytes) -> float:
    """The smallest bound of the event loop's delays that no delay was above."""
    name = b"harebell_event_loop_lag_seconds_bucket"
    buckets = [line for line in text.splitlines() if line.startswith(name)]
    counts = [int(line.rpartition(b" ")[2]) for line in buckets]
    first = next(line for line, count in zip(buckets, counts, strict=True) if count == counts[-1])
    return float(first.split(b'le="')[1].split(b'"')[0])


def main(queues: int) -> None:
    """Measure each path, and print a line for it."""
    port = free_port()
    with running_broker("--metrics-port", str(port)) as broker:
        with connect(f"amqp://guest:guest@127.0.0.1:{broker.port}/%2F") as connection:
            channel = connection.channel()
            for number in range(queues):
                channel.declare_queue(f"queue-{number}")
                channel.publish(b"body", routing_key=f"queue-{number}")
        for path in _PATHS:
            url = f"http://127.0.0.1:{port}/{path}"
            text = urlopen(url).read()
            before, began = exact_cpu_seconds(broker.pid), time.monotonic()
            for _ in range(_SCRAPES):
                text = urlopen(url).read()
            used = exact_cpu_seconds(broker.pid) - before
            passed = time.monotonic() - began
            print(
                f"{path.partition('?')[0]:18} {_samples(text):6} samples"
                f"  {used / _SCRAPES * 1_000:6.1f} ms CPU  {passed / _SCRAPES * 1_000:6.1f} ms"
            )
        text = urlopen(f"http://127.0.0.1:{port}/metrics").read()
        print(f"the event loop was at most {_lag(text) * 1_000:.1f} ms late")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else _QUEUES)
