"""What users do with queues in the web interface."""

from __future__ import annotations

import json

from playwright.sync_api import expect

from harebell.client import blocking
from tests.browser.browsing import Window
from tests.browser.traffic import Site


def test_a_queue_is_declared_published_to_browsed_purged_and_deleted(
    shown: Window, site: Site
) -> None:
    page = shown.page
    shown.show("queues", "Queues")
    page.get_by_text("New queue").click()
    form = page.get_by_role("form", name="New queue")
    form.get_by_label("Name").fill("invoices")
    form.get_by_label("Arguments").fill('{"x-max-length": 7}')
    form.get_by_role("button", name="Declare").click()
    expect(form.get_by_role("status")).to_have_text("Queue 'invoices' is there.")
    page.get_by_role("link", name="invoices").click()
    expect(page.locator("h1")).to_have_text("invoices")

    page.locator("summary").filter(has_text="Publish").click()
    form = page.get_by_role("form", name="Publish")
    form.get_by_label("Headers").fill('{"tenant": "acme"}')
    form.get_by_label("Body", exact=True).fill('{"total": 12}')
    form.get_by_role("button", name="Publish").click()
    expect(form.get_by_role("status")).to_have_text("Published and routed.")

    page.get_by_text("Browse without consuming").click()
    form = page.get_by_role("form", name="Browse")
    form.get_by_label("Condition").fill("body.total = 12 AND headers.tenant = 'acme'")
    form.get_by_role("button", name="Browse").click()
    expect(form.get_by_role("status")).to_contain_text("1 messages.")
    expect(page.get_by_role("region", name="Body")).to_have_text(
        json.dumps({"total": 12}, indent=2)
    )
    assert site.api.get("/api/queues/%2F/invoices")["messages_ready"] == 1

    page.get_by_role("button", name="Purge").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("'invoices' in vhost '/'")
    dialog.get_by_role("button", name="Purge").click()
    expect(dialog).to_be_hidden()
    assert site.api.get("/api/queues/%2F/invoices")["messages_ready"] == 0

    page.get_by_role("button", name="Delete").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("button", name="Delete")).to_be_disabled()
    dialog.get_by_label("to confirm").fill("invoices")
    dialog.get_by_role("button", name="Delete").click()
    expect(page.locator("h1")).to_have_text("Queues")
    assert site.api.ask("GET", "/api/queues/%2F/invoices").status == 404


def test_a_refused_form_says_why_and_keeps_what_was_typed(shown: Window) -> None:
    shown.show("queues", "Queues")
    shown.page.get_by_text("New queue").click()
    form = shown.page.get_by_role("form", name="New queue")
    form.get_by_label("Name").fill("orders.eu")
    form.get_by_label("Arguments").fill('{"x-max-length": ')
    form.get_by_role("button", name="Declare").click()
    expect(form.get_by_role("alert")).to_contain_text("The arguments is not JSON")
    form.get_by_label("Arguments").fill('{"x-max-length": 3}')
    form.get_by_role("button", name="Declare").click()
    expect(form.get_by_role("alert")).to_contain_text("inequivalent arg")
    expect(form.get_by_label("Name")).to_have_value("orders.eu")


def test_settings_say_where_they_come_from(shown: Window, site: Site) -> None:
    arguments = {"x-max-length": 90_000, "x-message-ttl": 5_000_000}
    body = {"durable": True, "arguments": arguments}
    site.api.done("PUT", "/api/queues/%2F/orders.settings", body)
    shown.show("queues/%2F/orders.settings", "orders.settings")
    rows = shown.page.get_by_role("region", name="Settings").get_by_role("row")
    expect(rows.nth(1)).to_contain_text("policy 'bounded'")
    expect(rows.nth(1)).to_contain_text("50000")
    expect(rows.nth(1)).to_contain_text("argument: 90000")
    expect(rows.nth(2)).to_contain_text("5000000argument")
    site.api.done("DELETE", "/api/queues/%2F/orders.settings")


def test_a_filter_and_an_order_are_those_of_the_broker(shown: Window) -> None:
    shown.show("queues", "Queues")
    names = shown.page.locator(".body .row a")
    shown.page.get_by_label("Filter").fill("orders")
    expect(shown.page.get_by_text("4 queues")).to_be_visible()
    expect(names).to_have_text(["orders.eu", "orders.failed", "orders.unrouted", "orders.us"])
    shown.page.get_by_role("button", name="Name").click()
    expect(names).to_have_text(["orders.us", "orders.unrouted", "orders.failed", "orders.eu"])
    shown.page.get_by_label("as a regular expression").check()
    shown.page.get_by_label("Filter").fill("^orders[.](eu|us)$")
    expect(names).to_have_text(["orders.us", "orders.eu"])
    shown.page.get_by_label("Filter").fill("nothing like it")
    expect(shown.page.get_by_text("Nothing matches 'nothing like it'.")).to_be_visible()


