"""Signing in to the web interface at an issuer: OpenID Connect, with a certified provider."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Route, expect

from tests.browser.browsing import Window, window
from tests.ports import free_port
from tests.running import running_broker
from tests.unit.management.http.asking import Api

ISSUER = Path(__file__).parent / "node" / "issuer.mjs"
SCOPES = (
    "openid rabbitmq.tag:administrator rabbitmq.read:*/* rabbitmq.write:*/* rabbitmq.configure:*/*"
)


@contextmanager
def issuer(base: str, seconds: int = 3600) -> Iterator[str]:
    """An issuer whose tokens live for some seconds, for the length of a block."""
    command = ["node", str(ISSUER), base, str(seconds)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.kill()


@contextmanager
def signing_in(
    browser: Browser, folder: Path, *, seconds: int = 3600, prefix: str = "", **settings: Any
) -> Iterator[tuple[Window, Api, str]]:
    """A window on a broker where people sign in at an issuer, its HTTP API and the issuer."""
    port = free_port()
    base = f"http://127.0.0.1:{port}{prefix}/"
    with issuer(base, seconds) as address:
        keys = {
            "auth_backends": ["oauth2", "internal"],
            "auth_oauth2_resource_server_id": "rabbitmq",
            "auth_oauth2_issuer": address,
            "management_path_prefix": prefix,
            "management_oauth_enabled": True,
            "management_oauth_client_id": "harebell",
            "management_oauth_scopes": SCOPES,
            **settings,
        }
        file = folder / "harebell.toml"
        file.write_text("".join(f"{key} = {json.dumps(value)}\n" for key, value in keys.items()))
        flags = ("--config", str(file), "--management-port", str(port))
        with running_broker(*flags), window(browser, base) as opened:
            keep_inside(opened.page.context)
            yield opened, Api(port), address
            assert opened.complaints == []


def keep_inside(context: BrowserContext) -> None:
    """Reach no server but those of this machine: the issuer's pages ask for fonts elsewhere."""
    context.route(lambda url: "127.0.0.1" not in url, lambda route: route.abort())


def sign_in_at(page: Page, address: str, user: str = "ada") -> None:
    """Fill in the issuer's own forms."""
    page.wait_for_url(f"{address}/**")
    page.locator("input[name=login]").fill(user)
    page.locator("input[name=password]").fill("any")
    page.locator("button[type=submit]").click()
    page.locator("button[type=submit]", has_text="Continue").click()


def token_of(page: Page) -> str:
    """The token that a tab sends."""
    login = json.loads(page.evaluate("sessionStorage.getItem('harebell.login')"))
    return str(login["authorization"])


def test_one_signs_in_with_an_account_and_out_again(browser: Browser, tmp_path: Path) -> None:
    with signing_in(browser, tmp_path) as (shown, api, address):
        page = shown.page
        page.goto(f"{shown.base}#/exchanges")
        assert page.get_by_label("Password").count() == 0, "no password can be accepted"
        assert shown.barriers() == []
        page.get_by_role("button", name="Sign in with your account").click()
        sign_in_at(page, address)
        expect(page.locator("h1")).to_have_text("Exchanges")
        expect(page.locator(".user")).to_have_text("ada")
        assert page.url == f"{shown.base}#/exchanges", "the page from before, without the code"

        shown.account().get_by_role("button", name="Log out").click()
        page.wait_for_url(f"{address}/**")
        page.get_by_role("button", name="Yes, sign me out").click()
        expect(page.get_by_role("button", name="Sign in with your account")).to_be_visible()
        assert page.evaluate("sessionStorage.getItem('harebell.login')") is None
        assert api.ask("GET", "/api/whoami").status == 401, "passwords are off"


def test_a_token_is_renewed_before_it_ends(browser: Browser, tmp_path: Path) -> None:
    with signing_in(browser, tmp_path, seconds=8) as (shown, _, address):
        page = shown.page
        page.goto(shown.base)
        page.get_by_role("button", name="Sign in with your account").click()
        sign_in_at(page, address)
        expect(page.get_by_role("navigation", name="Pages")).to_be_attached()
        first = token_of(page)
        page.wait_for_function(
            "first => JSON.parse(sessionStorage.getItem('harebell.login')).authorization !== first",
            arg=first,
        )
        expect(page.locator(".user")).to_have_text("ada")


def test_a_tab_whose_login_has_ended_goes_on_after_a_sign_in_in_another_tab(
    browser: Browser, tmp_path: Path
) -> None:
    with signing_in(browser, tmp_path, prefix="/mq") as (shown, _, address):
        page = shown.page
        page.goto(shown.base)
        page.get_by_role("button", name="Sign in with your account").click()
        sign_in_at(page, address)
        expect(page.locator(".user")).to_have_text("ada")
        shown.show("queues", "Queues")
        form = page.get_by_role("form", name="New queue")
        shown.unfold()
        form.get_by_label("Name").fill("half typed")
        page.route("**/api/**", _refuse)
        dialog = page.get_by_role("dialog", name="Log in again")
        expect(dialog).to_be_visible()
        page.unroute("**/api/**", _refuse)
        with page.context.expect_page() as opened:
            dialog.get_by_role("button", name="Sign in with your account").click()
        # The issuer still knows who this is, and asks nothing.
        expect(opened.value.locator(".user")).to_have_text("ada")
        expect(dialog).to_be_hidden()
        expect(form.get_by_label("Name")).to_have_value("half typed")


def _refuse(route: Route) -> None:
    """Answer as a broker does when a token has ended."""
    body = {"error": "not_authorized", "reason": "Login failed"}
    route.fulfill(status=401, content_type="application/json", body=json.dumps(body))


@pytest.mark.parametrize(
    ("back", "said"),
    [
        ("?code=stolen&state=guessed", "This tab has not asked the issuer to sign in"),
        ("?error=access_denied&state=guessed", "This tab has not asked the issuer to sign in"),
        ("", "This tab has not asked the issuer to sign in"),
    ],
)
def test_a_code_that_this_tab_has_not_asked_for_signs_nobody_in(
    browser: Browser, tmp_path: Path, back: str, said: str
) -> None:
    with signing_in(browser, tmp_path, management_oauth_disable_basic_auth=False) as made:
        shown = made[0]
        shown.page.goto(f"{shown.base}js/oidc-oauth/login-callback.html{back}")
        expect(shown.page.get_by_role("alert")).to_contain_text(said)
        assert "stolen" not in shown.page.url
        shown.log_in()
        expect(shown.page.get_by_role("navigation", name="Pages")).to_be_attached()


def test_an_issuer_that_is_away_is_named(browser: Browser, tmp_path: Path) -> None:
    away = f"http://127.0.0.1:{free_port()}"
    with signing_in(browser, tmp_path, management_oauth_provider_url=away) as (shown, _, _):
        shown.page.goto(shown.base)
        shown.page.get_by_role("button", name="Sign in with your account").click()
        expect(shown.page.get_by_role("alert")).to_contain_text(
            f"{away} gives no metadata to a page"
        )
        shown.complaints.clear()
