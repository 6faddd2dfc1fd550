"""What the web interface shows is what is there, or it says what it leaves out."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from harebell.client import blocking
from tests.browser.browsing import Window, window
from tests.patience import eventually
from tests.ports import free_port
from tests.running import RunningBroker, asked, running_broker

ODD = b'{"id":12345678901234567890,"price":1.0,"small":1e-7,"empty":{},"text":"a, \\"b\\": [c]"}'


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[RunningBroker, str]]:
    port = free_port()
    with running_broker("--management-port", str(port)) as broker:
        yield broker, f"http://127.0.0.1:{port}"


def _entered(opened: Window) -> Window:
    opened.enter()
    return opened


def test_bodies_are_shown_digit_by_digit_and_a_cut_one_says_so(
    browser: Browser, served: tuple[RunningBroker, str]
) -> None:
    broker, base = served
    long = b"0123456789" * 20_000
    with blocking.connect(broker.address()) as connection:
        channel = connection.channel()
        channel.declare_queue("bodies")
        for body in (ODD, long):
            channel.publish(body, routing_key="bodies", headers={"id": 1234567890123456789})
    with window(browser, base) as opened:
        _entered(opened).show("queues/%2F/bodies", "bodies")
        # The last section: before, the page may have its heading alone.
        expect(opened.page.get_by_role("heading", name="Purge or delete")).to_be_visible()
        opened.unfold()
        for form in ("Browse", "Get"):
            box = opened.page.get_by_role("form", name=form, exact=True)
            box.get_by_label("At most").fill("2")
            box.get_by_role("button", name=form, exact=True).click()
            table = "Messages" if form == "Browse" else "Messages got"
            expect(opened.page.get_by_role("table", name=table, exact=True)).to_be_visible()
            opened.page.get_by_role("button", name="Open all").last.click()
            shown = opened.page.get_by_role("region", name="Body")
            expect(shown).to_have_count(2 if form == "Browse" else 4)
            first = shown.nth(0 if form == "Browse" else 2)
            expect(first).to_contain_text('"id": 12345678901234567890')
            expect(first).to_contain_text('"price": 1.0')
            assert re.sub(r"\s", "", first.inner_text()) == re.sub(r"\s", "", ODD.decode())
            last = shown.nth(1 if form == "Browse" else 3)
            article = opened.page.locator("article.message").nth(1 if form == "Browse" else 3)
            expect(article).to_contain_text("of 200,000")
            expect(article).to_contain_text("1234567890123456789")
            assert len(last.inner_text()) == 50_000
            article.get_by_role("button", name="Show all of it").click()
            expect(article.get_by_role("button", name="Show all of it")).to_have_count(0)
            expect(last).to_have_text(long.decode())
        assert opened.complaints == []


def test_the_log_stays_at_its_newest_line(
    browser: Browser, served: tuple[RunningBroker, str]
) -> None:
    broker, base = served
    with window(browser, base) as opened:
        _entered(opened)
        for number in range(120):
            # Long lines, which take several rows.
            with blocking.connect(broker.address()) as connection:
                connection.channel()
            if number % 60 == 0:
                asked(broker, "connections", "close", "no such " + "x" * 300)
        opened.show("log", "Log")
        view = opened.page.get_by_role("region", name="Log")
        expect(view.locator("li").nth(100)).to_be_attached()
        rest = "e => e.scrollHeight - e.scrollTop - e.clientHeight"
        assert eventually(lambda: view.evaluate(rest) < 2)
        with blocking.connect(broker.address()) as connection:
            connection.channel()
        opened.page.wait_for_timeout(2_500)
        assert eventually(lambda: view.evaluate(rest) < 2)
        view.evaluate("e => { e.scrollTop -= 400 }")
        opened.page.wait_for_timeout(1_500)
        assert view.evaluate(rest) > 300


def test_filter_and_order_survive_a_reload_and_the_way_back(
    browser: Browser, served: tuple[RunningBroker, str]
) -> None:
    broker, base = served
    with blocking.connect(broker.address()) as connection:
        channel = connection.channel()
        for name in ("kept.a", "kept.b", "other"):
            channel.declare_queue(name)
    with window(browser, base) as opened:
        _entered(opened).show("queues", "Queues")
        field = opened.page.get_by_label("Filter")
        field.fill("kept")
        rows = opened.page.get_by_role("row")
        expect(rows).to_have_count(3)
        opened.page.get_by_role("button", name="Ready").click()
        expect(opened.page).to_have_url(re.compile("filter=kept.*sort=.*reverse=true"))
        opened.page.reload()
        expect(opened.page.get_by_label("Filter")).to_have_value("kept")
        expect(rows).to_have_count(3)
        expect(opened.page.locator("[aria-sort=descending]")).to_contain_text("Ready")
        opened.page.get_by_role("link", name="kept.a").click()
        expect(opened.page.locator("h1")).to_have_text("kept.a")
        opened.page.go_back()
        expect(opened.page.get_by_label("Filter")).to_have_value("kept")
        expect(rows).to_have_count(3)
        opened.page.get_by_role("navigation").get_by_role("link", name="Queues").click()
        expect(opened.page.get_by_label("Filter")).to_have_value("")
        assert opened.complaints == []


def test_a_user_without_rights_reads_that_rights_are_missing(
    browser: Browser, served: tuple[RunningBroker, str]
) -> None:
    broker, base = served
    assert asked(broker, "users", "add", "ada", "secret").returncode == 0
    with window(browser, base) as opened:
        opened.page.goto(base)
        opened.log_in("ada", "secret")
        hint = opened.page.get_by_text("has no tag for management")
        expect(hint).to_contain_text("harebell users tags ada management")
        # What the sentence says is a command, and helps.
        assert asked(broker, "users", "tags", "ada", "management").returncode == 0
        opened.log_in("ada", "secret")
        opened.show("queues", "Queues")
        expect(opened.page.locator(".empty")).to_contain_text("You have no permissions")
        expect(opened.page.locator(".empty")).to_contain_text("harebell permissions set ada")
        assert opened.complaints == []


def test_the_topology_of_many_queues_says_what_it_shows(
    browser: Browser, served: tuple[RunningBroker, str]
) -> None:
    broker, base = served
    with blocking.connect(broker.address()) as connection:
        channel = connection.channel()
        for number in range(620):
            channel.declare_queue(f"many.{number:04}")
    with window(browser, base) as opened:
        _entered(opened).show("topology", "Topology")
        page = opened.page
        expect(page.locator(".hint").last).to_contain_text(re.compile(r"500 of \d+ queues"))
        expect(page.locator(".empty")).to_contain_text("filter by a name")
        expect(page.get_by_text("Nothing is bound")).to_have_count(0)
        with blocking.connect(broker.address()) as connection:
            channel = connection.channel()
            channel.bind_queue("many.0619", "amq.topic", "late.#")
        page.reload()
        expect(page.get_by_role("group", name="Topology")).to_contain_text("many.0619")
        page.get_by_label("Filter").fill("many.061")
        expect(page.get_by_role("group", name="Topology")).to_contain_text("many.0612")
        expect(page.locator(".hint").last).to_contain_text("with this name")
        assert opened.complaints == []
