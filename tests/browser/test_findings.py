"""The overview begins with a sentence: healthy, or how many things need somebody, and which."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pika
import pytest
from playwright.sync_api import Browser, ViewportSize, expect

from harebell.cli.demo.bad_day import PLANTED, BadDay, flags
from tests.browser.browsing import window
from tests.browser.payloads import PAYLOADS
from tests.browser.traffic import Site, serving
from tests.patience import eventually
from tests.ports import free_port
from tests.unit.management.http.asking import segment

SIZES: list[ViewportSize] = [{"width": 390, "height": 800}, {"width": 1440, "height": 900}]
PURGE = re.compile(r"harebell queues purge --generation=[0-9a-f]{32} orders")
FLAGS = ("--health-interval", "500", "--health-no-consumer-seconds", "1")


@pytest.fixture(scope="module")
def ill() -> Iterator[Site]:
    """A broker with queues of hostile names that have messages and no consumer."""
    with serving(*FLAGS) as site:
        site.api.done("PUT", "/api/vhosts/other", {})
        site.api.user("ada", "management", vhost="other")
        with pika.BlockingConnection(pika.ConnectionParameters(port=site.broker.port)) as link:
            channel = link.channel()
            for name in ("orders", *PAYLOADS[:12]):
                channel.queue_declare(name)
                channel.basic_publish("", name, b"body")
        wanted = len(PAYLOADS[:12]) + 1
        assert eventually(lambda: len(site.api.get("/api/health/findings")) == wanted)
        yield site


def test_a_new_broker_is_healthy(browser: Browser) -> None:
    with serving() as site, window(browser, site.base) as opened:
        opened.enter()
        expect(opened.page.get_by_role("heading", name="Healthy")).to_be_visible()
        assert opened.complaints == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES, ids=lambda size: str(size["width"]))
def test_the_overview_says_what_needs_somebody_and_leads_there_by_keyboard(
    browser: Browser, ill: Site, size: ViewportSize, scheme: str
) -> None:
    with window(browser, ill.base, color_scheme=scheme) as opened:
        opened.enter()
        page = opened.page
        page.set_viewport_size(size)
        expect(page.get_by_role("heading", name="13 things need you")).to_be_visible()
        # Nothing but the title of the page is above it.
        assert page.locator("main h2").first.text_content() == "13 things need you"
        item = page.locator(".health li").filter(has_text="queue orders")
        expect(item).to_contain_text("no consumer for")
        expect(item).to_contain_text("in vhost / began")
        expect(item).to_contain_text(PURGE)
        assert opened.barriers() == []
        assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
        item.get_by_role("link", name="Look at the queue").focus()
        page.keyboard.press("Enter")
        expect(page.locator("h1")).to_have_text("orders")
        assert opened.complaints == []


def test_names_in_findings_are_text(browser: Browser, ill: Site) -> None:
    with window(browser, ill.base) as opened:
        opened.enter()
        for payload in PAYLOADS[:12]:
            expect(
                opened.page.locator(".health").get_by_text(f"queue {payload}", exact=True)
            ).to_be_attached()
        assert opened.page.evaluate("window.executed") is None
        assert opened.page.locator("main script, main img, main iframe").count() == 0
        assert opened.complaints == []
        assert opened.dialogs == []


def test_findings_about_what_a_user_may_not_see_are_not_shown(browser: Browser, ill: Site) -> None:
    with window(browser, ill.base) as opened:
        opened.page.goto(ill.base)
        opened.log_in("ada", "p")
        expect(opened.page.get_by_role("heading", name="Healthy")).to_be_visible()


def test_the_button_of_a_finding_purges_the_queue_after_a_question_by_keyboard(
    browser: Browser, ill: Site
) -> None:
    with pika.BlockingConnection(pika.ConnectionParameters(port=ill.broker.port)) as link:
        channel = link.channel()
        channel.queue_declare("old")
        channel.basic_publish("", "old", b"body")
        with window(browser, ill.base) as opened:
            opened.enter()
            item = opened.page.locator(".health li").filter(has_text="queue old")
            moment = item.locator("time")
            expect(moment).to_have_attribute("title", re.compile(r"\d\d/\d\d/\d{4}, "))
            item.get_by_role("button", name="Purge").focus()
            opened.page.keyboard.press("Enter")
            asked = opened.page.get_by_role("dialog", name="Purge queue 'old'?")
            expect(asked).to_be_visible()
            assert opened.barriers() == []
            opened.page.keyboard.press("Enter")
            expect(item.get_by_role("status")).to_contain_text("The queue was purged.")
            assert channel.queue_declare("old", passive=True).method.message_count == 0
            expect(item).to_have_count(0)
            assert opened.complaints == []
        channel.queue_delete("old")


def test_who_may_not_purge_has_no_button_for_it(browser: Browser, ill: Site) -> None:
    ill.api.done("PUT", "/api/users/eve", {"password": "p", "tags": "management"})
    rights = {"configure": "", "write": "", "read": ""}
    ill.api.done("PUT", "/api/permissions/%2F/eve", rights)
    with window(browser, ill.base) as opened:
        opened.page.goto(ill.base)
        opened.log_in("eve", "p")
        item = opened.page.locator(".health li").filter(has_text="queue orders")
        expect(item).to_contain_text(PURGE)
        expect(opened.page.locator(".health button")).to_have_count(0)


@pytest.fixture(scope="module")
def held() -> Iterator[Site]:
    """A broker with a consumer that hangs, a query that has failed, and dead letters."""
    flags = ("--health-held-seconds", "1", "--health-dead-letters-per-minute", "1")
    with serving("--health-interval", "500", *flags) as site:
        yield site


@pytest.mark.parametrize("name", ["tasks", PAYLOADS[0]], ids=["plain", "hostile"])
def test_the_button_of_a_finding_closes_the_connection_that_holds_the_messages(
    browser: Browser, held: Site, name: str
) -> None:
    with pika.BlockingConnection(pika.ConnectionParameters(port=held.broker.port)) as link:
        channel = link.channel()
        channel.queue_declare(name)
        channel.basic_qos(prefetch_count=1)
        channel.basic_consume(name, lambda *_: None)
        for _ in range(2):
            channel.basic_publish("", name, b"body")
        with window(browser, held.base) as opened:
            opened.enter()
            page = opened.page
            item = page.locator(".health li").filter(has_text=f"queue {name}")
            item.get_by_role("button", name="Close a connection").click()
            asked = page.get_by_role("dialog", name=f"Consumers of queue '{name}'")
            choice = asked.get_by_label("Connection, and messages that it holds")
            expect(choice).to_have_value(re.compile(r"^127\.0\.0\.1:"))
            expect(choice).to_contain_text("of user 'guest': 1")
            assert opened.barriers() == []
            asked.get_by_role("button", name="Close a connection").click()
            expect(item.get_by_role("status")).to_contain_text("The connection was closed.")
            assert opened.complaints == []
            assert opened.dialogs == []
        with pytest.raises(pika.exceptions.ConnectionClosedByBroker):
            channel.start_consuming()
    held.api.done("DELETE", f"/api/queues/%2F/{segment(name)}")


def test_a_finding_about_dead_letters_leads_to_those_of_its_queue(
    browser: Browser, held: Site
) -> None:
    with pika.BlockingConnection(pika.ConnectionParameters(port=held.broker.port)) as link:
        channel = link.channel()
        channel.queue_declare("graves")
        dead = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "graves"}
        for name in ("first", "second"):
            channel.queue_declare(name, arguments={**dead, "x-max-length": 1})
            for _ in range(9):
                channel.basic_publish("", name, b"body")
    with window(browser, held.base) as opened:
        opened.enter()
        item = opened.page.locator(".health li").filter(has_text="queue second")
        item.get_by_role("link", name="Look at the dead letters").click()
        expect(opened.page.get_by_role("heading", name="Dead letters of 'second'")).to_be_visible()


def test_a_finding_goes_when_its_trouble_has_gone(browser: Browser, ill: Site) -> None:
    with window(browser, ill.base) as opened:
        opened.enter()
        expect(opened.page.get_by_role("heading", name="13 things need you")).to_be_visible()
        for name in ("orders", *PAYLOADS[:12]):
            ill.api.done("DELETE", f"/api/queues/%2F/{segment(name)}")
        expect(opened.page.get_by_role("heading", name="Healthy")).to_be_visible()


def test_the_page_names_each_problem_of_a_bad_day_and_nothing_else(
    browser: Browser, tmp_path: Path
) -> None:
    with (
        serving(*flags(tmp_path, free_port())) as site,
        BadDay(site.broker.url) as clients,
        window(browser, site.base) as opened,
    ):
        opened.enter()
        page = opened.page
        expect(page.get_by_role("heading", name=f"{len(PLANTED)} things need you")).to_be_visible()
        found = page.locator(".health li")
        rules = found.locator(".badge").all_inner_texts()
        names = [Path(text.split()[-1]).name for text in found.locator("strong").all_inner_texts()]
        assert set(zip(rules, names, strict=True)) == set(PLANTED)
        assert opened.barriers() == []
        assert clients.failures == []
