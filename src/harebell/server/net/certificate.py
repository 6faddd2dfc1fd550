"""The name in a client's certificate, by which SASL EXTERNAL knows the user."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

DISTINGUISHED_NAME = "distinguished_name"
"""The whole subject, as RabbitMQ writes it: the last part first, commas between."""
COMMON_NAME = "common_name"
"""The CN of the subject, and nothing else."""
LOGIN_NAMES = (DISTINGUISHED_NAME, COMMON_NAME)

_SHORT = {
    "commonName": "CN",
    "countryName": "C",
    "localityName": "L",
    "stateOrProvinceName": "ST",
    "organizationName": "O",
    "organizationalUnitName": "OU",
    "emailAddress": "EMAILADDRESS",
    "domainComponent": "DC",
    "userId": "UID",
}
_SPECIAL = frozenset(',+"\\<>;')


def login_name(certificate: Mapping[str, Any] | None, part: str) -> str:
    """The user's name in a certificate that was checked; "" for none.

    Args:
        certificate: as `ssl.SSLSocket.getpeercert` gives it.
        part: DISTINGUISHED_NAME or COMMON_NAME.
    """
    subject = (certificate or {}).get("subject", ())
    if part == COMMON_NAME:
        names = [v for group in subject for name, v in group if name == "commonName"]
        return names[-1] if names else ""
    return ",".join(
        "+".join(f"{_SHORT.get(name, name)}={_escaped(value)}" for name, value in group)
        for group in reversed(subject)
    )


def _escaped(value: str) -> str:
    """A value as RFC 4514 writes it."""
    escaped = "".join(f"\\{letter}" if letter in _SPECIAL else letter for letter in value)
    if escaped.startswith(("#", " ")):
        escaped = "\\" + escaped
    if len(value) > 1 and escaped.endswith(" "):
        escaped = escaped[:-1] + "\\ "
    return escaped
