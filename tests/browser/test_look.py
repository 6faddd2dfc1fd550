"""Looking into messages: their bodies in every form, their headers, their life, and streams."""

from __future__ import annotations

import gzip
import json
import pickle
import zlib
from base64 import b64encode
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import msgspec
import pytest
import zstandard
from google.protobuf import struct_pb2
from playwright.sync_api import Browser, Locator, expect

from harebell.client import blocking
from tests.browser.browsing import Window, window
from tests.browser.payloads import PAYLOADS
from tests.browser.traffic import Site, serving
from tests.patience import eventually

PHONE = {"width": 390, "height": 844}


@pytest.fixture(scope="module")
def served() -> Iterator[Site]:
    with serving() as site:
        yield site


@pytest.fixture
def opened(browser: Browser, served: Site) -> Iterator[Window]:
    with window(browser, served.base) as made:
        made.enter()
        yield made
        assert made.complaints == []
        assert made.dialogs == []


# --- bodies, by the scripts that read them --------------------------------------------------------


def look(opened: Window, body: bytes, asked: Any = None, **properties: Any) -> dict[str, Any]:
    """What the page's scripts make of a body."""
    message = {"payload": b64encode(body).decode(), "payload_encoding": "base64"}
    found = opened.page.evaluate(
        """async ([message, asked]) => {
          const app = document.querySelector('script[src$="app.js"]').src;
          const { look } = await import(app.replace("app.js", "lib/body/views.js"));
          return look(message, asked ?? undefined);
        }""",
        [message | {"properties": properties}, asked],
    )
    return dict(found)


def test_a_body_is_shown_in_the_form_that_it_has(opened: Window) -> None:
    value = {
        "id": 2**63,
        "small": -(2**40),
        "price": 1.0,
        "list": [True, None, "é"],
        "raw": b"\xff",
    }
    text = json.dumps(value | {"raw": "base64:/w=="}, indent=2, ensure_ascii=False)
    found = look(opened, msgspec.msgpack.encode(value))
    assert (found["view"], found["text"], found["problem"]) == ("msgpack", text, None)
    body = b'{"id":12345678901234567890,"price":1.0}'
    shown = '{\n  "id": 12345678901234567890,\n  "price": 1.0\n}'
    for packed, name in (
        (body, "none"),
        (gzip.compress(body), "gzip"),
        (zlib.compress(body), "deflate"),
        (zstandard.compress(body), "zstd"),
    ):
        found = look(opened, packed)
        assert (found["view"], found["compression"], found["text"]) == ("json", name, shown)
    found = look(opened, "日本".encode("shift_jis"), content_type="text/plain; charset=Shift_JIS")
    assert (found["view"], found["charset"], found["text"]) == ("text", "shift_jis", "日本")
    found = look(opened, "grün".encode("latin-1"), {"view": "text", "charset": "iso-8859-15"})
    assert found["text"] == "grün"
    found = look(opened, b"\x00\x01hello\xff")
    assert (found["view"], found["text"]) == (
        "hex",
        "00000000  00 01 68 65 6c 6c 6f ff                           ..hello.",
    )


class Hostile:
    """Something that runs a command when it is loaded."""

    def __reduce__(self) -> Any:
        import os

        return os.system, ("touch /tmp/executed",)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickled_body_is_named_and_only_read(opened: Window, protocol: int) -> None:
    found = look(opened, pickle.dumps([Hostile(), Hostile(), {"a": Decimal(1)}], protocol))
    assert found["view"] == "pickle"
    assert "posix.system" in found["note"]
    assert "decimal.Decimal" in found["note"]
    assert "it loads and runs nothing" in found["note"]
    assert found["text"].splitlines()[-1].endswith("STOP")


_ORDER = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "total", "type": {"type": "bytes", "logicalType": "decimal", "scale": 2}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "parent", "type": ["null", "Order"]},
    ],
}
# As fastavro writes it: id 12345678901234567, total -12.50, and so on.
_AVRO = bytes.fromhex("8eaedad68b95ee2b04fb1e80a0d5edee660204026102620000")
_READ = {
    "id": 12345678901234567,
    "total": "-12.50",
    "at": "2026-01-01T00:00:00.000Z",
    "kind": "B",
    "tags": ["a", "b"],
    "parent": None,
}


