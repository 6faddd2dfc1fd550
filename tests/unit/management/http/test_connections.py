"""What clients may take of the ports for HTTP before they have logged in, and for how long."""

from __future__ import annotations

import http.client
import re
import resource
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple
from urllib.request import urlopen

import pytest

from harebell.management.limits import (
    HTTP_ARGUMENTS_BYTES,
    HTTP_EARLY_BODY_BYTES,
    HTTP_HEAD_BYTES,
    HTTP_HEAD_LINES,
)
from tests.patience import SECONDS, eventually
from tests.ports import free_port
from tests.running import RunningBroker, running_broker
from tests.unit.management.http.asking import Api

LIMIT = 20
LOGIN = "authorization: Basic Z3Vlc3Q6Z3Vlc3Q="


class Served(NamedTuple):
    """A broker with an HTTP API and metrics.

    Args:
        broker: the broker.
        api: its HTTP API.
        metrics: the port of its metrics.
    """

    broker: RunningBroker
    api: Api
    metrics: int

    @property
    def ports(self) -> tuple[int, int]:
        """Both ports."""
        return self.api.port, self.metrics

    def is_ready(self) -> bool:
        """Whether the probe and the metrics are answered."""
        for path in ("/health/ready", "/metrics"):
            with urlopen(f"http://127.0.0.1:{self.metrics}{path}", timeout=SECONDS) as answer:
                if answer.status != 200:
                    return False
        return True


@contextmanager
def serving(request_seconds: int, *flags: str) -> Iterator[Served]:
    """A broker that waits for so many seconds for a request."""
    ports = free_port(), free_port()
    flags += ("--management-port", str(ports[0]), "--metrics-port", str(ports[1]))
    seconds = ("--management-request-timeout-seconds", str(request_seconds))
    with running_broker(*flags, *seconds) as broker:
        yield Served(broker, Api(ports[0]), ports[1])


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    """A broker that waits a second for a request; only who sends none may ask it."""
    with serving(1) as found:
        yield found


@pytest.fixture(scope="module")
def crowded() -> Iterator[Served]:
    """A broker with few connections for HTTP, of which none ends by itself during a test."""
    with serving(600, "--management-connection-max", str(LIMIT)) as found:
        yield found


@pytest.fixture(scope="module")
def patient() -> Iterator[Served]:
    """A broker that waits longer than any test, also for one that stands still for a second."""
    with serving(600) as found:
        yield found


def link_to(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=SECONDS)


def request(method: str, path: str, *fields: str) -> bytes:
    return "\r\n".join((f"{method} {path} HTTP/1.1", "host: a", *fields, "", "")).encode()


def read_answer(link: socket.socket) -> http.client.HTTPResponse:
    answer = http.client.HTTPResponse(link)
    answer.begin()
    answer.read()
    return answer


def ends(link: socket.socket) -> bool:
    """Whether the broker ends a connection, whatever it says before."""
    try:
        while link.recv(65_536):
            pass
    except ConnectionError:
        pass
    return True


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"GET /api/overview HTTP/1.1\r\n",
        b"\r\n",
        b"GET /api/overview HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\nab",
        b"POST /api/login HTTP/1.1\r\nhost: a\r\ncontent-length: 9000\r\n\r\nusername=",
        b"POST /api/login HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n5\r\nabcde",
    ],
)
def test_a_client_that_sends_no_whole_request_is_cut_off(served: Served, sent: bytes) -> None:
    for port in served.ports:
        with link_to(port) as link:
            link.sendall(sent)
            assert ends(link)


def test_bytes_that_come_slowly_do_not_extend_the_time_for_a_request(served: Served) -> None:
    for port in served.ports:
        with link_to(port) as link:
            link.settimeout(0.1)
            link.sendall(b"GET / HTTP/1.1\r\n")

            def is_cut(link: socket.socket = link) -> bool:
                try:
                    link.sendall(b"a: b\r\n")
                    return link.recv(1) == b""
                except TimeoutError:
                    return False
                except OSError:
                    return True

            assert eventually(is_cut)


