"""The ports of a broker open in an order in which clients can rely on each other."""

from __future__ import annotations

import socket
import threading
import urllib.request

from tests.ports import free_port
from tests.running import running_broker

TRIES = 3


def _answers(address: str) -> int:
    request = urllib.request.Request(address)
    request.add_header("authorization", "Basic Z3Vlc3Q6Z3Vlc3Q=")
    with urllib.request.urlopen(request, timeout=60) as answer:
        return int(answer.status)


class FirstClient(threading.Thread):
    """A client that asks over HTTP as soon as the port of AMQP takes its connection."""

    def __init__(self, port: int, addresses: list[str]) -> None:
        super().__init__(daemon=True)
        self.port = port
        self.addresses = addresses
        self.over = threading.Event()
        self.found: list[object] = []

    def run(self) -> None:
        while not self.over.is_set():
            try:
                socket.create_connection(("127.0.0.1", self.port), 60).close()
            except OSError:
                continue
            for address in self.addresses:
                try:
                    self.found.append(_answers(address))
                except OSError as error:
                    self.found.append(error)
            return


def test_a_client_that_can_connect_can_ask_over_http_and_for_metrics() -> None:
    for _ in range(TRIES):
        amqp, http, metrics = free_port(), free_port(), free_port()
        addresses = [
            f"http://127.0.0.1:{http}/api/overview",
            f"http://127.0.0.1:{metrics}/metrics",
        ]
        first = FirstClient(amqp, addresses)
        first.start()
        try:
            flags = ("--port", str(amqp), "--management-port", str(http))
            with running_broker(*flags, "--metrics-port", str(metrics)):
                first.join(60)
        finally:
            first.over.set()
        assert first.found == [200, 200]