def test_avro_is_read_with_its_schema(opened: Window) -> None:
    schema = {"schema": {"avro": json.dumps(_ORDER)}}
    for body in (_AVRO, b"\0\0\0\0\7" + _AVRO):
        found = look(opened, body, schema)
        assert (found["view"], found["problem"]) == ("avro", None)
        assert json.loads(found["text"]) == _READ
    assert found["note"] == "It names its schema: schema 7 of a registry."
    found = look(opened, _AVRO, content_type="application/avro")
    assert found["problem"] == "Avro needs the schema: give it below."
    file = b"Obj\1\2\x16avro.schema" + bytes([0x0C]) + b'"long"\0' + b"s" * 16
    file += b"\4\4\2\4" + b"s" * 16
    found = look(opened, file)
    assert (found["view"], found["note"]) == ("avro", "A file with 2 values, and its schema.")
    assert json.loads(found["text"]) == [1, 2]


_PROTO = """
syntax = "proto3";
package google.protobuf;
// A part of what Google publishes.
enum NullValue { NULL_VALUE = 0; }
message Struct { map<string, Value> fields = 1; }
message Value {
  oneof kind {
    NullValue null_value = 1; double number_value = 2; string string_value = 3;
    bool bool_value = 4; Struct struct_value = 5; ListValue list_value = 6;
  }
}
message ListValue { repeated Value values = 1; }
"""


def test_protobuf_is_read_with_a_schema_and_by_numbers(opened: Window) -> None:
    struct = struct_pb2.Struct()
    struct.update({"id": 1.0, "name": "é"})
    body = struct.SerializeToString(deterministic=True)
    found = look(opened, body, {"schema": {"proto": _PROTO, "type": "Struct"}})
    fields = {"id": {"number_value": 1.0}, "name": {"string_value": "é"}}
    assert (found["view"], json.loads(found["text"])) == ("protobuf", {"fields": fields})
    found = look(opened, body, content_type="application/x-protobuf")
    assert found["note"] == "Without a schema, fields have numbers. Give it below."
    first, _ = json.loads(found["text"])["field 1"]
    assert first["field 1"] == "id"


_SEVERAL = """
message First { int64 id = 1; }
message Second {
  enum Kind { NONE = 0; }
  message Left { string left = 1; }
  oneof either { Left a = 1; Right b = 2; }
  message Right { string right = 1; message Deep { bool deep = 1; } }
}
"""


@pytest.mark.parametrize(
    ("place", "body", "shown"),
    [
        # As Confluent's clients write places: a count and indexes, zigzag; [0] is one byte.
        (b"\0", b"\x08\x07", {"id": 7}),
        (b"\x02\0", b"\x08\x07", {"id": 7}),
        (b"\x02\x02", b"\x0a\x03\x0a\x01x", {"a": {"left": "x"}}),
        (b"\x04\x02\0", b"\x0a\x01x", {"left": "x"}),
        (b"\x04\x02\x02", b"\x0a\x01x", {"right": "x"}),
        (b"\x06\x02\x02\0", b"\x08\x01", {"deep": True}),
        (b"\x02\x02", b"", {}),
    ],
)
def test_protobuf_is_read_as_the_message_whose_place_a_registrys_client_wrote(
    opened: Window, place: bytes, body: bytes, shown: Any
) -> None:
    data = b"\0\0\0\0\x01" + place + body
    asked = {"view": "protobuf", "schema": {"proto": _SEVERAL}}
    assert json.loads(look(opened, data, asked)["text"]) == shown
    # A name that was given by hand stands before it.
    asked["schema"]["type"] = "First"
    assert look(opened, b"\0\0\0\0\x01" + place + b"\x08\x07", asked)["problem"] is None


@pytest.mark.parametrize(
    ("place", "told"),
    [
        (b"\x02\x04", "no message 2, which the body names"),
        (b"\x02\x01", "no message -1, which the body names"),
        (b"\x04\x02\x08", "no message 1.4, which the body names"),
        (b"\xfe\xff\xff\xff\x0f" + b"\0" * 999, "no message 0.0, which the body names"),
    ],
)
def test_a_place_that_a_schema_does_not_have_is_named(
    opened: Window, place: bytes, told: str
) -> None:
    asked = {"view": "protobuf", "schema": {"proto": _SEVERAL}}
    assert told in look(opened, b"\0\0\0\0\x01" + place, asked)["problem"]


