"""Where the broker is and as whom, said for reading and for writing in the same way."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from harebell.client.url import URL
from harebell.spark.options.sink_options import parse_sink
from harebell.spark.options.source_options import parse
from harebell.spark.options.values import OptionError

NOTHING: dict[str, str] = {}
SECRET = "hunter2"

Read = Callable[..., URL]


def reading(**given: str) -> URL:
    options = parse({"queue": "q", **given}, NOTHING)
    assert SECRET not in repr(options)
    return options.url


def writing(**given: str) -> URL:
    options = parse_sink(given, NOTHING)
    assert SECRET not in repr(options)
    return options.url


@pytest.fixture(params=[reading, writing])
def address(request: pytest.FixtureRequest) -> Read:
    """The address that the options of reading, or of writing, make."""
    made: Read = request.param
    return made


def test_single_options_count_more_than_the_address(address: Read, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text(SECRET + "\n")
    url = address(
        url="amqps://bob:other@there/v", username="alice", passwordFile=str(secret), vhost="w"
    )
    assert (url.username, url.password, url.host, url.vhost) == ("alice", SECRET, "there", "w")
    assert address(password=SECRET).password == SECRET


def test_the_files_of_tls_are_taken_for_an_encrypted_address(address: Read) -> None:
    files = {"cacertfile": "/ca.pem", "certfile": "/me.pem", "keyfile": "/me.key"}
    url = address(url="amqps://there", **files)
    assert {"cacertfile": url.cacertfile, "certfile": url.certfile, "keyfile": url.keyfile} == files


@pytest.mark.parametrize("name", ["cacertfile", "certfile", "keyfile"])
def test_the_files_of_tls_need_an_encrypted_address(address: Read, name: str) -> None:
    with pytest.raises(OptionError, match=f"^the option {name} belongs to TLS: the url must begin"):
        address(url="amqp://there", **{name: "/a.pem"})


def test_a_key_needs_its_certificate(address: Read) -> None:
    with pytest.raises(OptionError, match=r"^the option keyfile needs the option certfile: "):
        address(url="amqps://there", keyfile="/me.key")
    assert address(url="amqps://there?certfile=/me.pem", keyfile="/me.key").keyfile == "/me.key"


def test_a_password_is_given_once(address: Read, tmp_path: Path) -> None:
    with pytest.raises(OptionError) as caught:
        address(password=SECRET, passwordFile=str(tmp_path / "secret"))
    assert str(caught.value) == "the options password and passwordFile exclude each other"


def test_a_file_with_a_password_can_be_read(address: Read, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"^the option passwordFile cannot be read: .*No such"):
        address(passwordFile=str(tmp_path / "missing"))
    (tmp_path / "octets").write_bytes(b"\xff\xfe")
    with pytest.raises(OptionError, match=r"^the option passwordFile cannot be read: "):
        address(passwordFile=str(tmp_path / "octets"))
