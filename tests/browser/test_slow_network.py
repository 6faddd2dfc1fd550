"""A network that is slow, or loses answers: nothing is done twice, and what is awaited is seen."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Locator, Page, Route, expect

from harebell.client.blocking import connect
from tests.browser.browsing import Window, window
from tests.browser.traffic import Site, serving
from tests.patience import eventually

NAMES = ("slow.a", "slow.b", "slow.c")
BYTES_PER_SECOND = 400_000 // 8
LATENCY_MS = 2_000
PATIENCE_MS = 120_000
LOST = "The broker did not answer within 20 seconds."
_ENDLESS = """
window.limits = [];
AbortSignal.timeout = () => {
  const limit = new AbortController();
  limits.push(() => limit.abort(new DOMException("too late", "TimeoutError")));
  return limit.signal;
};
"""
"""The time that the page gives the broker ends when a test says so."""
_GIVE_UP = "limits.splice(0).forEach(end => end())"


@pytest.fixture(scope="module")
def stock() -> Iterator[Site]:
    with serving("--collect-statistics-interval", "1000") as site:
        yield site


@pytest.fixture
def slow(browser: Browser, stock: Site) -> Iterator[Window]:
    """A window, and a broker with messages and dead letters."""
    with connect(f"{stock.broker.address()}/%2F") as connection:
        channel = connection.channel()
        dead = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "slow.dead"}
        channel.declare_queue("slow.dead", durable=True)
        channel.declare_queue("slow.source", durable=True, arguments=dead | {"x-max-length": 0})
        for name in NAMES:
            channel.declare_queue(name, durable=True)
            channel.publish_many([b"1", b"2", b"3"], routing_key=name)
        channel.publish_many([b"dead"], routing_key="slow.source")
    with window(browser, stock.base) as opened:
        opened.page.add_init_script(_ENDLESS)
        opened.enter()
        yield opened
        assert opened.complaints == []
        assert opened.dialogs == []
    for name in (*NAMES, "slow.dead", "slow.source"):
        stock.api.ask("DELETE", f"/api/queues/%2F/{name}")


class Line:
    """The requests of a page to an address, which reach the broker when a test lets them."""

    def __init__(self, page: Page, url: str) -> None:
        self.page = page
        self.methods: list[str] = []
        self._waiting: list[Route] = []
        self._is_open = False
        page.route(url, self._take)

    def _take(self, route: Route) -> None:
        self.methods.append(route.request.method)
        if self._is_open:
            route.fallback()
        else:
            self._waiting.append(route)

    def held(self, number: int = 1) -> None:
        """Wait until there were that many requests."""
        assert eventually(lambda: self.page.wait_for_timeout(10) or len(self.methods) >= number)

    def let_go(self, place: int = 0) -> None:
        """Let one of those that wait reach the broker."""
        self._waiting.pop(place).fallback()

    def open(self) -> None:
        """Let all of them reach the broker, and hold no more."""
        self._is_open = True
        while self._waiting:
            self.let_go()


def _skeleton(page: Page) -> Locator:
    return page.locator("main .skeleton").first


def _audit(page: Page) -> Locator:
    return page.get_by_role("region", name="Acts")


def _groups(page: Page) -> Locator:
    return page.get_by_role("region", name="Dead letters", exact=True)


PAGES: list[tuple[str, str, str, Callable[[Page], Locator]]] = [
    ("queues", "Queues", "**/api/queues?*", lambda page: page.get_by_role("link", name="slow.a")),
    ("dead-letters/%2F", "Dead letters", "**/api/dead-letters/*", _groups),
    ("audit", "Audit", "**/api/audit?*", _audit),
    ("overview", "Overview", "**/api/overview?*", lambda page: page.locator("main .tiles").first),
]


@pytest.mark.parametrize(("path", "heading", "url", "contents"), PAGES, ids=[p[0] for p in PAGES])
def test_a_page_shows_that_it_waits_and_an_answer_that_is_lost_and_goes_on(
    slow: Window, path: str, heading: str, url: str, contents: Callable[[Page], Locator]
) -> None:
    page = slow.page
    slow.show("users", "Users")
    line = Line(page, url)
    page.evaluate("path => { location.hash = path }", f"#/{path}")
    line.held()
    expect(_skeleton(page)).to_be_visible()
    assert slow.barriers() == []
    page.evaluate(_GIVE_UP)
    expect(page.locator("main .problem").first).to_contain_text(LOST)
    assert slow.barriers() == []
    line.open()
    again = page.locator("main").get_by_role("button", name="Try again")
    if again.count():
        again.first.click()
    expect(contents(page)).to_be_visible()
    expect(page.locator("h1")).to_have_text(heading)


def test_findings_that_are_lost_are_said_to_be_lost_until_they_come(slow: Window) -> None:
    page = slow.page
    slow.show("users", "Users")
    line = Line(page, "**/api/health/findings*")
    slow.show("overview", "Overview")
    line.held()
    page.evaluate(_GIVE_UP)
    expect(page.locator("main .problem").first).to_contain_text(LOST)
    line.open()
    expect(page.locator("#health")).to_be_visible()
    expect(page.locator("main .problem")).to_have_count(0)


def test_older_acts_are_asked_for_once_and_those_of_another_search_are_not_added(
    slow: Window, stock: Site
) -> None:
    page = slow.page
    for _ in range(101):
        stock.api.done("PUT", "/api/queues/%2F/slow.a", {"durable": True})
    slow.show("audit", "Audit")
    rows = _audit(page).locator("> table > tbody > tr")
    expect(rows).to_have_count(100)
    line = Line(page, "**/api/audit?*before=*")
    older = page.get_by_role("button", name="Older acts")
    older.dblclick()
    line.held()
    expect(older).to_be_disabled()
    form = page.get_by_role("form", name="Search", exact=True)
    form.get_by_label("Act").fill("queues.declare")
    form.get_by_role("button", name="Search").click()
    expect(page.get_by_text(re.compile("^100 acts"))).to_be_visible()
    line.open()
    expect(rows).to_have_count(100)
    assert line.methods == ["GET"]


def test_an_answer_for_a_page_that_was_left_changes_nothing(slow: Window) -> None:
    page = slow.page
    lines = []
    for path, _, url, _ in PAGES[:2]:
        lines.append(Line(page, url))
        page.evaluate("path => { location.hash = path }", f"#/{path}")
        lines[-1].held()
    slow.show("users", "Users")
    for line in lines:
        line.open()
    expect(page.get_by_role("link", name="guest")).to_be_visible()
    expect(page.locator("h1")).to_have_text("Users")
    expect(page.locator("main .problem")).to_have_count(0)


def _chosen(slow: Window, button: str) -> Locator:
    slow.show("queues", "Queues")
    for name in NAMES:
        slow.page.get_by_role("checkbox", name=f"Choose {name}", exact=True).check()
    slow.page.get_by_role("button", name=f"{button}…").click()
    dialog = slow.page.get_by_role("dialog")
    dialog.get_by_label("to confirm").fill(str(len(NAMES)))
    return dialog


def test_a_double_click_does_a_bulk_action_once_and_says_how_far_it_is(slow: Window) -> None:
    dialog = _chosen(slow, "Delete")
    line = Line(slow.page, "**/api/queues/%2F/slow.*")
    dialog.get_by_role("button", name="Delete 3 queues").dblclick()
    line.held(3)
    expect(dialog.get_by_role("button", name="Delete 3 queues")).to_be_disabled()
    expect(dialog.get_by_role("button", name="Stop")).to_be_visible()
    line.open()
    expect(dialog.get_by_role("status")).to_have_text("3 queues done, 0 refused.")
    assert line.methods == ["DELETE"] * 3


def test_a_bulk_action_reports_each_answer_that_is_lost(slow: Window) -> None:
    dialog = _chosen(slow, "Purge")
    line = Line(slow.page, "**/api/queues/%2F/slow.*/contents")
    dialog.get_by_role("button", name="Purge 3 queues").click()
    line.held(3)
    slow.page.evaluate(_GIVE_UP)
    expect(dialog.get_by_role("status")).to_have_text("0 queues done, 3 refused.")
    expect(dialog.locator(".problem")).to_have_text([LOST] * 3)


def test_rows_that_are_chosen_all_at_once_are_awaited_and_said_to_be_lost(slow: Window) -> None:
    page = slow.page
    slow.show("exchanges", "Exchanges")
    every = page.get_by_role("checkbox", name="Choose all")
    expect(every).to_be_enabled()
    line = Line(page, "**/api/exchanges?*page_size=500*")
    every.check()
    line.held()
    expect(every).to_be_disabled()
    page.evaluate(_GIVE_UP)
    expect(page.locator("main .problem")).to_contain_text(LOST)
    expect(every).not_to_be_checked()
    line.open()
    every.check()
    expect(page.get_by_role("group", name="Chosen")).to_contain_text("exchanges chosen")
    expect(page.locator("main .problem")).to_have_count(0)


def test_a_bulk_action_begins_no_further_row_when_its_page_is_left(
    slow: Window, stock: Site
) -> None:
    extra = [f"more.{number}" for number in range(6)]
    for name in extra:
        stock.api.done("PUT", f"/api/queues/%2F/{name}", {})
    slow.show("queues?filter=more", "Queues")
    slow.page.get_by_role("checkbox", name="Choose all 6 queues").check()
    slow.page.get_by_role("button", name="Delete…").click()
    dialog = slow.page.get_by_role("dialog")
    dialog.get_by_label("to confirm").fill("6")
    line = Line(slow.page, "**/api/queues/%2F/more.*")
    dialog.get_by_role("button", name="Delete 6 queues").click()
    line.held(4)
    slow.show("users", "Users")
    line.open()

    def left() -> list[str]:
        found = stock.api.get("/api/queues/%2F?columns=name")
        return [each["name"] for each in found if each["name"] in extra]

    assert eventually(lambda: slow.page.wait_for_timeout(10) or len(left()) == 2)
    assert line.methods == ["DELETE"] * 4
    for name in left():
        stock.api.done("DELETE", f"/api/queues/%2F/{name}")


def test_the_search_says_that_it_waits_and_opens_nothing_of_an_earlier_text(slow: Window) -> None:
    page = slow.page
    page.keyboard.press("Control+k")
    dialog = page.get_by_role("dialog", name="Search")
    field = dialog.get_by_role("combobox")
    field.fill("slow.a")
    hits = dialog.get_by_role("option")
    expect(hits.filter(has_text="slow.a").first).to_be_visible()
    line = Line(page, "**/api/search?*")
    field.fill("slow.b")
    line.held()
    expect(dialog.get_by_text("Searching…")).to_be_visible()
    expect(hits).to_have_count(0)
    assert slow.barriers() == []
    # The answer for a text that is not there any more comes late, and is not shown.
    field.fill("slow.c")
    line.held(2)
    line.open()
    expect(hits.filter(has_text="slow.c").first).to_be_visible()
    expect(hits.filter(has_text="slow.b")).to_have_count(0)
    line = Line(page, "**/api/search?*")
    field.fill("slow.d")
    line.held()
    page.evaluate(_GIVE_UP)
    expect(dialog.get_by_role("alert")).to_contain_text(LOST)
    page.keyboard.press("Escape")


def test_messages_are_asked_for_once_and_an_earlier_answer_does_not_replace_a_later_one(
    slow: Window,
) -> None:
    page = slow.page
    slow.show("queues/%2F/slow.a", "slow.a")
    form = page.get_by_label("Browse", exact=True)
    expect(form).to_be_attached()
    slow.unfold()
    form.get_by_label("At most").fill("1")
    line = Line(page, "**/api/queues/%2F/slow.a/browse?*")
    form.get_by_role("button", name="Browse").dblclick()
    line.held()
    expect(form.get_by_role("button", name="Sending…")).to_be_disabled()
    line.open()
    rows = page.get_by_role("table", name="Messages", exact=True).locator("tbody tr:not(.opened)")
    expect(rows).to_have_count(1)
    assert line.methods == ["GET"]
    line = Line(page, "**/api/queues/%2F/slow.a/browse?*")
    further = page.get_by_role("button", name="Next page")
    further.dblclick()
    line.held()
    expect(further).to_be_disabled()
    form.get_by_label("At most").fill("3")
    form.get_by_role("button", name="Browse").click()
    line.held(2)
    line.let_go(1)
    expect(rows).to_have_count(3)
    with page.expect_response("**/browse?*"):
        line.let_go()
    expect(rows).to_have_count(3)
    assert line.methods == ["GET", "GET"]


def test_messages_are_got_once_and_a_lost_answer_is_said_to_be_lost(
    slow: Window, stock: Site
) -> None:
    page = slow.page
    slow.show("queues/%2F/slow.a", "slow.a")
    form = page.get_by_label("Get", exact=True)
    expect(form).to_be_attached()
    slow.unfold()
    form.get_by_label("Afterwards").select_option("ack_requeue_false")
    line = Line(page, "**/api/queues/%2F/slow.a/get")
    form.get_by_role("button", name="Get").dblclick()
    line.held()
    line.open()
    expect(form.get_by_role("status")).to_have_text("1 messages.")
    assert line.methods == ["POST"]
    assert stock.api.get("/api/queues/%2F/slow.a")["messages"] == 2
    line = Line(page, "**/api/queues/%2F/slow.a/get")
    form.get_by_role("button", name="Get").click()
    line.held()
    page.evaluate(_GIVE_UP)
    expect(form.get_by_role("alert")).to_contain_text(LOST)
    expect(form.get_by_role("button", name="Get")).to_be_enabled()


def test_dead_letters_are_retried_once(slow: Window) -> None:
    page = slow.page
    slow.show("dead-letters/%2F", "Dead letters")
    _groups(page).get_by_role("button").first.click()
    form = page.get_by_role("form", name="Retry", exact=True)
    line = Line(page, "**/api/queues/%2F/slow.dead/retry")
    form.get_by_role("button", name="Retry").dblclick()
    line.held()
    expect(form.get_by_role("button", name="Sending…")).to_be_disabled()
    line.open()
    expect(form.get_by_role("status")).to_contain_text("has begun")
    assert line.methods == ["POST"]


def test_a_question_is_asked_once_and_ends_with_its_page(slow: Window) -> None:
    page = slow.page
    slow.show("sql", "SQL")
    page.get_by_role("textbox", name="Question").fill("SELECT count(*) FROM queue('slow.a')")
    line = Line(page, "**/api/sql/**")
    page.get_by_role("button", name="Ask").dblclick()
    line.held()
    expect(page.get_by_role("button", name="Asking…")).to_be_disabled()
    assert line.methods == ["POST"]
    page.evaluate(_GIVE_UP)
    expect(page.get_by_role("alert")).to_contain_text(LOST)
    page.get_by_role("button", name="Ask").click()
    line.held(2)
    slow.show("users", "Users")
    line.held(3)
    assert line.methods == ["POST", "POST", "DELETE"]
    line.open()
    expect(page.locator("h1")).to_have_text("Users")


def test_every_page_comes_over_400_kilobits_per_second_with_two_seconds_of_delay(
    slow: Window,
) -> None:
    page = slow.page
    session = page.context.new_cdp_session(page)
    session.send("Network.enable")
    rate = {"downloadThroughput": BYTES_PER_SECOND, "uploadThroughput": BYTES_PER_SECOND}
    session.send(
        "Network.emulateNetworkConditions", {"offline": False, "latency": LATENCY_MS, **rate}
    )
    for path, heading, _, contents in PAGES:
        page.evaluate("path => { location.hash = path }", f"#/{path}")
        expect(_skeleton(page)).to_be_visible(timeout=PATIENCE_MS)
        expect(contents(page)).to_be_visible(timeout=PATIENCE_MS)
        expect(page.locator("h1")).to_have_text(heading)
        expect(page.locator("main .problem")).to_have_count(0)