@pytest.mark.parametrize(
    ("body", "asked", "told"),
    [
        (gzip.compress(bytes(100_000_000)), {}, "unpacks to more than 4 MiB"),
        (zstandard.compress(bytes(400_000_000)), {}, "unpacks to more than 4 MiB"),
        (b"\x28\xb5\x2f\xfd\x00\xf8\x01\x00\x00", {}, "needs a window of more than 8 MiB"),
        (gzip.compress(b"a" * 99)[:-9], {}, "As gzip it cannot be unpacked"),
        (b"\xdd\xff\xff\xff\xff" * 9, {"view": "msgpack"}, "byte 45: 1 bytes are announced"),
        (b"\x91" * 9_000, {"view": "msgpack"}, "nested deeper than 64"),
        (b"\xc6\xff\xff\xff\xff", {"view": "msgpack"}, "4294967295 bytes are announced, 0 are"),
        (
            b"\xfe\xff\xff\xff\xff\xff\x7f",
            {"view": "avro", "schema": {"avro": '{"type": "array", "items": "null"}'}},
            "more than 100000 values",
        ),
        (
            b"\2" * 9_000,
            {
                "view": "avro",
                "schema": {
                    "avro": '{"type": "record", "name": "R", "fields":'
                    ' [{"name": "r", "type": ["null", "R"]}]}'
                },
            },
            "nested deeper than 64",
        ),
        (b"a", {"view": "avro", "schema": {"avro": '{"type":'}}, "the schema is not JSON"),
        (b"a", {"view": "avro", "schema": {"avro": '"Nothing"'}}, "has no type 'Nothing'"),
        (b"\x0a\xff", {"view": "protobuf"}, "As Protobuf it cannot be read"),
        (b"\x0a\0", {"view": "protobuf", "schema": {"proto": "message X {"}}, "ends too early"),
        (b"\x0a\0", {"view": "protobuf", "schema": {"proto": "x"}}, "the schema ends too early"),
        (b"no", {"view": "pickle"}, "As pickle it cannot be read"),
        (b"no", {"view": "json"}, "It is not JSON."),
    ],
    ids=range(16),
)
def test_what_lies_of_its_size_is_bounded_and_named(
    opened: Window, body: bytes, asked: dict[str, Any], told: str
) -> None:
    found = look(opened, body, asked)
    assert told in found["problem"]
    # Something of it is shown nevertheless.
    assert found["text"]


# --- messages in the page -------------------------------------------------------------------------


def browsed(opened: Window, queue: str) -> Locator:
    opened.show(f"queues/%2F/{queue}", queue)
    page = opened.page
    page.get_by_text("Browse without consuming").click()
    form = page.get_by_role("form", name="Browse", exact=True)
    form.get_by_role("button", name="Browse").click()
    expect(form.get_by_role("status")).to_contain_text("messages.")
    return page.get_by_role("table", name="Messages", exact=True)


def test_a_message_opens_with_its_headers_their_types_and_its_life(
    opened: Window, served: Site
) -> None:
    headers = {
        "tenant": "acme",
        "count": 1234567890123456789,
        "at": datetime(2026, 1, 1, tzinfo=UTC),
        "price": Decimal("12.50"),
        "raw": b"\xff",
    }
    with blocking.connect(served.broker.address() + "/%2F") as link:
        channel = link.channel()
        channel.declare_queue("looked", durable=True)
        channel.bind_queue("looked", "amq.topic", "eu.#")
        for number in range(3):
            body = b'{"n": %d}' % number
            channel.publish(
                body, exchange="amq.topic", routing_key="eu.x", headers=headers, user_id="guest"
            )
    table = browsed(opened, "looked")
    expect(table.get_by_role("button", expanded=False)).to_have_count(3)
    table.get_by_role("button", name="1", exact=True).click()
    message = opened.page.get_by_role("article", name="Message 1")
    rows = message.get_by_role("region", name="Headers").get_by_role("row")
    for text in (
        "tenantlongstracme",
        "countlong1234567890123456789",
        "attimestamp1767225600",
        "pricedecimal12.5",
        "rawbinarybase64:/w==",
    ):
        expect(rows.filter(has_text=text)).to_have_count(1)
    expect(message).to_contain_text("by user 'guest'")
    message.get_by_role("button", name="Which bindings match now").click()
    expect(message).to_contain_text("by eu.# to looked")
    expect(message.locator("pre").first).to_have_text('{\n  "n": 1\n}')
    message.get_by_label("View").select_option("hex")
    expect(message.locator("pre").first).to_contain_text("7b 22 6e 22")
    opened.unfold()
    assert opened.barriers() == []
    opened.page.set_viewport_size(PHONE)
    widest = opened.page.evaluate("document.documentElement.scrollWidth")
    assert widest <= PHONE["width"]


