"""The exchange of SASL mechanisms: who is offered what, and who gets in."""

from __future__ import annotations

from typing import Any

import pytest

from harebell.auth.sasl.exchange import Context, SaslError
from harebell.auth.sasl.exchanges import (
    NAMES,
    USUAL,
    begin_exchange,
    begin_single,
    offers,
    single_offers,
)
from harebell.auth.users import User, Users


def context(address: str = "127.0.0.1") -> Context:
    users = Users(bytes)
    users.add("ann", "secret")
    users.add("local", "secret", loopback_only=True)
    return Context(users, address, bytes)


def test_plain_is_offered_to_everybody() -> None:
    assert "PLAIN" in offers(context())


def test_scram_is_offered_while_a_user_has_a_verifier() -> None:
    asked = context()
    users, scram = asked.users, ["SCRAM-SHA-256", "SCRAM-SHA-1"]

    def offered() -> list[str]:
        return [name for name in offers(asked) if name.startswith("SCRAM")]

    assert offered() == scram
    users.remove("ann")
    assert offered() == scram
    with_hash_only = users.get("local")
    assert with_hash_only is not None
    with_hash_only.verifiers = {}
    assert offered() == []
    users.put(User("imported", "hash"))
    assert offered() == []
    users.give(with_hash_only, users.derived("new"))
    assert offered() == scram
    users.remove("local")
    assert offered() == []
    users.add("local", "secret")
    assert offered() == scram


def test_whether_scram_is_offered_is_known_without_a_look_at_each_user(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    users = Users(bytes)
    for number in range(3):
        users.put(User(f"imported-{number}", "hash"))
    asked = Context(users, "127.0.0.1", bytes)
    offers(asked)
    looks: list[None] = []
    every = users.all
    monkeypatch.setattr(users, "all", lambda: looks.append(None) or every())
    users.put(User("one-more", "hash"))
    assert "SCRAM-SHA-256" not in offers(asked)
    users.add("ann", "secret")
    assert "SCRAM-SHA-256" in offers(asked)
    assert looks == []


def test_an_unknown_mechanism_has_no_exchange() -> None:
    assert begin_exchange("GSSAPI", context()) is None


@pytest.mark.parametrize(
    ("response", "address", "user"),
    [
        (b"\0ann\0secret", "10.0.0.1", "ann"),
        (b"ann\0ann\0secret", "10.0.0.1", "ann"),
        (b"\0ann\0wrong", "10.0.0.1", None),
        (b"\0nobody\0secret", "10.0.0.1", None),
        (b"\0local\0secret", "10.0.0.1", None),
        (b"\0local\0secret", "127.0.0.1", "local"),
    ],
)
def test_plain_lets_in_who_knows_the_password(
    response: bytes, address: str, user: str | None
) -> None:
    exchange = begin_exchange("PLAIN", context(address))
    assert exchange is not None
    assert exchange.step(response) is None
    assert (exchange.user.name if exchange.user else None) == user
    assert exchange.name == response.split(b"\0")[1].decode()


def test_a_response_that_is_none_of_plain_is_refused() -> None:
    exchange = begin_exchange("PLAIN", context())
    assert exchange is not None
    with pytest.raises(SaslError, match="a PLAIN response is"):
        exchange.step(b"ann")
    assert exchange.user is None


def everywhere(**changes: Any) -> Context:
    users = Users(bytes, cram=True)
    users.add("ann", "secret")
    return Context(users, "10.0.0.1", bytes, certificate="ann", anonymous="ann", **changes)


def test_the_versions_without_challenges_have_the_mechanisms_of_one_response() -> None:
    assert single_offers(context()) == ["PLAIN", "AMQPLAIN"]
    assert single_offers(everywhere()) == ["PLAIN", "AMQPLAIN", "EXTERNAL", "ANONYMOUS"]
    assert begin_single("SCRAM-SHA-256", everywhere()) is None


@pytest.mark.parametrize("mechanism", ["EXTERNAL", "ANONYMOUS"])
def test_mechanisms_let_in_the_user_of_the_certificate_or_the_settings(mechanism: str) -> None:
    exchange = begin_single(mechanism, everywhere())
    assert exchange is not None
    assert exchange.step(b"") is None
    assert exchange.user is not None
    assert exchange.user.name == "ann"


def test_all_but_cram_md5_is_usual() -> None:
    assert set(NAMES) - set(USUAL) == {"CRAM-MD5"}
    assert set(offers(everywhere())) == set(USUAL) - {"AMQPLAIN"}


def test_only_what_the_settings_name_is_there_for_anybody() -> None:
    named = everywhere(allowed=("CRAM-MD5", "AMQPLAIN"))
    assert offers(named) == ["CRAM-MD5"]
    assert single_offers(named) == ["AMQPLAIN"]
    assert begin_exchange("PLAIN", named) is None
    assert begin_single("PLAIN", named) is None


def test_a_table_is_read_where_tables_are_known() -> None:
    known = everywhere(decode_table=lambda data: {"LOGIN": "ann", "PASSWORD": data.decode()})
    for password, let_in in ((b"secret", True), (b"wrong", False)):
        exchange = begin_single("AMQPLAIN", known)
        assert exchange is not None
        exchange.step(password)
        assert (exchange.user is not None) == let_in
    elsewhere = begin_single("AMQPLAIN", everywhere())
    assert elsewhere is not None
    with pytest.raises(SaslError, match="field tables are not known here"):
        elsewhere.step(b"")


def test_a_user_without_a_password_cannot_log_in_with_one() -> None:
    users = Users(bytes)
    users.put(User("ann", ""))
    exchange = begin_single("PLAIN", Context(users, "", bytes))
    assert exchange is not None
    exchange.step(b"\0ann\0")
    assert exchange.user is None
