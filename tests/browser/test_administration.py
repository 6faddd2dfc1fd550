"""Exchanges, connections, users, policies, limits and definitions in the web interface."""

from __future__ import annotations

import json
from pathlib import Path

import pika
import pytest
from playwright.sync_api import Locator, expect

from tests.browser.browsing import SECONDS, Window
from tests.browser.traffic import Site
from tests.patience import eventually


def _confirm(shown: Window, button: Locator, name: str | None = None) -> None:
    """Press a button, and the same one in the dialog that it opens."""
    button.click()
    dialog = shown.page.get_by_role("dialog")
    if name is not None:
        dialog.get_by_label("to confirm").fill(name)
    dialog.get_by_role("button").first.click()
    expect(dialog).to_be_hidden()


def test_an_exchange_is_declared_bound_published_to_and_deleted(shown: Window, site: Site) -> None:
    page = shown.page
    shown.show("exchanges", "Exchanges")
    page.get_by_text("New exchange").click()
    form = page.get_by_role("form", name="New exchange")
    form.get_by_label("Name").fill("returns")
    form.get_by_label("Type").select_option("topic")
    form.get_by_role("button", name="Declare").click()
    expect(form.get_by_role("status")).to_have_text("Exchange 'returns' is there.")
    page.get_by_role("link", name="returns").click()
    page.get_by_text("Bind", exact=True).first.click()
    form = page.get_by_role("form", name="Bind")
    form.get_by_label("Name").fill("orders.failed")
    form.get_by_label("Binding key").fill("eu.*")
    form.get_by_role("button", name="Bind").click()
    expect(form.get_by_role("status")).to_contain_text("'returns' routes to 'orders.failed'")
    page.locator("summary").filter(has_text="Publish").click()
    form = page.get_by_role("form", name="Publish")
    for key, said in (("eu.x", "routed."), ("us.x", "reached no queue.")):
        form.get_by_label("Routing key").fill(key)
        form.get_by_role("button", name="Publish").click()
        expect(form.get_by_role("status")).to_contain_text(said)
    unbind = page.get_by_role("button", name="Unbind")
    _confirm(shown, unbind)
    expect(unbind).to_be_hidden()
    _confirm(shown, page.get_by_role("button", name="Delete"), "returns")
    expect(page.locator("h1")).to_have_text("Exchanges")
    assert site.api.ask("GET", "/api/exchanges/%2F/returns").status == 404


def test_a_connection_is_closed(shown: Window, site: Site) -> None:
    claims = {"connection_name": "leaving"}
    parameters = pika.ConnectionParameters(port=site.broker.port, client_properties=claims)
    link = pika.BlockingConnection(parameters)
    shown.show("connections", "Connections")
    shown.page.get_by_role("link", name="leaving").click()
    _confirm(shown, shown.page.get_by_role("button", name="Close connection"))
    expect(shown.page.locator("h1")).to_have_text("Connections")
    with pytest.raises(pika.exceptions.ConnectionClosedByBroker) as closed:
        link.sleep(SECONDS)
    assert closed.value.reply_code == 320


def test_a_user_is_added_permitted_changed_and_deleted(shown: Window, site: Site) -> None:
    page = shown.page
    shown.show("users", "Users")
    page.get_by_text("New user").click()
    form = page.get_by_role("form", name="New user")
    form.get_by_label("Name").fill("bob")
    form.get_by_label("Password").fill("secret")
    form.get_by_label("Tags").fill("monitoring")
    form.get_by_role("button", name="Add").click()
    expect(form.get_by_role("status")).to_contain_text("User 'bob' is there")
    assert site.api.ask("GET", "/api/whoami", user="bob:secret").status == 200
    page.get_by_role("link", name="bob").click()
    page.get_by_text("Set permissions").click()
    form = page.get_by_role("form", name="Set permissions")
    form.get_by_label("Configure").fill("^bob")
    form.get_by_role("button", name="Set").click()
    expect(page.get_by_role("cell", name="^bob")).to_be_visible()
    assert site.api.get("/api/permissions/%2F/bob")["configure"] == "^bob"
    page.get_by_text("Set topic permissions").click()
    form = page.get_by_role("form", name="Set topic permissions")
    form.get_by_label("Exchange").fill("amq.topic")
    form.get_by_label("Write").fill("^eu")
    form.get_by_role("button", name="Set").click()
    expect(page.get_by_role("cell", name="^eu")).to_be_visible()
    (rule,) = site.api.get("/api/users/bob/topic-permissions")
    assert (rule["exchange"], rule["write"]) == ("amq.topic", "^eu")
    _confirm(shown, page.get_by_role("button", name="Clear").last)
    expect(page.get_by_text("every routing key with topic exchanges")).to_be_visible()
    _confirm(shown, page.get_by_role("button", name="Clear"))
    expect(page.get_by_text("The user can open no vhost.")).to_be_visible()
    _confirm(shown, page.get_by_role("button", name="Delete"), "bob")
    expect(page.locator("h1")).to_have_text("Users")
    assert site.api.ask("GET", "/api/users/bob").status == 404


