"""Who may log in, and from where."""

from __future__ import annotations

import pytest

from harebell.auth.users import User, Users, is_loopback


def users() -> Users:
    made = Users(lambda size: bytes(range(size)))
    made.add("guest", "guest", loopback_only=True, vhosts=("/",))
    made.add("app", "secret", tags=("monitoring",), vhosts=("/", "other"))
    return made


def test_the_right_password_gives_the_user() -> None:
    user = users().authenticate("app", "secret", "192.0.2.1")
    assert user is not None
    assert (user.name, user.tags, set(user.permissions)) == ("app", ("monitoring",), {"/", "other"})
    assert "secret" not in user.password_hash


@pytest.mark.parametrize(("name", "password"), [("app", "Secret"), ("nobody", "x"), ("app", "")])
def test_a_wrong_password_or_name_gives_nothing(name: str, password: str) -> None:
    assert users().authenticate(name, password, "127.0.0.1") is None


def test_a_user_without_a_hash_cannot_log_in_with_any_password() -> None:
    made = users()
    made.get("app").password_hash = ""  # type: ignore[union-attr]
    assert made.authenticate("app", "", "127.0.0.1") is None


@pytest.mark.parametrize(
    ("address", "own"),
    [
        ("127.0.0.1", True),
        ("127.8.9.10", True),
        ("::1", True),
        ("::ffff:127.0.0.1", True),
        ("", True),
        ("192.0.2.1", False),
        ("::ffff:192.0.2.1", False),
        ("1270.0.0.1", False),
    ],
)
def test_guest_may_come_from_this_machine_only(address: str, own: bool) -> None:
    assert is_loopback(address) is own
    assert (users().authenticate("guest", "guest", address) is not None) is own


def test_adding_again_replaces_the_password() -> None:
    made = users()
    made.add("app", "new")
    assert made.authenticate("app", "secret", "") is None
    assert made.authenticate("app", "new", "") is not None


def test_new_users_may_open_nothing_unless_told() -> None:
    assert User("x", "").permissions == {}
    assert users().get("no such") is None