def test_a_cut_off_request_gives_one_line_that_is_no_error(served: Served) -> None:
    with link_to(served.api.port) as link:
        link.sendall(b"GET /a-request-that-never-ends HTTP/1.1\r\n")
        assert ends(link)
    begun = request("PUT", "/api/vhosts/gone", LOGIN, "content-length: 500") + b'{"desc'
    with link_to(served.api.port) as link:
        link.sendall(begun)
    assert eventually(lambda: "has closed its connection during PUT" in served.broker.log)
    assert eventually(lambda: "has sent no whole request" in served.broker.log)
    lines = served.broker.log.splitlines()
    assert any("[info]" in each and "has sent no whole request" in each for each in lines)
    assert not [each for each in lines if "[error]" in each or "Traceback" in each]


def test_idle_connections_make_room_for_probes_and_users(crowded: Served) -> None:
    with ExitStack() as stack:
        for _ in range(3 * LIMIT):
            for port in crowded.ports:
                stack.enter_context(link_to(port))
        assert crowded.is_ready()
        assert crowded.api.get("/api/overview")["node"]
    assert eventually(lambda: "make room for new ones" in crowded.broker.log)


def test_half_sent_requests_make_room_for_probes_and_users(crowded: Served) -> None:
    with ExitStack() as stack:
        for _ in range(3 * LIMIT):
            for port in crowded.ports:
                link = stack.enter_context(link_to(port))
                link.sendall(b"POST /api/login HTTP/1.1\r\ncontent-length: 9\r\n")
        assert crowded.is_ready()
        assert crowded.api.get("/api/overview")["node"]


def test_clients_that_read_no_answer_make_room_for_probes_and_users(crowded: Served) -> None:
    with ExitStack() as stack:
        for _ in range(3 * LIMIT):
            for port, path in zip(crowded.ports, ("/api/openapi.json", "/metrics"), strict=True):
                link = stack.enter_context(link_to(port))
                link.sendall(100 * request("GET", path))
        assert crowded.is_ready()
        assert crowded.api.get("/api/overview")["node"]


def test_a_client_that_reads_no_answer_is_cut_off(served: Served) -> None:
    with link_to(served.api.port) as link:
        link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        try:
            for _ in range(100):
                link.sendall(request("GET", "/api/openapi.json"))
        except ConnectionError:
            pass
        assert eventually(lambda: "does not read its answer" in served.broker.log)


def test_a_user_has_a_share_of_the_connections(crowded: Served) -> None:
    crowded.api.user("greedy", "administrator", vhost="/")
    crowded.api.done("PUT", "/api/queues/%2F/watched", {})
    with ExitStack() as stack:
        login = "authorization: Basic Z3JlZWR5OnA="
        idle = []
        for _ in range(2 * LIMIT):
            link = stack.enter_context(link_to(crowded.api.port))
            link.sendall(request("GET", "/api/whoami", login))
            assert read_answer(link).status == 200
            idle.append(link)
        assert crowded.api.get("/api/whoami")["name"] == "guest"
        assert ends(idle[0]), "the oldest has made room"


def test_a_login_form_has_a_small_body(patient: Served) -> None:
    body = b"username=guest&password=guest&more=" + b"x" * HTTP_EARLY_BODY_BYTES
    assert patient.api.ask("POST", "/api/login", body, user=None).status == 413
    assert patient.api.ask("POST", "/api/login", b"username=guest&password=guest").status == 200


def test_a_body_of_arguments_is_small_and_one_of_messages_may_be_large(patient: Served) -> None:
    large = "x" * HTTP_ARGUMENTS_BYTES
    answer = patient.api.ask("PUT", "/api/queues/%2F/large", {"arguments": {"a": large}})
    assert answer.status == 413
    sent = {"properties": {}, "routing_key": "no", "payload": large, "payload_encoding": "string"}
    path = "/api/exchanges/%2F/amq.default/publish"
    assert patient.api.done("POST", path, sent).json == {"routed": False}


