"""What a refresh of the list of queues costs: `python -m bench.listing [QUEUES]`.

A broker with that many queues, some of which have messages and move, answers what the page of
queues asks for every five seconds, in each of its orders. Printed is the broker's CPU time per
refresh: the least and the median.
"""

from __future__ import annotations

import statistics
import sys
from base64 import b64encode
from urllib.request import Request, urlopen

from bench.process import exact_cpu_seconds
from harebell.client.blocking import connect
from tests.ports import free_port
from tests.running import running_broker

_QUEUES = 5_000
_REFRESHES = 40
_ASKED = (
    "api/queues?page=1&page_size=100&lengths_age=600&lengths_incr=30&columns=name,vhost,type,"
    "durable,auto_delete,exclusive,policy,messages_ready,messages_unacknowledged,messages,"
    "consumers,message_stats.publish_details.rate,message_stats.deliver_get_details.rate,"
    "state,consumer_utilisation,oldest_seconds,message_bytes,messages_trend,"
    "messages_details.samples"
)
_FIGURES = (
    *("messages_ready", "messages_unacknowledged", "oldest_seconds", "message_bytes"),
    *("messages_trend", "message_stats.publish_details.rate"),
    *("message_stats.deliver_get_details.rate", "consumers"),
)
_ORDERS = ("name", "vhost", "state", *(f"{figure}&sort_reverse=true" for figure in _FIGURES))
_LOGIN = {"authorization": "Basic " + b64encode(b"guest:guest").decode()}


def main(queues: int) -> None:
    """Measure each order, and print a line for it."""
    port = free_port()
    with running_broker("--management-port", str(port)) as broker:
        url = f"http://127.0.0.1:{port}/"
        with connect(f"amqp://guest:guest@127.0.0.1:{broker.port}/%2F") as connection:
            channel = connection.channel()
            for number in range(queues):
                channel.declare_queue(f"queue-{number}")
                for _ in range(number % 3):
                    channel.publish(b"body", routing_key=f"queue-{number}")
            costs: dict[str, list[float]] = {order: [] for order in _ORDERS}
            # In turn, so that a busy moment of the machine meets all of them.
            for _ in range(_REFRESHES):
                for order, taken in costs.items():
                    request = Request(f"{url}{_ASKED}&sort={order}", headers=_LOGIN)
                    before = exact_cpu_seconds(broker.pid)
                    urlopen(request).read()
                    taken.append((exact_cpu_seconds(broker.pid) - before) * 1_000)
            for order, taken in costs.items():
                name = order.partition("&")[0]
                print(f"{name:40} {min(taken):6.1f} ms {statistics.median(taken):6.1f} ms")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else _QUEUES)
