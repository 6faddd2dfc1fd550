"""Addresses: RabbitMQ's URI specification, and errors that name the part."""

from __future__ import annotations

import pytest

from harebell.client.url import URL, URLError

GUEST = ("guest", "guest")


@pytest.mark.parametrize(
    ("text", "user", "host", "port", "vhost"),
    [
        ("amqp://user:pass@host:10000/vhost", ("user", "pass"), "host", 10000, "vhost"),
        (
            "amqp://user%61:%61pass@ho%61st:10000/v%2fhost",
            ("usera", "apass"),
            "hoast",
            10000,
            "v/host",
        ),
        ("amqp://", GUEST, "localhost", 5672, "/"),
        ("amqp://:@/", ("", ""), "localhost", 5672, ""),
        ("amqp://user@", ("user", ""), "localhost", 5672, "/"),
        ("amqp://user:pass@", ("user", "pass"), "localhost", 5672, "/"),
        ("amqp://host", GUEST, "host", 5672, "/"),
        ("amqp://:10000", GUEST, "localhost", 10000, "/"),
        ("amqp:///vhost", GUEST, "localhost", 5672, "vhost"),
        ("amqp://host/", GUEST, "host", 5672, ""),
        ("amqp://host/%2F", GUEST, "host", 5672, "/"),
        ("amqp://[::1]", GUEST, "::1", 5672, "/"),
        ("amqp://[::1]:1234/x", GUEST, "::1", 1234, "x"),
        ("AMQP://host", GUEST, "host", 5672, "/"),
        ("amqps://host", GUEST, "host", 5671, "/"),
        ("amqps://host:5672", GUEST, "host", 5672, "/"),
        ("amqp://u:p%40ss%3A%2F@host/caf%C3%A9", ("u", "p@ss:/"), "host", 5672, "café"),
    ],
)
def test_the_parts_of_an_address_are_found_and_defaulted(
    text: str, user: tuple[str, str], host: str, port: int, vhost: str
) -> None:
    url = URL.parse(text)
    assert (url.username, url.password) == user
    assert (url.host, url.port, url.vhost) == (host, port, vhost)
    assert url.tls == text.lower().startswith("amqps")


def test_no_path_means_the_default_virtual_host_and_a_bare_slash_means_the_empty_one() -> None:
    assert URL.parse("amqp://host").vhost == "/"
    assert URL.parse("amqp://host/").vhost == ""
    assert URL.parse("amqp://host?heartbeat=5").vhost == "/"
    assert URL.parse("amqp://host/?heartbeat=5").vhost == ""


def test_parameters_set_what_they_name() -> None:
    url = URL.parse(
        "amqps://host/v?heartbeat=30&connection_timeout=2500&channel_max=12&frame_max=8192"
        "&auth_mechanism=amqplain&name=the%20biller&cacertfile=%2Fca.pem&certfile=c.pem"
        "&keyfile=k.pem&verify=verify_peer&server_name_indication=other"
    )
    assert url.heartbeat == 30
    assert url.connection_timeout == 2.5
    assert url.channel_max == 12
    assert url.frame_max == 8192
    assert url.auth_mechanism == "AMQPLAIN"
    assert url.name == "the biller"
    assert (url.cacertfile, url.certfile, url.keyfile) == ("/ca.pem", "c.pem", "k.pem")
    assert url.verify == "verify_peer"
    assert url.server_name_indication == "other"


