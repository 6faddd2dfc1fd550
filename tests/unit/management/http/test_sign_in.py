"""Where the web interface signs in, as it is told; a browser does it in `tests/browser`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from tests.unit.management.http.asking import Api, running_api

SIGN_IN = {
    "management_oauth_enabled": True,
    "management_oauth_client_id": "harebell",
    "auth_oauth2_issuer": "https://id.example.com/realms/shop/",
}


@contextmanager
def api_with(folder: Path, **keys: Any) -> Iterator[Api]:
    """The HTTP API of a broker with these keys."""
    lines = []
    for key, value in keys.items():
        members = (
            "".join(f"{name} = {json.dumps(each)}, " for name, each in value.items())
            if (isinstance(value, dict))
            else ""
        )
        lines.append(f"{key} = {{ {members[:-2]} }}" if members else f"{key} = {json.dumps(value)}")
    file = folder / "harebell.toml"
    file.write_text("\n".join(lines) + "\n")
    with running_api("--config", str(file)) as api:
        yield api


def test_without_the_keys_nobody_signs_in_elsewhere(api: Api) -> None:
    assert api.ask("GET", "/api/auth", user=None).json == {"oauth_enabled": False}
    policy = api.ask("GET", "/", user=None).headers["content-security-policy"]
    assert "connect-src 'self';" in policy


def test_pages_are_told_where_to_sign_in_and_may_ask_there(tmp_path: Path) -> None:
    parameters = {"audience": 'the "broker"'}
    extra = {
        "auth_oauth2_token_endpoint": "https://tokens.example.com:8443/token",
        "auth_oauth2_authorization_endpoint_params": parameters,
    }
    with api_with(tmp_path, **SIGN_IN, **extra) as api:
        told = api.ask("GET", "/api/auth", user=None).json
        page = api.ask("GET", "/", user=None)
    assert told["oauth_enabled"] is True
    assert told["oauth_client_id"] == "harebell"
    assert told["oauth_scopes"] == "openid profile"
    metadata = "https://id.example.com/realms/shop/.well-known/openid-configuration"
    assert told["oauth_metadata_url"] == metadata
    assert told["oauth_authorization_endpoint_params"] == parameters
    (written,) = re.findall(rb'<meta name="sign-in" content="([^"]*)">', page.body)
    assert json.loads(unescape(written.decode())) == told
    policy = page.headers["content-security-policy"]
    assert "connect-src 'self' https://id.example.com https://tokens.example.com:8443;" in policy


@pytest.mark.parametrize(
    "address",
    ["https://a;script-src *@id.example.com/", "https://id.example.com';/x", "https://[::1]/x"],
)
def test_an_issuer_cannot_write_into_the_content_policy(tmp_path: Path, address: str) -> None:
    keys = SIGN_IN | {"management_oauth_provider_url": address.replace(" ", "%20")}
    with api_with(tmp_path, **keys) as api:
        policy = api.ask("GET", "/", user=None).headers["content-security-policy"]
    (reached,) = re.findall(r"connect-src ([^;]*);", policy)
    assert reached in ("'self' https://id.example.com", "'self' https://[::1]", "'self'")
    assert policy.count("script-src") == 1


def test_the_issuer_sends_browsers_back_to_the_page(api: Api) -> None:
    back = api.ask("GET", "/js/oidc-oauth/login-callback.html?code=1&state=a%0D%0A", user=None)
    assert back.status == 302
    assert back.headers["location"] == "../../#/login-callback?code=1&state=a%0D%0A"
    out = api.ask("GET", "/js/oidc-oauth/logout-callback.html", user=None)
    assert (out.status, out.headers["location"]) == (302, "../../#/overview?")
    assert api.ask("GET", "/js/oidc-oauth/other.html", user=None).status == 404