def test_a_lease_is_shown_and_released_by_its_name(shown: Window, site: Site) -> None:
    page = shown.page
    with blocking.connect(site.broker.address() + "/%2F") as link:
        channel = link.channel()
        channel.declare_queue("claimed", durable=True)
        channel.publish_many([b"1", b"2"], routing_key="claimed", delivery_mode=2)
        epoch = channel.lease_open("claimed", "billing", timeout=600).epoch
        channel.lease_claim("claimed", "billing", epoch, 2)
    shown.show("queues/%2F/claimed", "claimed")
    row = page.get_by_role("region", name="Leases", exact=True).last.get_by_role("row").last
    expect(row).to_contain_text("billing")
    row.get_by_role("button", name="Release").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Release group 'billing' of queue 'claimed'?")
    dialog.get_by_role("button", name="Release").click()
    expect(dialog).to_be_hidden()
    assert site.api.get("/api/queues/%2F/claimed")["messages_ready"] == 2


def test_a_query_that_has_failed_is_forgotten_and_one_that_runs_is_not(
    shown: Window, site: Site
) -> None:
    name = "to/the lake?"
    with blocking.connect(site.broker.address() + "/%2F") as link:
        link.channel().report_query(name, {"state": "failed", "error": "no lake"})
    shown.show("pipelines", "Pipelines")
    row = shown.page.get_by_role("row").filter(has_text=name)
    row.get_by_role("button", name="Forget").click()
    dialog = shown.page.get_by_role("dialog")
    expect(dialog).to_contain_text(f"Forget query '{name}'?")
    dialog.get_by_role("button", name="Forget").click()
    expect(row).to_have_count(0)
    running = shown.page.get_by_role("row").filter(has_text="orders-to-lake")
    expect(running.get_by_role("button", name="Forget")).to_have_count(0)
    assert name not in [each["name"] for each in site.api.get("/api/queries")]


def test_the_fate_of_a_message_is_explained(shown: Window, site: Site) -> None:
    page = shown.page
    shown.show("exchanges/%2F/orders", "orders")
    page.get_by_role("link", name="Explain a publish").click()
    form = page.get_by_role("form", name="Explain")
    expect(form.get_by_label("Exchange")).to_have_value("orders")
    form.get_by_label("Routing key").fill("eu.order.created")
    form.get_by_label("Publisher").fill("ada")
    form.get_by_role("button", name="Explain").click()
    expect(page.get_by_text("It reaches 2 queues.")).to_be_visible()
    queues = page.get_by_role("region", name="Queues that get it")
    expect(queues.get_by_role("row").filter(has_text="orders.eu")).to_contain_text("dead by failed")
    form.get_by_label("Routing key").fill("us.order.created")
    form.get_by_role("button", name="Explain").click()
    expect(page.get_by_text("It is refused: write access to topic")).to_be_visible()
    assert shown.barriers() == []
    form.get_by_label("Exchange").fill("missing")
    form.get_by_role("button", name="Explain").click()
    expect(form.get_by_role("alert")).to_contain_text("no exchange 'missing'")
    expect(form.get_by_label("Publisher")).to_have_value("ada")


def test_the_log_is_followed_paused_and_filtered(shown: Window, site: Site) -> None:
    page = shown.page
    shown.show("log", "Log")
    log = page.get_by_role("region", name="Log", exact=True)
    site.api.done("PUT", "/api/queues/%2F/followed", {})
    expect(log.get_by_text("queue 'followed'")).to_be_visible()
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_text(", paused")).to_be_visible()
    site.api.done("PUT", "/api/queues/%2F/unseen", {})
    page.wait_for_timeout(2500)
    expect(log.get_by_text("queue 'unseen'")).to_have_count(0)
    page.get_by_role("button", name="Go on").click()
    expect(log.get_by_text("queue 'unseen'")).to_be_visible()
    page.get_by_label("Filter").fill("'followed'")
    expect(log.get_by_text("queue 'unseen'")).to_have_count(0)
    expect(log.get_by_text("queue 'followed'")).to_be_visible()
    page.get_by_label("Filter").fill("")
    page.get_by_label("Level").select_option("error")
    expect(log.get_by_text("queue 'followed'")).to_have_count(0)
