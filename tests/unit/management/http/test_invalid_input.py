"""No request gives 500, whatever its path, its query, its header fields and its body say."""

from __future__ import annotations

import http.client
import socket
from base64 import b64encode
from collections.abc import Iterator
from urllib.parse import quote_from_bytes

import hypothesis
import msgspec
import pytest
from hypothesis import strategies as st

from harebell.admin.catalog import commands
from harebell.admin.command import REQUIRED
from harebell.management.http.routes import Route, routes_of
from tests.patience import SECONDS
from tests.unit.management.http.asking import Api, running_api

ROUTES = routes_of(commands())
LOGIN = b64encode(b"guest:guest").decode()
# They end the broker, or wait for it.
LEFT_OUT = ("/api/reset", "/stop", "/shutdown")

_NESTED = "[" * 2_000 + "]" * 2_000
_DEEP = '{"a":' * 300 + "1" + "}" * 300
_JSON = (
    *("null", "true", "1", '""', "[]", "{}", "[{}]", "NaN", "Infinity", "1e999", "-0", "1.5"),
    *("18446744073709551616", "9223372036854775808", "-9223372036854775809", "1" * 400),
    *('"\\ud800"', '"\\u0000"', '"\\uffff"', '"(?<x>"', '"x{99999999999}"', '"' + "x" * 300 + '"'),
    *(
        '"\u00e9"',
        '{"a":{"b":[1,{"c":null}]}}',
        '{"":""}',
        '{"x-max-length":"many"}',
        _NESTED,
        _DEEP,
    ),
)
_VALUES = st.sampled_from(_JSON)
_SEGMENTS = st.sampled_from(
    [
        *(b"/", b"guest", b"a", b"amq.topic", b"amq.default", b"", b"..", b"%", b"\x00", b"\xff"),
        *(b"\xed\xa0\x80", b"a/b", b"\n", b"\xc3\xa9" * 200, b"x" * 5_000, b"1", b"-1", b"~"),
    ]
)
_QUERIES = st.sampled_from(
    [
        *("", "page=1", "page=0", "page=-1", "page=%FF", "page=1&page_size=501", "page=\u0661"),
        *("page=1" + "0" * 5_000, "page=1&name=(&use_regex=true", "sort=a.b.c", "columns=,.,"),
        *("page=1&name=x%7B99999999999%7D&use_regex=true", "sort=name&sort_reverse=2", "a;b"),
        *("lengths_age=-1&lengths_incr=0", "lengths_age=1e9&lengths_incr=nan", "lengths_age=5"),
        *("msg_rates_age=999999999999999999999&msg_rates_incr=1", "disable_stats=7", "&&&=&=="),
        *("vhost=%ED%A0%80", "truncate=-1", "count=1e3", "if-unused=maybe", "auth=%%%"),
    ]
)
_KINDS = st.sampled_from(
    ["application/json", "", "multipart/form-data", "multipart/form-data; boundary=b", "text/\xe9"]
)
_RAW = st.one_of(
    st.sampled_from([b"", b"\xff\xfe", b"--b\r\n\r\n--b--", b'{"a":1', b"{" * 500]),
    st.binary(max_size=20),
)


@pytest.fixture(scope="module")
def api() -> Iterator[Api]:
    with running_api() as found:
        found.done("PUT", "/api/queues/%2F/a", {"durable": True})
        yield found


def path_of(route: Route, data: st.DataObject) -> str:
    """The path of a route, with odd names."""
    parts = []
    for segment in route.segments:
        if segment.startswith("{"):
            raw = data.draw(_SEGMENTS, label=segment)
            parts.append("%" if raw == b"%" else quote_from_bytes(raw, safe=""))
        else:
            parts.append(segment)
    return "/" + "/".join(parts)


def body_of(route: Route, data: st.DataObject) -> bytes:
    """A body whose members are those of the command, with odd values."""
    if data.draw(st.integers(0, 4), label="raw") == 0:
        return data.draw(_RAW, label="body")
    names = [each.name for each in route.command.parameters]
    chosen = data.draw(st.lists(st.sampled_from([*names, "other"]), unique=True), label="members")
    pairs = [f'"{name}":{data.draw(_VALUES, label=name)}' for name in chosen]
    return ("{" + ",".join(pairs) + "}").encode("utf-8", "surrogatepass")


def status_of(api: Api, method: str, path: str, kind: str, body: bytes) -> int:
    """Send a request as it is; returns the status of the answer."""
    return answered(api, method, path, kind, body)[0]


def answered(api: Api, method: str, path: str, kind: str, body: bytes) -> tuple[int, bytes]:
    """Send a request as it is; returns status and body of the answer."""
    with socket.create_connection(("127.0.0.1", api.port), timeout=SECONDS) as link:
        head = f"{method} {path} HTTP/1.1\r\nhost: a\r\nauthorization: Basic {LOGIN}\r\n"
        head += f"content-type: {kind}\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
        link.sendall(head.encode("latin-1", "replace") + body)
        answer = http.client.HTTPResponse(link, method=method)
        answer.begin()
        said = answer.read()
        if answer.status >= 400 and method != "HEAD":
            assert msgspec.json.decode(said), said
        return answer.status, said


@pytest.mark.parametrize(
    "route",
    [each for each in ROUTES if not each.path.endswith(LEFT_OUT)],
    ids=lambda route: f"{route.method} {route.path}",
)
@hypothesis.settings(
    max_examples=8,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(hypothesis.HealthCheck),
)
@hypothesis.given(data=st.data())
def test_no_input_of_a_route_gives_500(api: Api, route: Route, data: st.DataObject) -> None:
    path = path_of(route, data)
    query = data.draw(_QUERIES, label="query")
    body = b"" if route.method == "GET" else body_of(route, data)
    target = f"{path}?{query}" if query else path
    status = status_of(api, route.method, target, data.draw(_KINDS, label="kind"), body)
    assert status != 500


_LONG: tuple[object, ...] = (
    "x" * 200_000,
    ["<b>"] * 20_000,
    [[[[]]] * 10_000] * 2,
    {f"k{number}": {"n": number} for number in range(20_000)},
    10**600,
)


@pytest.mark.parametrize(
    "route",
    [each for each in ROUTES if each.method in ("PUT", "POST")],
    ids=lambda route: f"{route.method} {route.path}",
)
def test_no_error_repeats_all_of_a_long_request(api: Api, route: Route) -> None:
    path = "/" + "/".join("a" if part.startswith("{") else part for part in route.segments)
    path = path.replace("/api/a", "/api/%2F") if "{vhost}" in route.segments else path
    if path.endswith(LEFT_OUT):
        return
    parameters = route.command.parameters
    needed = {each.name: "a" for each in parameters if each.default is REQUIRED}
    for value in _LONG:
        for each in parameters:
            body = msgspec.json.encode({**needed, each.name: value})
            status, said = answered(api, route.method, path, "application/json", body)
            assert status < 400 or len(said) < 10_000, (each.name, said[:500])


@pytest.mark.parametrize("authorization", ["Basic", "Basic \xff", "Bearer ", "Basic Og==", "\x00"])
def test_no_login_gives_500(api: Api, authorization: str) -> None:
    headers = {"authorization": authorization} if "\x00" not in authorization else {"a": "b"}
    answer = api.ask("GET", "/api/whoami", user=None, headers=headers)
    assert answer.status == 401