def test_a_policy_and_a_limit_are_set_and_deleted(shown: Window, site: Site) -> None:
    page = shown.page
    shown.show("policies", "Policies")
    page.get_by_text("Set a policy").click()
    form = page.get_by_role("form", name="Set a policy")
    form.get_by_label("Name").fill("short")
    form.get_by_label("Pattern").fill("^short[.]")
    form.get_by_label("Settings").fill('{"max-lenth": 5}')
    form.get_by_role("button", name="Set").click()
    expect(form.get_by_role("alert")).to_contain_text("max-lenth")
    form.get_by_label("Settings").fill('{"max-length": 5}')
    form.get_by_role("button", name="Set").click()
    row = page.get_by_role("region", name="Policies", exact=True).get_by_role("row", name="short")
    expect(row.first).to_contain_text("max-length: 5")
    assert site.api.get("/api/policies/%2F/short")["definition"] == {"max-length": 5}
    _confirm(shown, row.first.get_by_role("button", name="Delete"), "short")
    expect(row).to_have_count(0)

    shown.show("limits", "Limits")
    page.get_by_text("Set a limit").first.click()
    form = page.get_by_role("form", name="Set a limit of a vhost")
    form.get_by_label("Vhost").fill("billing")
    form.get_by_label("Limit", exact=True).select_option("max-connections")
    form.get_by_label("Most").fill("12")
    form.get_by_role("button", name="Set").click()
    row = page.get_by_role("row", name="max-connections").filter(has_text="billing")
    expect(row).to_contain_text("12")
    _confirm(shown, row.get_by_role("button", name="Clear"))
    expect(row).to_have_count(0)


def test_a_vhost_is_added_and_deleted_by_its_name(shown: Window, site: Site) -> None:
    page = shown.page
    shown.show("vhosts", "Vhosts")
    page.get_by_text("New vhost").click()
    form = page.get_by_role("form", name="New vhost")
    form.get_by_label("Name").fill("trial")
    form.get_by_role("button", name="Add").click()
    row = page.get_by_role("row", name="trial")
    _confirm(shown, row.get_by_role("button", name="Delete"), "trial")
    expect(row).to_have_count(0)
    assert site.api.ask("GET", "/api/vhosts/trial").status == 404


def test_definitions_are_downloaded_and_uploaded(shown: Window, site: Site, tmp_path: Path) -> None:
    page = shown.page
    shown.show("definitions", "Definitions")
    with page.expect_download() as saved:
        page.get_by_role("form", name="Download").get_by_role("button", name="Download").click()
    document = json.loads(Path(saved.value.path()).read_text())
    assert "orders.eu" in [queue["name"] for queue in document["queues"]]
    file = tmp_path / "mine.json"
    form = page.get_by_role("form", name="Upload")
    file.write_text("{")
    form.get_by_label("File").set_input_files(file)
    form.get_by_role("button", name="Upload").click()
    expect(form.get_by_role("alert")).to_contain_text("'mine.json' is not JSON")
    queue = {"name": "uploaded", "vhost": "/", "durable": False, "auto_delete": False}
    file.write_text(json.dumps({"queues": [{**queue, "arguments": {}}]}))
    form.get_by_label("File").set_input_files(file)
    form.get_by_role("button", name="Upload").click()
    expect(form.get_by_role("status")).to_have_text("What 'mine.json' declares is there.")
    site.api.done("DELETE", "/api/queues/%2F/uploaded")


