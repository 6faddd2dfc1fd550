"""The HTTP API answers with RabbitMQ's statuses, headers and bodies."""

from __future__ import annotations

import gzip
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.running import command, environment
from tests.unit.management.http.asking import Api, running_api

NOT_FOUND = {"error": "Object Not Found", "reason": "Not Found"}


@pytest.fixture(scope="module")
def api() -> Iterator[Api]:
    with running_api("--management-body-max-bytes", "1000") as found:
        yield found


def test_a_request_without_a_login_is_asked_for_one(api: Api) -> None:
    answer = api.ask("GET", "/api/whoami", user=None)
    assert answer.status == 401
    assert answer.headers["www-authenticate"] == 'Basic realm="RabbitMQ Management"'


@pytest.mark.parametrize("user", ["guest:wrong", "nobody:guest", "guest", ":"])
def test_a_wrong_login_is_refused(api: Api, user: str) -> None:
    answer = api.ask("GET", "/api/whoami", user=user)
    assert answer.status == 401
    assert answer.json["error"] == "not_authorized"


def test_a_token_is_refused_with_a_reason(api: Api) -> None:
    answer = api.ask("GET", "/api/whoami", user=None, headers={"authorization": "Bearer abc"})
    assert answer.status == 401
    assert "OAuth 2" in answer.json["reason"]


def test_logins_are_counted(api: Api) -> None:
    api.ask("GET", "/api/whoami", user="guest:wrong")
    node = f"harebell@{os.uname().nodename.partition('.')[0]}"
    (row,) = api.get(f"/api/auth/attempts/{node}")
    assert row["protocol"] == "http"
    assert row["auth_attempts_failed"] >= 1
    assert row["auth_attempts"] == row["auth_attempts_failed"] + row["auth_attempts_succeeded"]
    assert api.ask("GET", "/api/auth/attempts/other@host").status == 404


@pytest.mark.parametrize("path", ["/nothing", "/api/nothing", "/api/queues/%2F/a/b/c"])
def test_an_unknown_path_is_not_found(api: Api, path: str) -> None:
    answer = api.ask("GET", path)
    assert (answer.status, answer.json) == (404, NOT_FOUND)


def test_a_slash_at_the_end_makes_no_difference_and_an_empty_vhost_is_not_found(api: Api) -> None:
    assert api.get("/api/queues/") == api.get("/api/queues")
    assert api.ask("GET", "/api/queues//").status == 404


def test_a_method_that_a_path_does_not_have_is_refused_with_those_that_it_has(api: Api) -> None:
    answer = api.ask("DELETE", "/api/whoami")
    assert answer.status == 405
    assert answer.headers["allow"] == "HEAD, GET, OPTIONS"
    assert set(answer.json) == {"error", "reason"}


def test_options_need_no_login(api: Api) -> None:
    answer = api.ask("OPTIONS", "/api/queues/%2F/q", user=None)
    assert answer.status == 200
    assert "PUT" in answer.headers["allow"]


def test_head_has_the_headers_of_get_and_no_body(api: Api) -> None:
    head, get = (api.ask(method, "/api/whoami") for method in ("HEAD", "GET"))
    assert head.headers["content-length"] == get.headers["content-length"]
    assert head.body == b""


def test_a_path_that_is_not_utf8_is_refused(api: Api) -> None:
    answer = api.ask("GET", "/api/queues/%FF")
    assert answer.status == 400
    assert "%FF" in answer.json["reason"]


def test_bad_json_is_refused_with_its_place(api: Api) -> None:
    answer = api.ask("PUT", "/api/queues/%2F/q", b'{"durable": tru}')
    assert answer.status == 400
    assert answer.json["error"] == "bad_request"
    assert "byte 16" in answer.json["reason"]
    answer = api.ask("PUT", "/api/queues/%2F/q", b"[]")
    assert answer.json["reason"] == "not_json: the body is not a JSON object"
    answer = api.ask("PUT", "/api/queues/%2F/q", {"durable": "perhaps"})
    assert answer.status == 400
    assert "$.durable" in answer.json["reason"]


def test_a_body_above_the_limit_is_refused(api: Api) -> None:
    answer = api.ask("PUT", "/api/queues/%2F/q", b" " * 1001)
    assert answer.status == 413
    assert "management_body_max_bytes" in answer.json["reason"]


def test_a_long_answer_is_compressed_when_asked(api: Api) -> None:
    plain = api.ask("GET", "/api/exchanges")
    packed = api.ask("GET", "/api/exchanges", headers={"accept-encoding": "gzip"})
    assert packed.headers["content-encoding"] == "gzip"
    assert gzip.decompress(packed.body) == plain.body
    assert packed.headers["vary"] == "accept-encoding, origin"


def test_other_origins_may_not_use_it_unless_they_are_configured(api: Api) -> None:
    answer = api.ask("GET", "/api/whoami", headers={"origin": "https://example.com"})
    assert "access-control-allow-origin" not in answer.headers


def test_a_busy_port_ends_the_start_with_the_name_of_the_key(api: Api, tmp_path: Path) -> None:
    flags = ("--port", "0", "--data-dir", str(tmp_path), "--management-port", str(api.port))
    done = subprocess.run(
        [command(), "serve", *flags],
        capture_output=True,
        text=True,
        env=environment(),
        timeout=120,
        check=False,
    )
    assert done.returncode == 1
    assert f"management_port: 127.0.0.1:{api.port} is in use already" in done.stderr


def test_paths_may_have_a_prefix_and_origins_may_be_allowed() -> None:
    origin = "https://example.com"
    flags = ("--management-path-prefix", "/rabbit", "--management-cors-allow-origins", origin)
    with running_api(*flags, "--management-hsts-policy", "max-age=1") as found:
        assert found.ask("GET", "/api/whoami").status == 404
        answer = found.ask("GET", "/rabbit/api/whoami", headers={"origin": origin})
        assert answer.status == 200
        assert answer.headers["access-control-allow-origin"] == origin
        assert answer.headers["strict-transport-security"] == "max-age=1"
