"""Names of the algorithms that passwords are hashed with."""

from __future__ import annotations

from harebell.auth.password_hashes import known_algorithm
from harebell.base import hash_names


def test_every_name_is_that_of_an_algorithm() -> None:
    names = [value for name, value in vars(hash_names).items() if name.isupper()]
    assert len(names) == len(set(names)) == 4
    assert all(known_algorithm(name) for name in names)
