"""What the addresses of sources, targets and messages name."""

from __future__ import annotations

import pytest

from harebell.front.amqp_1_0.addresses import (
    Address,
    Addressing,
    exchange_address,
    message_to,
    queue_address,
    queue_of,
    source,
    target,
)
from harebell.front.amqp_1_0.errors import LinkError

NAMES = ["q", "a/b", "a b+c%", "Käse", "日本", "/queues/q", "amq.gen-x", "100%25"]


@pytest.mark.parametrize("name", NAMES)
def test_the_address_of_a_queue_is_read_as_it_was_written(name: str) -> None:
    address = queue_address(name)
    for read in (target, source, message_to):
        assert read(address) == Address(queue=name)
    assert queue_of(address) == name


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("key", ["", "k", "a/b", "#.é"])
def test_the_address_of_an_exchange_is_read_as_it_was_written(name: str, key: str) -> None:
    address = exchange_address(name, key)
    for read in (target, message_to):
        assert read(address) == Address(exchange=name, key=key)


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("/queues/K%C3%A4se", Address(queue="Käse")),
        ("/queues/Käse", Address(queue="Käse")),
        ("/queues/a+b", Address(queue="a+b")),
        ("/queues/a%2fb", Address(queue="a/b")),
        ("/exchanges/x/", Address(exchange="x")),
        ("/exchange/x/a%2Fb", Address(exchange="x", key="a/b")),
        ("/exchange/x", Address(exchange="x", key=None)),
        ("/topic/a.b", Address(exchange="amq.topic", key="a.b")),
        ("/queue", Address(key=None)),
        ("/queue/q", Address(queue="q", makes=True)),
        ("/amq/queue/q", Address(queue="q")),
        ("q", Address(queue="q", makes=True)),
        ("a/b", Address(queue="a/b", makes=True)),
    ],
)
def test_a_target_names_where_messages_go(address: str, expected: Address) -> None:
    assert target(address) == expected


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("/exchange/x/k", Address(exchange="x", key="k")),
        ("/exchange/x", Address(exchange="x")),
        ("/topic/a.#", Address(exchange="amq.topic", key="a.#")),
        ("/queue/q", Address(queue="q", makes=True)),
        ("q", Address(queue="q", makes=True)),
    ],
)
def test_a_source_names_where_messages_come_from(address: str, expected: Address) -> None:
    assert source(address) == expected


def test_a_message_makes_no_queue() -> None:
    assert message_to("q") == Address(queue="q")
    assert message_to("/queue/q") == Address(queue="q")


@pytest.mark.parametrize(
    "address",
    ["/queues/", "/queues/a/b", "/queues/%", "/queues/%f", "/queues/%zz", "/queues/%ff",
     "/exchanges/", "/exchanges//k", "/exchanges/amq.default", "/exchanges/a/b/c", "/exchange",
     "/exchange//k", "/exchange/a/b/c", "/queue/", "/amq/queue/", "/amq/queue", "/x", "/", ""],
)  # fmt: skip
def test_a_malformed_address_is_refused(address: str) -> None:
    with pytest.raises(LinkError) as caught:
        target(address)
    assert caught.value.condition == "amqp:invalid-field"
    assert caught.value.text == f'{{bad_address_string,<<"{address}">>}}'
    with pytest.raises(LinkError):
        message_to(address)


def test_an_exchange_of_version_2_is_no_source() -> None:
    with pytest.raises(LinkError, match="bad_address_string"):
        source("/exchanges/amq.topic/k")


@pytest.mark.parametrize("address", ["q", "/queue/q", "/exchange/x/k", "/topic/k", ""])
def test_strict_addressing_knows_version_2_only(address: str) -> None:
    for read in (target, source):
        with pytest.raises(LinkError, match="amqp_address_v1_not_permitted"):
            read(address, Addressing.STRICT)
    with pytest.raises(LinkError, match="bad_address_string"):
        message_to(address, Addressing.STRICT)
    assert target("/queues/q", Addressing.STRICT) == Address(queue="q")


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("q", Address(queue="q", exchange="q", key=None, either=True)),
        ("x/a.b", Address(exchange="x", key="a.b")),
        ("x/a/b", Address(exchange="x", key="a/b")),
        ("x/", Address(exchange="x")),
        ("/queues/q", Address(queue="q")),
    ],
)
def test_a_bare_name_is_a_queue_or_an_exchange(address: str, expected: Address) -> None:
    for read in (target, source, message_to):
        assert read(address, Addressing.BARE) == expected


def test_a_leading_slash_names_nothing_in_bare_addressing() -> None:
    with pytest.raises(LinkError, match="bad_address_string"):
        target("/queue/q", Addressing.BARE)
