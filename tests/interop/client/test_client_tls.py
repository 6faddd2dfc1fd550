"""amqps:// against real brokers: what is accepted, and above all what is not."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from harebell.client.errors import ConnectionFailed
from tests.interop.client.apis import Api, do, take
from tests.interop.client.brokers import Broker
from tests.interop.client.certificates import SERVER_NAME

pytestmark = pytest.mark.asyncio


def address(broker: Broker, **parameters: str) -> str:
    """The broker's TLS address."""
    query = "&".join(f"{name}={value}" for name, value in parameters.items())
    return f"amqps://guest:guest@127.0.0.1:{broker.tls_port}?{query}"


async def test_a_trusted_certificate_with_the_right_name_is_accepted(
    broker: Broker, api: Api, certificates: Path
) -> None:
    url = address(
        broker, cacertfile=str(certificates / "ca.pem"), server_name_indication=SERVER_NAME
    )
    channel = await api.channel(url)
    name = (await do(channel.declare_queue("", exclusive=True))).name
    bodies = [bytes([number]) * (number * 20_000) for number in range(12)]
    await do(channel.publish_many(bodies, routing_key=name))
    messages = await take(channel.consume(name), len(bodies))
    assert [message.body for message in messages] == bodies


async def test_an_unknown_authority_is_refused(
    broker: Broker, api: Api, certificates: Path
) -> None:
    url = address(
        broker, cacertfile=str(certificates / "stranger.pem"), server_name_indication=SERVER_NAME
    )
    with pytest.raises(ConnectionFailed, match=r"was not accepted.*cacertfile"):
        await api.connect(url)


async def test_the_systems_authorities_are_the_default_and_do_not_know_ours(
    broker: Broker, api: Api
) -> None:
    with pytest.raises(ConnectionFailed, match="was not accepted"):
        await api.connect(address(broker, server_name_indication=SERVER_NAME))


@pytest.mark.parametrize("name", [None, "other.test"])
async def test_a_certificate_for_another_name_is_refused(
    broker: Broker, api: Api, certificates: Path, name: str | None
) -> None:
    wanted = {} if name is None else {"server_name_indication": name}
    url = address(broker, cacertfile=str(certificates / "ca.pem"), **wanted)
    with pytest.raises(ConnectionFailed, match=r"was not accepted for '(127.0.0.1|other.test)'"):
        await api.connect(url)


async def test_nothing_is_checked_when_the_address_says_so_aloud(broker: Broker, api: Api) -> None:
    connection = await api.connect(address(broker, verify="verify_none", insecure="true"))
    assert connection.is_open


async def test_tls_towards_a_plain_port_is_explained(broker: Broker, api: Api) -> None:
    url = broker.url.replace("amqp://", "amqps://")
    with pytest.raises(ConnectionFailed, match=r"(?i)tls"):
        await api.connect(f"{url}?verify=verify_none&insecure=true&connection_timeout=60000")


async def test_plain_amqp_towards_a_tls_port_is_explained(broker: Broker, api: Api) -> None:
    url = f"amqp://guest:guest@127.0.0.1:{broker.tls_port}?connection_timeout=60000"
    with pytest.raises(ConnectionFailed, match="amqps://"):
        await api.connect(url)


async def test_the_programs_own_context_is_used(
    broker: Broker, api: Api, certificates: Path
) -> None:
    trusting = ssl.create_default_context(cafile=str(certificates / "ca.pem"))
    url = address(broker, server_name_indication=SERVER_NAME)
    connection = await api.connect(url, ssl_context=trusting)
    assert connection.is_open
    strange = ssl.create_default_context(cafile=str(certificates / "stranger.pem"))
    with pytest.raises(ConnectionFailed, match="was not accepted"):
        await api.connect(url, ssl_context=strange)
