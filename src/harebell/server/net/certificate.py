"""Get the user name for SASL EXTERNAL from a client certificate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

DISTINGUISHED_NAME = "distinguished_name"
"""The whole subject in RabbitMQ's format: the last part first, separated by commas."""
COMMON_NAME = "common_name"
"""Only the CN of the subject."""
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
    """Return the user name in a verified certificate; "" if there is none.

    Args:
        certificate: the result of `ssl.SSLSocket.getpeercert`.
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
    """Escape a value as in RFC 4514."""
    escaped = "".join(f"\\{letter}" if letter in _SPECIAL else letter for letter in value)
    if escaped.startswith(("#", " ")):
        escaped = "\\" + escaped
    if len(value) > 1 and escaped.endswith(" "):
        escaped = escaped[:-1] + "\\ "
    return escaped
