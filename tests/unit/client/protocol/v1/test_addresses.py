"""Which addresses a client uses, by what the open of a broker says of it."""

from __future__ import annotations

import pytest

from harebell.client.protocol.v1.addresses import AddressesV1, AddressesV2, addresses_of


@pytest.mark.parametrize(
    ("version", "kind"),
    [
        ("3.13.7", AddressesV1),
        ("4.0.0", AddressesV2),
        ("\u00b2.1", AddressesV2),
        ("9" * 5_000, AddressesV2),
        ("", AddressesV2),
    ],
)
def test_only_rabbitmq_before_4_gets_addresses_of_version_1(version: str, kind: type) -> None:
    assert isinstance(addresses_of({"product": "RabbitMQ", "version": version}), kind)
    assert isinstance(addresses_of({"product": "Other", "version": version}), AddressesV2)
