"""Prometheus asks a running driver over HTTP."""

from __future__ import annotations

import http.client
import urllib.request
from urllib.parse import urlsplit

import pytest

from harebell.pipeline.errors import PipelineError
from harebell.pipeline.registry import PipelineState
from harebell.pipeline.run.serving import address_of, serving


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("9090", ("127.0.0.1", 9090)),
        ("0", ("127.0.0.1", 0)),
        ("0.0.0.0:9090", ("0.0.0.0", 9090)),
        ("[::1]:9090", ("::1", 9090)),
        (":9090", None),
        ("here", None),
        ("70000", None),
        ("-1", None),
        ("", None),
    ],
)
def test_an_address_is_a_port_or_a_host_with_a_port(
    text: str, address: tuple[str, int] | None
) -> None:
    assert address_of(text) == address


def test_the_present_states_are_served() -> None:
    state = PipelineState("orders", "", 1, "running")
    with serving(("127.0.0.1", 0), lambda: [state]) as url:
        state.rows = 5
        with urllib.request.urlopen(url, timeout=60) as answer:
            assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
            text = answer.read().decode()
        assert 'harebell_pipeline_rows_read_total{pipeline="orders"} 5\n' in text
        state.rows = 6
        with urllib.request.urlopen(url, timeout=60) as answer:
            assert 'rows_read_total{pipeline="orders"} 6\n' in answer.read().decode()


def test_there_is_nothing_else() -> None:
    with serving(("127.0.0.1", 0), list) as url:
        place = urlsplit(url)
        assert place.hostname
        connection = http.client.HTTPConnection(place.hostname, place.port, timeout=60)
        for method, path, code in (("GET", "/", 404), ("HEAD", "/metrics", 200)):
            connection.request(method, path)
            answer = connection.getresponse()
            assert answer.status == code
            assert bool(answer.read()) == (method == "GET")
        connection.close()


def test_a_port_that_is_taken_is_told() -> None:
    with serving(("127.0.0.1", 0), list) as url:
        port = urlsplit(url).port
        assert port
        with (
            pytest.raises(PipelineError, match=f"cannot serve metrics on 127.0.0.1:{port}: "),
            serving(("127.0.0.1", port), list),
        ):
            pass
