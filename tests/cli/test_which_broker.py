"""One URL names the broker for every verb; the older words go on working."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from harebell.cli.verb import WrongUsage
from harebell.cli.which_broker import administered, amqp_url
from tests.cli.conftest import run_harebell
from tests.ports import free_port
from tests.running import RunningBroker, running_broker


@pytest.fixture(scope="module")
def http() -> int:
    return free_port()


@pytest.fixture(scope="module")
def served(http: int) -> Iterator[RunningBroker]:
    """A broker with an HTTP API, at a port that is not the default."""
    with running_broker("--management-port", str(http)) as broker:
        yield broker


def names(*words: str, **env: str) -> list[str]:
    result = run_harebell(*words, "--json", env=env)
    assert result.returncode == 0, result.stderr
    return [row["name"] for row in json.loads(result.stdout)]


def test_a_data_directory_is_a_url_of_every_verb(served: RunningBroker) -> None:
    where = str(served.data_dir)
    assert run_harebell("queues", "declare", "q", "--url", where).returncode == 0
    assert run_harebell("--url", where, "publish", "-r", "q", "one").returncode == 0
    assert "q" in names("queues", "list", "--url", where)
    assert "q" in names("--url", where, "queues", "list")
    assert "q" in names("queues", "list", HAREBELL_URL=where)
    assert "q" in names("queues", "list", "--data-dir", where)
    result = run_harebell("get", "-q", "q", "--json", "--url", where)
    assert json.loads(result.stdout)["body"] == "one"


@pytest.mark.parametrize("before", [False, True])
def test_a_url_of_http_is_administration(served: RunningBroker, http: int, before: bool) -> None:
    flag = ("--url", f"http://guest:guest@127.0.0.1:{http}")
    words = (*flag, "vhosts", "list") if before else ("vhosts", "list", *flag)
    assert names(*words) == ["/"]
    assert names(*("--server", flag[1]), "vhosts", "list") == ["/"]
    assert names("vhosts", "list", HAREBELL_URL=flag[1]) == ["/"]


def test_the_variable_of_publish_leaves_administration_at_the_broker_of_this_machine(
    served: RunningBroker,
) -> None:
    variables = {
        "HAREBELL_URL": f"amqp://guest:guest@127.0.0.1:{served.port}",
        "HAREBELL_DATA_DIR": str(served.data_dir),
    }
    assert names("vhosts", "list", **variables) == ["/"]


@pytest.mark.parametrize(
    ("url", "http_url", "amqp"),
    [
        ("amqp://ann:s%2F@b.example:99/v", "http://ann:s%2F@b.example", None),
        ("amqps://b.example", "https://guest:guest@b.example", None),
        ("amqp://[::1]", "http://guest:guest@[::1]", None),
        ("https://ann:x@b.example:15671/p", None, "amqps://ann:x@b.example"),
        ("http://b.example", None, "amqp://b.example"),
    ],
)
def test_a_url_of_one_protocol_names_the_other_at_the_same_host(
    url: str, http_url: str | None, amqp: str | None
) -> None:
    with click.Context(click.Command("verb")) as context:
        context.meta["harebell.url"] = url
        assert administered(None) == (http_url or url, None)
        assert administered("/data") == ("", "/data")
        assert amqp_url(None) == (amqp or url)
        assert amqp_url("amqp://own") == "amqp://own"


def test_an_invalid_url_is_a_mistake_in_the_command_line(tmp_path: Path) -> None:
    for url in ("ftp://host", "broker.example", str(tmp_path / "nowhere")):
        with pytest.raises(WrongUsage, match="--url: "):
            amqp_url(url)
    result = run_harebell("queues", "list", "--url", "ftp://host")
    assert result.returncode == 2
    assert b"Traceback" not in result.stderr