@pytest.mark.parametrize("login", [LOGIN, "authorization: Basic bm9ib2R5OnA="])
@pytest.mark.parametrize("connection", ["close", "keep-alive"])
def test_a_client_that_sends_a_whole_body_that_is_too_large_reads_why(
    patient: Served, connection: str, login: str
) -> None:
    body = b"x" * 30_000_000
    head = request(
        "POST",
        "/api/definitions",
        login,
        f"content-length: {len(body)}",
        f"connection: {connection}",
    )
    with link_to(patient.api.port) as link:
        # As urllib and other clients do, which look for no answer before the end.
        link.sendall(head + body)
        answer = read_answer(link)
        assert answer.status == (413 if login == LOGIN else 401)
        if connection == "close":
            assert ends(link)


def test_octets_sent_before_a_login_are_not_kept(patient: Served) -> None:
    pid = patient.broker.process.pid

    def resident() -> int:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize()

    patient.api.get("/api/overview")
    count, each_bytes = 60, 8_000_000
    with ExitStack() as stack:
        before = resident()
        head = request("POST", "/api/login", f"content-length: {each_bytes}")
        for _ in range(count):
            link = stack.enter_context(link_to(patient.api.port))
            link.settimeout(0.2)
            link.sendall(head)
            with suppress(OSError):  # nobody reads it, or the answer is 413 already
                link.sendall(b"x" * (each_bytes - 1))
        assert patient.api.get("/api/overview")["node"]
        assert resident() - before < count * 262_144


def test_both_content_length_and_transfer_encoding_are_refused_and_closed(patient: Served) -> None:
    fields = ("content-length: 4", "transfer-encoding: chunked")
    for order in (fields, fields[::-1]):
        with link_to(patient.api.port) as link:
            smuggled = request("GET", "/api/whoami", LOGIN)
            link.sendall(request("POST", "/api/login", *order) + b"0\r\n\r\n" + smuggled)
            answer = read_answer(link)
            assert (answer.status, answer.getheader("connection")) == (400, "close")
            assert ends(link)


@pytest.mark.parametrize(
    "fields",
    [["a: " + "x" * HTTP_HEAD_BYTES], ["a: b"] * HTTP_HEAD_LINES],
    ids=["long", "many"],
)
def test_a_head_has_a_limit(patient: Served, fields: list[str]) -> None:
    for port in patient.ports:
        with link_to(port) as link:
            link.sendall(request("GET", "/", *fields))
            assert read_answer(link).status == 431
            assert ends(link)


def test_octets_that_are_no_http_are_refused(patient: Served) -> None:
    for port in patient.ports:
        with link_to(port) as link:
            link.sendall(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"x" * 50)
            assert read_answer(link).status == 400
            assert ends(link)


def test_requests_that_come_together_are_answered_in_their_order(patient: Served) -> None:
    with link_to(patient.api.port) as link:
        body = b"username=guest&password=guest"
        login = request("POST", "/api/login", f"content-length: {len(body)}") + body
        asked = [request("GET", "/api/whoami", LOGIN), request("GET", "/none", LOGIN), login]
        last = request("GET", "/none", "connection: close")
        link.sendall(b"".join(asked * 20) + last)
        answers = b"".join(iter(lambda: link.recv(65_536), b""))
        found = re.findall(rb"HTTP/1.1 (\d+)", answers)
        assert found == [b"200", b"404", b"200"] * 20 + [b"404"]


def test_a_body_in_chunks_of_one_byte_is_read(patient: Served) -> None:
    body = b'{"properties":{},"routing_key":"no","payload":"' + b"\\n" * 5_000
    body += b'","payload_encoding":"string"}'
    chunks = b"".join(b"1\r\n%c\r\n" % each for each in body) + b"0\r\n\r\n"
    path = "/api/exchanges/%2F/amq.default/publish"
    with link_to(patient.api.port) as link:
        link.sendall(request("POST", path, LOGIN, "transfer-encoding: chunked") + chunks)
        assert read_answer(link).status == 200


def test_a_client_that_waits_for_100_continue_gets_it(patient: Served) -> None:
    with link_to(patient.api.port) as link:
        fields = (LOGIN, "content-length: 2", "expect: 100-continue")
        link.sendall(request("PUT", "/api/vhosts/patient", *fields))
        assert link.recv(100).startswith(b"HTTP/1.1 100")
        link.sendall(b"{}")
        assert read_answer(link).status in (201, 204)