def test_a_message_is_edited_and_published_again_exactly(opened: Window, served: Site) -> None:
    headers = {"count": 1234567890123456789, "at": datetime(2026, 1, 1, tzinfo=UTC)}
    with blocking.connect(served.broker.address() + "/%2F") as link:
        channel = link.channel()
        channel.declare_queue("again", durable=True)
        for body in (b"\xff\x00", b"a\r\nb\nc\rd"):
            channel.publish(body, routing_key="again", headers=headers, priority=3, delivery_mode=2)
    table = browsed(opened, "again")
    for number in range(2):
        table.get_by_role("button", name=str(number), exact=True).click()
        message = opened.page.get_by_role("article", name=f"Message {number}")
        message.get_by_text("Edit and publish again").click()
        form = message.get_by_role("form", name="Publish again")
        form.get_by_role("button", name="Publish").click()
        expect(form.get_by_role("status")).to_have_text("Published and routed.")
    lines = served.api.ask("GET", "/api/queues/%2F/again/browse?exact=true").body.splitlines()
    rows = [json.loads(line) for line in lines]
    for first, second in zip(rows[:2], rows[2:], strict=True):
        for name in ("properties", "header_types", "kept_headers", "payload", "payload_encoding"):
            assert first[name] == second[name], name
    form.get_by_label("Body", exact=True).fill("edited\ntwice")
    form.get_by_role("button", name="Publish").click()
    edited = "/api/queues/%2F/again/browse?from=last"
    assert eventually(lambda: b'"edited\\ntwice"' in served.api.ask("GET", edited).body)


def test_a_body_is_downloaded_and_a_message_copied_as_commands(
    opened: Window, served: Site
) -> None:
    with blocking.connect(served.broker.address() + "/%2F") as link:
        channel = link.channel()
        channel.declare_queue("copied", durable=True)
        channel.publish(
            "it's\nfine\u202e".encode(), routing_key="copied", headers={"n": 1, "t": "a b"}
        )
    browsed(opened, "copied")
    message = opened.page.get_by_role("article", name="Message 0")
    message.get_by_text("Download or copy").click()
    with opened.page.expect_download() as waiting:
        message.get_by_role("button", name="Download the body").click()
    assert waiting.value.path().read_bytes() == "it's\nfine\u202e".encode()
    command = message.get_by_role("region", name="Command")
    expect(command).to_contain_text("harebell publish")
    expect(command).to_contain_text("-H n:=1")
    expect(command).to_contain_text("-H 't=a b'")
    expect(command).to_contain_text(r"-- $'it\'s\U0000000afine\U0000202e'")
    message.get_by_label("As").select_option("curl")
    expect(command).to_contain_text("curl -u USER")
    message.get_by_label("As").select_option("python")
    text = command.inner_text()
    assert "PASSWORD" in text
    compile(text, "copied", "exec")
    assert opened.barriers() == []


def test_a_task_of_celery_is_named(opened: Window, served: Site) -> None:
    headers = {
        "task": "shop.tasks.send",
        "id": "4f",
        "argsrepr": "(1,)",
        "kwargsrepr": "{}",
        "retries": 2,
        "origin": "gen1@host",
    }
    with blocking.connect(served.broker.address() + "/%2F") as link:
        channel = link.channel()
        channel.declare_queue("celery", durable=True)
        channel.publish(
            b"[[1], {}, {}]", routing_key="celery", headers=headers, content_type="application/json"
        )
    browsed(opened, "celery")
    message = opened.page.get_by_role("article", name="Message 0")
    expect(message).to_contain_text("Celery task")
    expect(message).to_contain_text("Taskshop.tasks.send")
    expect(message).to_contain_text("Arguments(1,)")


def test_a_message_that_is_not_ready_tells_who_has_it(opened: Window, served: Site) -> None:
    page = opened.page
    with blocking.connect(served.broker.address() + "/%2F") as link:
        channel = link.channel()
        channel.declare_queue("held", durable=True)
        channel.publish(b"x", routing_key="held")
        with channel.consume("held", tag="worker"):
            browsed(opened, "held")
            form = page.get_by_role("form", name="Browse", exact=True)
            form.get_by_label("State").select_option("all")
            form.get_by_role("button", name="Browse").click()
            message = page.get_by_role("article", name="Message 0")
            message.get_by_role("button", name="Who has it now").click()
            expect(message).to_contain_text("consumer 'worker' has it, of channel")
            assert opened.barriers() == []


