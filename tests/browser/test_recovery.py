"""A broker that goes and comes back, and a login that is no longer accepted."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.browsing import Window, window
from tests.browser.traffic import Site, serving
from tests.ports import free_port
from tests.running import running_broker
from tests.unit.management.backends.authorization_server import AuthorizationServer
from tests.unit.management.backends.test_web_service import broker_with

PATIENCE_MS = 60_000


@pytest.fixture
def alone() -> Iterator[Site]:
    """A broker whose users a test may change."""
    with serving() as site:
        yield site


def _typed(page: Page) -> None:
    page.get_by_text("New queue").click()
    page.get_by_role("form", name="New queue").get_by_label("Name").fill("half typed")


def test_a_page_survives_a_restart_of_the_broker(browser: Browser) -> None:
    with tempfile.TemporaryDirectory() as directory:
        port = free_port()
        flags = ("--management-port", str(port), "--data-dir", directory)
        with _opened(browser, port, flags) as opened:
            page = opened.page
            away = page.get_by_text("The broker does not answer. This page")
            expect(away).to_be_visible(timeout=PATIENCE_MS)
            expect(page.locator("h1")).to_have_text("Queues")
            form = page.get_by_role("form", name="New queue")
            form.get_by_role("button", name="Declare").click()
            expect(form.get_by_role("alert")).to_have_text("The broker does not answer.")
            with running_broker(*flags):
                expect(away).to_be_hidden(timeout=PATIENCE_MS)
                expect(form.get_by_label("Name")).to_have_value("half typed")
                form.get_by_role("button", name="Declare").click()
                expect(form.get_by_role("status")).to_have_text("Queue 'half typed' is there.")


def test_a_broker_that_is_slow_to_answer_is_said_to_be_until_it_has(
    browser: Browser, alone: Site
) -> None:
    with window(browser, alone.base) as opened:
        opened.enter()
        page = opened.page
        opened.show("queues", "Queues")
        _typed(page)
        form = page.get_by_role("form", name="New queue")
        slow = page.get_by_text("The broker is slow to answer. This page")
        os.kill(alone.broker.pid, signal.SIGSTOP)
        try:
            form.get_by_role("button", name="Declare").click()
            expect(slow).to_be_visible(timeout=PATIENCE_MS)
            assert opened.barriers() == []
            expect(form.get_by_role("button", name="Sending…")).to_be_disabled()
            expect(form.get_by_label("Name")).to_have_value("half typed")
        finally:
            os.kill(alone.broker.pid, signal.SIGCONT)
        expect(form.get_by_role("status")).to_have_text("Queue 'half typed' is there.")
        expect(slow).to_be_hidden(timeout=PATIENCE_MS)
        assert opened.complaints == []


@pytest.mark.parametrize(
    ("status", "kind", "body", "said"),
    [
        (500, "application/json", '{"error": "internal", "reason": "no room"}', "no room"),
        (502, "text/html", "<script>alert(1)</script>", "502 Bad Gateway"),
        (200, "application/json", '{"items": [', "The answer of the broker is not JSON."),
    ],
)
def test_an_answer_that_is_an_error_is_shown_in_place_until_there_is_a_better_one(
    browser: Browser, alone: Site, status: int, kind: str, body: str, said: str
) -> None:
    with window(browser, alone.base) as opened:
        opened.enter()
        page = opened.page
        # As a proxy in front of the broker answers.
        page.route(
            "**/api/queues*", lambda it: it.fulfill(status=status, content_type=kind, body=body)
        )
        opened.show("queues", "Queues")
        _typed(page)
        problem = page.locator(".table-box").get_by_role("alert")
        expect(problem).to_contain_text(said)
        page.unroute("**/api/queues*")
        expect(problem).to_be_hidden(timeout=PATIENCE_MS)
        expect(page.get_by_text("0 queues")).to_be_visible()
        form = page.get_by_role("form", name="New queue")
        expect(form.get_by_label("Name")).to_have_value("half typed")
        assert opened.complaints == []
        assert opened.dialogs == []


def test_a_login_waits_for_a_broker_that_is_away(browser: Browser) -> None:
    with tempfile.TemporaryDirectory() as directory:
        port = free_port()
        flags = ("--management-port", str(port), "--data-dir", directory)
        with window(browser, f"http://127.0.0.1:{port}/") as opened:
            with running_broker(*flags):
                opened.page.goto(opened.base)
                expect(opened.page.get_by_role("form", name="Login")).to_be_visible()
            opened.log_in()
            form = opened.page.get_by_role("form", name="Login")
            expect(form.get_by_role("alert")).to_have_text("The broker does not answer.")
            expect(form.get_by_label("User")).to_have_value("guest")
            with running_broker(*flags):
                form.get_by_role("button", name="Log in").click()
                expect(opened.page.locator("h1")).to_have_text("Overview")


@contextmanager
def _opened(browser: Browser, port: int, flags: tuple[str, ...]) -> Iterator[Window]:
    """A page with something typed, whose broker has ended since."""
    with window(browser, f"http://127.0.0.1:{port}/") as opened:
        with running_broker(*flags):
            opened.enter()
            opened.show("queues", "Queues")
            _typed(opened.page)
        yield opened


_GO_AT_ONCE = """
new MutationObserver((_, observer) => {
  if (!document.getElementById("pages")) return;
  observer.disconnect();
  location.hash = "#/queues";
  dispatchEvent(new HashChangeEvent("hashchange"));
}).observe(document, {childList: true, subtree: true});
"""
"""Go on as soon as the navigation is drawn, before the page is painted and its effects run."""


def test_a_page_that_is_asked_for_while_another_is_drawn_is_shown(
    browser: Browser, alone: Site
) -> None:
    with window(browser, alone.base) as opened:
        opened.page.add_init_script(_GO_AT_ONCE)
        opened.enter()
        expect(opened.page.locator("h1")).to_have_text("Queues")
        assert opened.complaints == []


def test_a_choice_stays_when_the_names_that_it_has_change(browser: Browser, alone: Site) -> None:
    alone.api.done("PUT", "/api/vhosts/first", {})
    with window(browser, alone.base) as opened:
        opened.enter()
        page = opened.page
        opened.show("queues", "Queues")
        _typed(page)
        choice = page.get_by_role("form", name="New queue").get_by_label("Vhost")
        choice.select_option("first")
        alone.api.done("PUT", "/api/vhosts/second", {})
        expect(choice.get_by_role("option", name="second")).to_be_attached(timeout=60_000)
        expect(choice).to_have_value("first")


def test_a_login_that_is_refused_later_is_asked_for_over_the_page(
    browser: Browser, alone: Site
) -> None:
    with window(browser, alone.base) as opened:
        opened.enter()
        page = opened.page
        opened.show("queues", "Queues")
        _typed(page)
        changed = {"password": "another", "tags": "administrator"}
        alone.api.done("PUT", "/api/users/guest", changed)
        form = page.get_by_role("form", name="New queue")
        form.get_by_role("button", name="Declare").click()
        dialog = page.get_by_role("dialog", name="Log in again")
        expect(dialog).to_be_visible(timeout=PATIENCE_MS)
        assert opened.barriers() == []
        opened.log_in(password="guest")
        expect(dialog.get_by_role("alert")).to_have_text("The user or the password is wrong.")
        opened.log_in(password="another")
        expect(dialog).to_be_hidden()
        expect(form.get_by_label("Name")).to_have_value("half typed")
        expect(form.get_by_role("status")).to_have_text("Queue 'half typed' is there.")
        assert opened.complaints == []


def _enter_with(page: Page | Locator, token: str) -> None:
    """Log in with a token; its form may have to be unfolded first."""
    form = page.get_by_role("form", name="Login by token")
    if not form.is_visible():
        page.get_by_text("With an OAuth 2 token").click()
    form.get_by_label("Token").fill(token)
    form.get_by_role("button", name="Log in with the token").click()


def test_a_token_that_expires_is_asked_for_over_the_page(browser: Browser, tmp_path: Path) -> None:
    with closing(AuthorizationServer()) as server:
        lines = (
            "auth_backends.1 = oauth2",
            "auth_oauth2.resource_server_id = rabbitmq",
            f"auth_oauth2.issuer = {server.issuer}",
        )
        scope = "rabbitmq.tag:administrator rabbitmq.configure:*/* rabbitmq.read:*/*"
        with (
            broker_with(tmp_path, *lines) as (_, api),
            window(browser, f"http://127.0.0.1:{api.port}/") as opened,
        ):
            page = opened.page
            page.goto(opened.base)
            _enter_with(page, server.token(scope, seconds=-60))
            refused = page.get_by_role("alert")
            expect(refused).to_have_text("The token is not accepted: it may have expired.")
            _enter_with(page, server.token(scope))
            opened.show("queues", "Queues")
            _typed(page)
            # As after the time of the token, which no test knows on a machine that is busy.
            expired = {"authorization": f"Bearer {server.token(scope, seconds=-60)}"}
            page.route(
                "**/api/**", lambda it: it.continue_(headers={**it.request.headers, **expired})
            )
            dialog = page.get_by_role("dialog", name="Log in again")
            expect(dialog).to_be_visible(timeout=PATIENCE_MS)
            page.unroute("**/api/**")
            _enter_with(dialog, server.token(scope))
            expect(dialog).to_be_hidden()
            form = page.get_by_role("form", name="New queue")
            expect(form.get_by_label("Name")).to_have_value("half typed")


def test_a_user_sees_what_the_tags_allow_and_is_told_the_rest(
    browser: Browser, alone: Site
) -> None:
    alone.api.user("clerk", "management", vhost="/", pattern="^mine")
    with window(browser, alone.base) as opened:
        opened.page.goto(alone.base)
        opened.log_in("clerk", "p")
        opened.show("queues", "Queues")
        _typed(opened.page)
        form = opened.page.get_by_role("form", name="New queue")
        form.get_by_role("button", name="Declare").click()
        expect(form.get_by_role("alert")).to_contain_text("half typed")
        expect(opened.page.get_by_role("dialog")).to_be_hidden()
        expect(opened.page.get_by_role("button", name="Account")).to_be_visible()


def test_a_user_who_logs_out_leaves_nothing_behind(browser: Browser, alone: Site) -> None:
    with window(browser, alone.base) as opened:
        opened.enter()
        opened.account().get_by_role("button", name="Log out").click()
        expect(opened.page.get_by_role("form", name="Login")).to_be_visible()
        assert opened.page.evaluate("sessionStorage.length + document.cookie.length") == 0
