"""A page of another origin cannot make a browser change anything with its stored login."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.unit.management.http.asking import Api, running_api

FORMS = ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=b", "")
FRIEND = "https://friend.example"
PATH = "/api/exchanges/%2F/amq.default/publish"
BODY = b'{"properties":{},"routing_key":"no","payload":"a","payload_encoding":"string"}'


@pytest.fixture(scope="module")
def api() -> Iterator[Api]:
    with running_api("--management-cors-allow-origins", FRIEND) as found:
        yield found


def status(api: Api, **fields: str) -> int:
    """The status of a publish with these header fields, whose names have "_" for "-"."""
    headers = {name.replace("_", "-"): value for name, value in fields.items() if value}
    return api.ask("POST", PATH, BODY, headers=headers).status


@pytest.mark.parametrize("kind", FORMS)
@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://[", ""])
def test_a_form_of_another_site_is_refused(api: Api, kind: str, origin: str) -> None:
    assert status(api, content_type=kind, origin=origin, sec_fetch_site="cross-site") == 403
    if origin:
        assert status(api, content_type=kind, origin=origin) == 403


@pytest.mark.parametrize("kind", FORMS)
def test_pages_of_the_broker_and_of_allowed_origins_and_tools_are_served(
    api: Api, kind: str
) -> None:
    own = f"http://127.0.0.1:{api.port}"
    assert status(api, content_type=kind) == 200
    assert status(api, content_type=kind, origin=own) == 200
    assert status(api, content_type=kind, origin=own, sec_fetch_site="same-origin") == 200
    assert status(api, content_type=kind, origin=FRIEND, sec_fetch_site="cross-site") == 200


def test_a_proxy_may_change_the_host_for_what_no_form_can_send(api: Api) -> None:
    fields = {"origin": "https://public.example", "content_type": "application/json"}
    assert status(api, **fields, sec_fetch_site="same-origin") == 200
    assert status(api, **fields) == 200


def test_a_refusal_names_the_key_and_reads_are_left_to_the_browser(api: Api) -> None:
    headers = {"origin": "https://evil.example", "sec-fetch-site": "cross-site"}
    answer = api.ask("DELETE", "/api/queues/%2F/any", headers=headers)
    assert answer.status == 403
    assert "management_cors_allow_origins" in answer.json["reason"]
    assert api.ask("GET", "/api/whoami", headers=headers).status == 200
