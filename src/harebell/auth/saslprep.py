"""SASLprep (RFC 4013): the one spelling of a password that both sides of SCRAM hash.

What the profile forbids stays as it is, so that a user with such a password can log in: nobody
else writes it in two ways. Code points that Unicode 3.2 does not have are let through for the same
reason, as clients do that send what a user types today.
"""

from __future__ import annotations

import stringprep
import unicodedata

_FORBIDDEN = (
    stringprep.in_table_c12,
    stringprep.in_table_c21_c22,
    stringprep.in_table_c3,
    stringprep.in_table_c4,
    stringprep.in_table_c5,
    stringprep.in_table_c6,
    stringprep.in_table_c7,
    stringprep.in_table_c8,
    stringprep.in_table_c9,
)


def prepared(password: str) -> bytes:
    """A password in the form that is hashed."""
    mapped = "".join(
        " " if stringprep.in_table_c12(letter) else letter
        for letter in password
        if not stringprep.in_table_b1(letter)
    )
    normal = unicodedata.ucd_3_2_0.normalize("NFKC", mapped)
    return (normal if _is_allowed(normal) else password).encode()


def _is_allowed(text: str) -> bool:
    """Whether nothing in it is forbidden; texts from right to left are so from end to end."""
    if any(forbids(letter) for letter in text for forbids in _FORBIDDEN):
        return False
    if not any(map(stringprep.in_table_d1, text)):
        return True
    if any(map(stringprep.in_table_d2, text)):
        return False
    return stringprep.in_table_d1(text[0]) and stringprep.in_table_d1(text[-1])
