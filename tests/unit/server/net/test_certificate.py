"""The name in a client's certificate."""

from __future__ import annotations

from typing import Any

import pytest

from harebell.server.net.certificate import COMMON_NAME, DISTINGUISHED_NAME, login_name, validity

ANN: dict[str, Any] = {
    "subject": (
        (("countryName", "DE"),),
        (("organizationName", "Example, Inc."),),
        (("commonName", "ann"), ("userId", "17")),
    )
}


@pytest.mark.parametrize(
    ("certificate", "part", "name"),
    [
        (ANN, DISTINGUISHED_NAME, "CN=ann+UID=17,O=Example\\, Inc.,C=DE"),
        (ANN, COMMON_NAME, "ann"),
        ({"subject": ((("organizationName", "x"),),)}, COMMON_NAME, ""),
        ({"subject": ((("1.2.3", " #x "),),)}, DISTINGUISHED_NAME, "1.2.3=\\ #x\\ "),
        ({}, DISTINGUISHED_NAME, ""),
        (None, DISTINGUISHED_NAME, ""),
        (None, COMMON_NAME, ""),
    ],
)
def test_the_name_is_the_part_of_the_subject_that_was_asked_for(
    certificate: dict[str, Any] | None, part: str, name: str
) -> None:
    assert login_name(certificate, part) == name


def test_the_validity_is_two_moments_in_utc() -> None:
    found = validity(
        {"notBefore": "Jan  5 09:34:43 2026 GMT", "notAfter": "Dec 31 23:59:59 2049 GMT"}
    )
    assert found == "2026-01-05T09:34:43Z - 2049-12-31T23:59:59Z"
    assert validity({}) == ""