def test_a_dead_letter_tells_of_its_life(opened: Window, served: Site) -> None:
    with blocking.connect(served.broker.address() + "/%2F") as link:
        channel = link.channel()
        channel.declare_queue("died.here", durable=True, arguments={
            "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead.there"
        })  # fmt: skip
        channel.declare_queue("dead.there", durable=True)
        channel.publish(b"x", routing_key="died.here")
        got = channel.get("died.here")
        assert got is not None
        got.reject(requeue=False)
    browsed(opened, "dead.there")
    message = opened.page.get_by_role("article", name="Message 0")
    expect(message).to_contain_text("Dead-lettered")
    expect(message).to_contain_text("in died.here: a consumer rejected it")


def test_a_traced_message_tells_by_whom_it_was_published_and_to_whom_it_went(
    opened: Window, served: Site
) -> None:
    queue = PAYLOADS[0]
    with blocking.connect(served.broker.address() + "/%2F") as link:
        channel = link.channel()
        for name in ("traces", queue):
            channel.declare_queue(name, durable=True)
        channel.bind_queue("traces", "amq.rabbitmq.trace", "#")
        served.api.done("PUT", "/api/vhosts/%2F", {"tracing": True})
        channel.publish(b"x", routing_key=queue, mandatory=True)
        got = channel.get(queue)
        assert got is not None
        got.reject(requeue=True)
        served.api.done("PUT", "/api/vhosts/%2F", {"tracing": False})
        table = browsed(opened, "traces")
        page = opened.page
        for offset, told in enumerate(("it was published by", "it was delivered to")):
            table.get_by_role("button", name=str(offset), exact=True).click()
            message = page.get_by_role("article", name=f"Message {offset}")
            expect(message).to_contain_text(f"{told} user 'guest', channel 1 of 127.0.0.1:")
        first = page.get_by_role("article", name="Message 0")
        told = f"from exchange '' by the key '{queue}' it was routed to {queue}"
        expect(first).to_contain_text(told)
        assert page.evaluate("window.executed") is None
        assert opened.barriers() == []


def test_a_message_without_a_user_says_what_records_the_next_ones(
    opened: Window, served: Site
) -> None:
    with blocking.connect(served.broker.address() + "/%2F") as link:
        channel = link.channel()
        channel.declare_queue("nameless", durable=True)
        channel.publish(b"x", routing_key="nameless")
    browsed(opened, "nameless")
    message = opened.page.get_by_role("article", name="Message 0")
    expect(message).to_contain_text("by whom is not recorded, as it names no user")
    expect(message.locator("code").filter(has_text="harebell trace on")).to_be_visible()


def test_a_page_of_messages_is_followed_by_the_next(opened: Window, served: Site) -> None:
    with blocking.connect(served.broker.address() + "/%2F") as link:
        channel = link.channel()
        channel.declare_queue("long", durable=True)
        channel.publish_many([b"%d" % n for n in range(30)], routing_key="long")
    table = browsed(opened, "long")
    expect(table.locator("tbody tr")).to_have_count(20)
    opened.page.get_by_role("button", name="Next page").click()
    expect(table.locator("tbody tr")).to_have_count(10)
    expect(table.locator("tbody tr").first).to_contain_text("20")
    expect(opened.page.get_by_role("button", name="Next page")).to_have_count(0)


# --- streams --------------------------------------------------------------------------------------


