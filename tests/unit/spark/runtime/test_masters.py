"""What a master says about a session."""

from __future__ import annotations

import socket

import pytest

from harebell.spark.runtime.java import SessionError
from harebell.spark.runtime.masters import master_of
from tests.ports import free_port


@pytest.mark.parametrize("url", ["local", "local[4]", "local[*]", "local[2,4]", " local[*, 3] "])
def test_threads_of_the_driver_are_here(url: str) -> None:
    master = master_of(url)
    assert master.threads
    assert master.here
    assert not master.connect
    assert master.url == url.strip()


@pytest.mark.parametrize(
    ("url", "here"),
    [
        ("local-cluster[2,1,1024]", True),
        ("spark://127.0.0.1:7077", True),
        ("spark://localhost:7077", True),
        ("spark://[::1]:7077", True),
        ("spark://big.example:7077", False),
        ("spark://a:7077,b:7077", False),
        ("yarn", False),
        ("k8s://https://big.example:443", False),
    ],
)
def test_a_cluster_runs_other_processes_here_or_elsewhere(url: str, here: bool) -> None:
    master = master_of(url)
    assert not master.threads
    assert master.here is here
    assert not master.connect


@pytest.mark.parametrize("url", ["sc://big.example", "sc://127.0.0.1:15002/;token=x"])
def test_spark_connect_is_told_by_its_scheme(url: str) -> None:
    assert master_of(url).connect


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("spark://big.example:7077", ("big.example", 7077)),
        ("sc://h:15002", ("h", 15002)),
        ("k8s://https://big.example:443", ("big.example", 443)),
        ("spark://a:7077,b:7078", ("a", 7077)),
        ("yarn", None),
        ("local[2]", None),
    ],
)
def test_a_master_that_listens_says_where(url: str, address: tuple[str, int] | None) -> None:
    assert master_of(url).address == address


@pytest.mark.parametrize("url", ["", "locale", "local[0]", "local[x]", "sprk://h:1", "mesos://h:1"])
def test_an_invalid_master_is_refused_with_the_valid_ones(url: str) -> None:
    with pytest.raises(
        SessionError, match=r"unknown master .*: use local\[\*\], spark://HOST:PORT"
    ):
        master_of(url)


def test_a_standalone_master_needs_its_port() -> None:
    with pytest.raises(SessionError, match="'spark://big' has no port: write spark://HOST:7077"):
        master_of("spark://big")


def test_a_master_that_does_not_answer_is_told_at_once_and_without_its_token() -> None:
    """Spark itself would try for a minute, and Spark Connect for ten."""
    # Nobody else listens there afterwards.
    port = free_port()
    with socket.create_server(("127.0.0.1", port)):
        master_of(f"spark://127.0.0.1:{port}").check_answers()
        # One of several masters is enough.
        master_of(f"spark://127.0.0.1:1,127.0.0.1:{port}").check_answers()
    for url in (f"spark://127.0.0.1:{port}", f"sc://127.0.0.1:{port}/;token=s3cret"):
        with pytest.raises(SessionError) as caught:
            master_of(url).check_answers()
        assert f"does not answer at 127.0.0.1:{port}: Connection refused" in str(caught.value)
        assert "s3cret" not in str(caught.value)
    master_of("local[2]").check_answers()
