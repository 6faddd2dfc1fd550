"""Users come back with their passwords hashed; the default one is made once."""

from __future__ import annotations

import pytest

from harebell.admin.accounts import load_users, make_default_user, save_user, user_fields
from harebell.auth.permissions import ACTIONS, Permissions
from harebell.auth.users import Users
from harebell.base.errors import StoreError
from harebell.base.hash_names import SCRYPT, SHA256, SHA512
from harebell.base.ports import Definitions
from harebell.store.log.memory import MemoryDefinitions


def loaded(definitions: Definitions, name: str = "guest", password: str = "guest") -> Users:
    users = Users(lambda size: b"s" * size)
    load_users(users, definitions)
    make_default_user(users, definitions, name, password)
    return users


def test_the_default_user_is_made_on_the_first_start_only() -> None:
    definitions = MemoryDefinitions()
    first = loaded(definitions, "orders", "secret")
    assert first.authenticate("orders", "secret", "192.0.2.1") is not None
    second = loaded(definitions, "other", "else")
    assert [user.name for user in second.all()] == ["orders"]
    found = second.authenticate("orders", "secret", "192.0.2.1")
    before = first.get("orders")
    assert found is not None
    assert before is not None
    assert user_fields(found) == user_fields(before)
    assert set(found.permissions) == {"/"}
    assert found.tags == ("administrator",)


def test_guest_comes_from_this_machine_only_after_a_restart_too() -> None:
    definitions = MemoryDefinitions()
    for _ in range(2):
        users = loaded(definitions)
        assert users.authenticate("guest", "guest", "127.0.0.1") is not None
        assert users.authenticate("guest", "guest", "192.0.2.1") is None


@pytest.mark.parametrize(
    ("name", "password", "algorithm"),
    [("guest", "guest", SHA256), ("guest", "a secret", SCRYPT), ("orders", "guest", SCRYPT)],
)
def test_only_the_well_known_login_is_fast_to_compare(
    name: str, password: str, algorithm: str
) -> None:
    (made,) = loaded(MemoryDefinitions(), name, password).all()
    assert made.algorithm == algorithm


def test_the_well_known_login_has_a_configured_fast_hash() -> None:
    users = Users(lambda size: b"s" * size, algorithm=SHA512)
    make_default_user(users, MemoryDefinitions(), "guest", "guest")
    assert [user.algorithm for user in users.all()] == [SHA512]


def test_a_new_password_of_guest_is_slow_to_compare() -> None:
    users = loaded(MemoryDefinitions())
    (guest,) = users.all()
    users.give(guest, users.derived("a secret"))
    assert guest.algorithm == SCRYPT


def test_no_password_is_written_down() -> None:
    definitions = MemoryDefinitions()
    loaded(definitions, "orders", "a long secret")
    assert "secret" not in repr(list(definitions.load("user")))


def test_a_user_without_tags_or_vhosts_comes_back_so() -> None:
    definitions = MemoryDefinitions()
    users = Users(lambda size: b"s" * size)
    save_user(users.add("plain", "x"), definitions)
    definitions.put("permission", ("/", "gone"), dict.fromkeys(ACTIONS, ""))
    (found,) = loaded(definitions).all()
    assert (found.name, found.tags, found.permissions) == ("plain", (), {})


def test_permissions_come_back_as_they_were() -> None:
    definitions = MemoryDefinitions()
    users = Users(lambda size: b"s" * size)
    user = users.add("plain", "x")
    user.permissions["/"] = Permissions("^a", "", "b$")
    save_user(user, definitions)
    (found,) = loaded(definitions).all()
    assert found.permissions == {"/": Permissions("^a", "", "b$")}


def test_a_damaged_pattern_is_told_with_its_user_and_vhost() -> None:
    definitions = MemoryDefinitions()
    users = Users(lambda size: b"s" * size)
    save_user(users.add("plain", "x"), definitions)
    fields = {"configure": "(", "write": "", "read": ""}
    definitions.put("permission", ("/", "plain"), fields)
    with pytest.raises(StoreError, match=r"user 'plain' in vhost '/' .* configure pattern '\('"):
        loaded(definitions)


def test_secrets_for_cram_md5_come_back_while_it_is_offered_and_go_with_it() -> None:
    definitions = MemoryDefinitions()
    save_user(Users(lambda size: b"s" * size, cram=True).add("ann", "secret"), definitions)
    for offered, kept in ((True, True), (False, False), (True, False)):
        users = Users(lambda size: b"s" * size, cram=offered)
        load_users(users, definitions)
        (found,) = users.all()
        assert bool(found.cram) == kept
        assert ("CRAM-MD5" in repr(list(definitions.load("user")))) == kept
        assert found.verifiers
        assert users.authenticate("ann", "secret", "127.0.0.1") is found