def test_a_stream_is_followed_by_a_key_and_begins_at_a_time(opened: Window, served: Site) -> None:
    page = opened.page
    with blocking.connect(served.broker.address() + "/%2F") as link:
        channel = link.channel()
        channel.declare_exchange("news", "topic", durable=True)
        channel.declare_queue("events.s", durable=True, arguments={"x-queue-type": "stream"})
        channel.bind_queue("events.s", "news", "#")
        channel.publish(b"before", exchange="news", routing_key="eu")
        browsed(opened, "events.s")
        form = page.get_by_role("form", name="Browse", exact=True)
        form.get_by_label("or from a time").fill("2100-01-01T00:00:00")
        form.get_by_role("button", name="Browse").click()
        expect(form.get_by_role("status")).to_contain_text("0 messages.")
        form.get_by_label("or from a time").fill("2020-01-01T00:00:00")
        form.get_by_role("button", name="Browse").click()
        expect(form.get_by_role("status")).to_contain_text("1 messages.")
        page.get_by_role("button", name="Follow this routing key").click()
        expect(page.get_by_text("Following where routing_key = 'eu': 0 came.")).to_be_visible()
        came = page.get_by_role("table", name="Messages that came")
        # The first one may come before the page has asked for the end.
        for number in range(50):
            channel.publish(b"%d" % number, exchange="news", routing_key="us")
            channel.publish(b"%d" % number, exchange="news", routing_key="eu")
            page.wait_for_timeout(200)
            if came.count():
                break
    expect(came.locator("tbody tr").first).to_contain_text("eu")
    expect(came.get_by_text("us", exact=True)).to_have_count(0)
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_text("Paused where routing_key = 'eu'")).to_be_visible()
    assert opened.barriers() == []
    page.get_by_role("button", name="End", exact=True).click()
    expect(came).to_have_count(0)


# --- messages that wait ---------------------------------------------------------------------------


def test_messages_that_wait_are_released_and_cancelled_one_by_one(
    opened: Window, served: Site
) -> None:
    page = opened.page
    with blocking.connect(served.broker.address() + "/%2F") as link:
        channel = link.channel()
        arguments = {"x-delayed-type": "fanout"}
        channel.declare_exchange("later", "x-delayed-message", durable=True, arguments=arguments)
        channel.declare_queue("retried", durable=True, arguments={"x-retry-delays": [3_600_000]})
        channel.bind_queue("retried", "later", "")
        for hour in (2, 1, 3):
            headers = {"x-delay": hour * 3_600_000}
            channel.publish(b"%d" % hour, exchange="later", routing_key=f"h{hour}", headers=headers)
        channel.publish(b"now", routing_key="retried")
        got = channel.get("retried")
        assert got is not None
        got.reject(requeue=False)
        opened.show("exchanges/%2F/later", "later")
        rows = page.get_by_role("region", name="Delayed messages").last.locator("tbody tr")
        expect(rows).to_have_count(3)
        expect(rows.first).to_contain_text("h1")
        rows.first.get_by_role("button", name="1", exact=True).click()
        expect(page.get_by_role("article", name="Message 1")).to_contain_text("x-delay")
        assert opened.barriers() == []
        rows.first.get_by_role("button", name="Release").click()
        expect(rows).to_have_count(2)
        rows.first.get_by_role("button", name="Cancel").click()
        dialog = page.get_by_role("dialog")
        expect(dialog).to_contain_text("The message with the routing key 'h2' will be gone.")
        dialog.get_by_role("button", name="Cancel").first.click()
        expect(rows).to_have_count(1)
        released = channel.get("retried")
        assert released is not None
        assert released.body == b"1"
        released.ack()
        opened.show("queues/%2F/retried", "retried")
        waiting = page.get_by_role("region", name="Messages that wait for a retry").last
        waiting.get_by_role("button", name="Release").click()
        expect(waiting.get_by_role("button", name="Release")).to_have_count(0)
        again = channel.get("retried")
        assert again is not None
        assert (again.body, again.redelivered) == (b"now", True)
        again.ack()


def test_a_claim_of_a_group_is_released_with_those_after_it(opened: Window, served: Site) -> None:
    page = opened.page
    with blocking.connect(served.broker.address() + "/%2F") as link:
        channel = link.channel()
        channel.declare_queue("claimed", durable=True)
        channel.publish_many([b"%d" % n for n in range(3)], routing_key="claimed")
        epoch = channel.lease_open("claimed", "billing", timeout=600).epoch
        for _ in range(3):
            channel.lease_claim("claimed", "billing", epoch, 1)
        opened.show("queues/%2F/claimed", "claimed")
        page.get_by_role("region", name="Leases").last.get_by_role("button", name="3").click()
        rows = page.get_by_role("region", name="Claims of billing").locator("tbody tr")
        expect(rows).to_have_count(3)
        assert opened.barriers() == []
        rows.nth(1).get_by_role("button", name="Release").click()
        dialog = page.get_by_role("dialog")
        expect(dialog).to_contain_text("count as lost: 2 claims.")
        dialog.get_by_role("button", name="Release").click()
        expect(rows).to_have_count(1)
        assert served.api.get("/api/queues/%2F/claimed")["messages_ready"] == 2
