"""What an address asks of TLS."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from harebell.client import tls
from harebell.client.errors import ConnectionFailed
from harebell.client.url import URL, URLError


def test_the_certificate_and_the_name_are_checked_by_default() -> None:
    context = tls.client_context(URL.parse("amqps://host"))
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname is True


def test_nothing_is_checked_only_when_the_address_says_so_aloud() -> None:
    context = tls.client_context(URL.parse("amqps://host?verify=verify_none&insecure=true"))
    assert context.verify_mode is ssl.CERT_NONE
    assert context.check_hostname is False


def test_the_name_to_check_is_the_host_or_what_the_address_says_instead() -> None:
    assert tls.server_name(URL.parse("amqps://host")) == "host"
    assert tls.server_name(URL.parse("amqps://host?server_name_indication=other")) == "other"


def test_a_file_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    broken = tmp_path / "broken.pem"
    broken.write_text("no certificate")
    missing = tmp_path / "missing.pem"
    for url in (
        URL(tls=True, cacertfile=str(broken)),
        URL(tls=True, cacertfile=str(missing)),
        URL(tls=True, certfile=str(broken)),
    ):
        name = url.cacertfile or url.certfile
        assert name is not None
        with pytest.raises(ConnectionFailed, match=Path(name).name):
            tls.client_context(url)


def test_a_context_of_the_program_is_used_instead_of_the_address() -> None:
    given = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    assert tls.chosen_context(URL.parse("amqps://host"), given) is given
    assert tls.chosen_context(URL.parse("amqp://host"), None) is None
    assert tls.chosen_context(URL.parse("amqps://host"), None) is not None


@pytest.mark.parametrize(
    ("address", "text"),
    [
        ("amqp://host", "ssl_context is given, but the address does not begin with amqps://"),
        ("amqps://host?cacertfile=ca.pem", "ssl_context and cacertfile are both given"),
        ("amqps://host?certfile=a.pem&keyfile=b.pem", "ssl_context and certfile are both given"),
        (
            "amqps://host?verify=verify_none&insecure=true",
            "ssl_context and verify=verify_none are both given",
        ),
    ],
)
def test_a_context_beside_an_address_that_says_something_else_is_refused(
    address: str, text: str
) -> None:
    with pytest.raises(URLError, match=text):
        tls.chosen_context(URL.parse(address), ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
