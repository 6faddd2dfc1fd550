"""Request and reply with the blocking API: a server in its own thread, and a client.

    python examples/client_request_reply.py [amqp://guest:guest@localhost:5672/%2F]

A connection belongs to one thread, so each side has its own.
"""

from __future__ import annotations

import sys
import threading

from harebell.client import blocking

REQUESTS = "example.requests"


def serve(url: str, ready: threading.Event, stop: threading.Event) -> None:
    """Answer requests with their text in capitals."""
    with blocking.connect(url) as connection:
        channel = connection.channel()
        channel.declare_queue(REQUESTS, auto_delete=True)
        with channel.consume(REQUESTS, timeout=0.1) as requests:
            ready.set()
            while not stop.is_set():
                for request in requests:
                    channel.publish(
                        request.body.upper(),
                        routing_key=request.reply_to or "",
                        correlation_id=request.correlation_id or "",
                    )
                    request.ack()


def ask(url: str, questions: list[bytes]) -> list[bytes]:
    """Send the requests and wait for the replies, which may arrive in any order."""
    with blocking.connect(url) as connection, connection.requester() as requester:
        pending = [requester.send(question, routing_key=REQUESTS) for question in questions]
        return [reply.wait(timeout=10.0).body for reply in pending]


def main(url: str) -> None:
    """Run the server and send three requests."""
    ready, stop = threading.Event(), threading.Event()
    server = threading.Thread(target=serve, args=(url, ready, stop))
    server.start()
    try:
        ready.wait(10.0)
        for answer in ask(url, [b"who", b"where", b"when"]):
            print(answer.decode())
    finally:
        stop.set()
        server.join()


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "amqp://")