def test_the_topology_is_walked_by_its_links(shown: Window) -> None:
    page = shown.page
    shown.show("topology", "Topology")
    picture = page.get_by_role("group", name="Topology")
    for name in ("orders exchange", "orders.eu queue", "dead exchange", "unrouted exchange"):
        expect(picture.get_by_role("link", name=name)).to_be_visible()
    expect(picture.locator(".edge.dead-letter")).to_have_count(1)
    expect(picture.locator(".edge.alternate")).to_have_count(1)
    picture.get_by_role("link", name="dead exchange").click()
    expect(page.get_by_text("steps from exchange 'dead'")).to_be_visible()
    expect(picture.get_by_role("link", name="orders.us queue")).to_have_count(0)
    picture.get_by_role("link", name="dead exchange").click()
    expect(page.locator("h1")).to_have_text("dead")


def test_an_alternate_exchange_of_a_policy_is_in_the_picture_as_one_of_an_argument_is(
    shown: Window, site: Site
) -> None:
    for name in ("front", "behind", "aside"):
        site.api.done("PUT", f"/api/exchanges/%2F/{name}", {"type": "fanout"})
    wide = {"pattern": "^front$", "definition": {"alternate-exchange": "aside"}, "priority": 1}
    policy = {"pattern": "^front$", "definition": {"alternate-exchange": "behind"}, "priority": 2}
    site.api.done("PUT", "/api/policies/%2F/lost", {**wide, "apply-to": "exchanges"})
    site.api.done("PUT", "/api/policies/%2F/found", {**policy, "apply-to": "exchanges"})
    try:
        shown.show("topology/%2F/exchange/front", "Topology")
        picture = shown.page.get_by_role("group", name="Topology")
        line = picture.locator(".edge.alternate")
        expect(line).to_have_count(1)
        expect(line.locator("title")).to_have_text("alternate")
        expect(picture.get_by_role("link", name="behind exchange")).to_be_visible()
        # The policy of the lower priority is not in force.
        expect(picture.get_by_role("link", name="aside exchange")).to_have_count(0)
        site.api.done("DELETE", "/api/policies/%2F/found")
        shown.page.reload()
        expect(picture.get_by_role("link", name="aside exchange")).to_be_visible()
    finally:
        for name in ("lost", "found"):
            site.api.ask("DELETE", f"/api/policies/%2F/{name}")
        for name in ("front", "behind", "aside"):
            site.api.done("DELETE", f"/api/exchanges/%2F/{name}")


def test_messages_are_composed_for_any_exchange(shown: Window) -> None:
    page = shown.page
    shown.show("publish", "Publish")
    form = page.get_by_role("form", name="Message")
    form.get_by_label("Exchange").fill("unrouted")
    form.get_by_label("How often").fill("3")
    form.get_by_role("button", name="Publish").click()
    expect(form.get_by_role("status")).to_have_text("3 published and routed.")
    form.get_by_label("Exchange").fill("missing")
    form.get_by_role("button", name="Publish").click()
    expect(form.get_by_role("alert")).to_contain_text("missing")


def test_consumers_of_a_stream_show_how_far_they_are(shown: Window, site: Site) -> None:
    parameters = pika.ConnectionParameters(port=site.broker.port)
    with pika.BlockingConnection(parameters) as link:
        channel = link.channel()
        channel.queue_declare("history", durable=True, arguments={"x-queue-type": "stream"})
        channel.confirm_delivery()
        for _ in range(10):
            channel.basic_publish("", "history", b"")
        channel.basic_qos(prefetch_count=4)
        first = {"x-stream-offset": "first"}
        got: list[bytes] = []
        channel.basic_consume(
            "history", lambda *it: got.append(it[3]), consumer_tag="slow", arguments=first
        )
        assert eventually(lambda: link.process_data_events(1) or len(got) == 4)
        (consumer,) = site.api.get("/api/queues/%2F/history")["consumer_details"]
        assert (consumer["offset"], consumer["offset_lag"]) == (4, 6)
        shown.show("streams", "Streams")
        row = shown.page.get_by_role("row").filter(has_text="slow")
        for text in ("first", "4", "6"):
            expect(row.get_by_role("cell", name=text, exact=True).first).to_be_visible()
        channel.queue_delete("history")
