"""SASLprep (RFC 4013): normalise passwords before SCRAM hashes them.

A password with forbidden characters is not changed, so that its user can log in. Code points that
Unicode 3.2 does not have are accepted for the same reason, as other clients do.
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
    """Return a password in normalised form."""
    mapped = "".join(
        " " if stringprep.in_table_c12(letter) else letter
        for letter in password
        if not stringprep.in_table_b1(letter)
    )
    normal = unicodedata.ucd_3_2_0.normalize("NFKC", mapped)
    return (normal if _is_allowed(normal) else password).encode()


def _is_allowed(text: str) -> bool:
    """True if it has no forbidden characters and is consistently right to left, if at all."""
    if any(forbids(letter) for letter in text for forbids in _FORBIDDEN):
        return False
    if not any(map(stringprep.in_table_d1, text)):
        return True
    if any(map(stringprep.in_table_d2, text)):
        return False
    return stringprep.in_table_d1(text[0]) and stringprep.in_table_d1(text[-1])