def test_missing_parts_of_a_url_are_left_to_the_broker() -> None:
    url = URL.parse("amqp://host")
    assert url.heartbeat is None
    assert url.channel_max is None
    assert url.frame_max is None
    assert url.auth_mechanism is None
    assert url.name is None


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("host:5672", ["amqp://", "no scheme"]),
        ("http://host", ["amqp://", "'http'"]),
        ("", ["amqp://"]),
        ("amqp://host:port", ["port 'port'"]),
        ("amqp://host:0", ["port '0'", "65535"]),
        ("amqp://host:70000", ["port '70000'"]),
        ("amqp://host:٣", ["port"]),
        ("amqp://::1", ["IPv6", "brackets"]),
        ("amqp://[::1", ["IPv6", "']'"]),
        ("amqp://host/a/b", ["virtual host", "%2F"]),
        ("amqp://host/%zz", ["virtual host", "%25"]),
        ("amqp://host/%f", ["virtual host", "%25"]),
        ("amqp://host/%ff", ["virtual host", "UTF-8"]),
        ("amqp://host/" + "x" * 256, ["virtual host", "255"]),
        ("amqp://a@b@host", ["%40"]),
        ("amqp://a:b:c@host", ["%3A"]),
        ("amqp://host#x", ["%23"]),
        ("amqp://host?heartbeat=soon", ["heartbeat=soon", "65535"]),
        ("amqp://host?heartbeat=70000", ["heartbeat=70000"]),
        ("amqp://host?heartbeat=-1", ["heartbeat=-1"]),
        ("amqp://host?heartbeat", ["heartbeat", "="]),
        ("amqp://host?heartbeat=1&heartbeat=2", ["heartbeat", "twice"]),
        ("amqp://host?hartbeat=1", ["hartbeat", "did you mean heartbeat"]),
        ("amqp://host?x=1", ["'x'", "connection_timeout"]),
        ("amqp://host?connection_timeout=0", ["connection_timeout=0"]),
        ("amqp://host?frame_max=100", ["frame_max=100", "4096"]),
        ("amqp://host?auth_mechanism=plane", ["auth_mechanism=plane", "did you mean plain"]),
        ("amqp://host?name=", ["name"]),
        ("amqp://host?cacertfile=x", ["cacertfile", "amqps://"]),
        ("amqps://host?verify=verify_pear", ["verify_pear", "did you mean verify_peer"]),
        ("amqps://host?insecure=yes", ["insecure=yes", "true or false"]),
        ("amqps://host?keyfile=k", ["keyfile", "certfile"]),
    ],
)
def test_a_wrong_address_is_refused_with_the_part_and_the_mend(text: str, parts: list[str]) -> None:
    with pytest.raises(URLError) as caught:
        URL.parse(text)
    assert isinstance(caught.value, ValueError)
    for part in parts:
        assert part in str(caught.value)


def test_turning_verification_off_takes_two_words() -> None:
    with pytest.raises(URLError, match="insecure=true"):
        URL.parse("amqps://host?verify=verify_none")
    with pytest.raises(URLError, match="insecure=true"):
        URL.parse("amqps://host?verify=verify_none&insecure=false")
    for text in ("verify=verify_none&insecure=true", "insecure=true&verify=verify_none"):
        assert URL.parse(f"amqps://host?{text}").verify == "verify_none"


def test_saying_insecure_alone_leaves_verification_on() -> None:
    assert URL.parse("amqps://host?insecure=true").verify == "verify_peer"


@pytest.mark.parametrize(
    "text",
    [
        "amqp://u:s3cr%zzet@host",
        "amqp://u:s3cret%ff@host",
        "amqp://u:s3:cret@host",
        "amqp://u:s3cret@host:port",
        "amqp://u:s3@cret@host",
        "amqp://u:s3cret@host?x=1",
    ],
)
def test_no_error_shows_the_password(text: str) -> None:
    with pytest.raises(URLError) as caught:
        URL.parse(text)
    assert "s3" not in str(caught.value)


def test_printing_an_address_hides_the_password() -> None:
    url = URL.parse("amqps://alice:s3cret@[::1]:1/v")
    for shown in (repr(url), str(url), f"{url}"):
        assert "s3cret" not in shown
        assert "alice" in shown
        assert "[::1]:1" in shown


@pytest.mark.parametrize("version", ["0-8", "0-9", "0-9-1", "0-10", "0-10t", "1-0"])
@pytest.mark.parametrize("protocol", ["amqp", "amqps"])
def test_the_scheme_may_name_a_version(protocol: str, version: str) -> None:
    url = URL.parse(f"{protocol}+{version}://host")
    assert (url.version, url.tls) == (version, protocol == "amqps")
    assert URL.of(url, "0-9-1").version == "0-9-1"
    assert URL.of(f"{protocol}://host").version == "0-9-1"


def test_version_1_0_may_have_a_point() -> None:
    url = URL.parse("amqps+1.0://host")
    assert url.version == "1-0"
    assert str(url).startswith("amqps+1.0://")
    assert URL.of("amqp://host", "1.0").version == "1-0"


def test_a_version_that_does_not_exist_is_refused_with_those_that_do() -> None:
    with pytest.raises(
        URLError, match="AMQP '1-1' is unknown: use 0-8, 0-9, 0-9-1, 0-10, 0-10t, 1-0"
    ):
        URL.parse("amqp+1-1://host")
    with pytest.raises(URLError, match="AMQP '0-7' is unknown"):
        URL.of("amqp://host", "0-7")
