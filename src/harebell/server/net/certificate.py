"""Read certificates: the user name for SASL EXTERNAL, and until when they are valid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from harebell.admin.node import Certificate

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
_BEGIN, _END = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
_VERSION, _UTC_TIME, _LONG = 0xA0, 0x17, 0x80
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
    return distinguished_name(subject)


def distinguished_name(groups: Sequence[Sequence[tuple[str, str]]]) -> str:
    """Return a subject or issuer in RabbitMQ's format.

    Args:
        groups: as `ssl.SSLSocket.getpeercert` has them.
    """
    return ",".join(
        "+".join(f"{_SHORT.get(name, name)}={_escaped(value)}" for name, value in group)
        for group in reversed(groups)
    )


def validity(certificate: Mapping[str, Any]) -> str:
    """Return from when and until when a certificate is valid; "" if it does not say it.

    Args:
        certificate: the result of `ssl.SSLSocket.getpeercert`.
    """
    # Imported here, because the configuration imports this module, and the command line that.
    import ssl

    ends = [certificate[name] for name in ("notBefore", "notAfter") if name in certificate]
    seconds = [ssl.cert_time_to_seconds(each) for each in ends]
    return " - ".join(
        datetime.fromtimestamp(each, UTC).strftime("%Y-%m-%dT%H:%M:%SZ") for each in seconds
    )


def _escaped(value: str) -> str:
    """Escape a value as in RFC 4514."""
    escaped = "".join(f"\\{letter}" if letter in _SPECIAL else letter for letter in value)
    if escaped.startswith(("#", " ")):
        escaped = "\\" + escaped
    if len(value) > 1 and escaped.endswith(" "):
        escaped = escaped[:-1] + "\\ "
    return escaped


def certificates_in(path: str) -> list[Certificate]:
    """Return the certificates of a PEM file with their ends; [] if it cannot be read."""
    # Imported here, because the configuration imports this module, and the command line that.
    import ssl

    try:
        text = Path(path).read_text(encoding="ascii", errors="replace")
    except OSError:
        return []
    certificates = []
    for block in text.split(_BEGIN)[1:]:
        try:
            encoded = ssl.PEM_cert_to_DER_cert(_BEGIN + block.split(_END, 1)[0] + _END)
            certificates.append(Certificate(path, _not_after(encoded)))
        except (ValueError, IndexError):
            continue
    return certificates


def _not_after(encoded: bytes) -> int:
    """Return the end of a certificate in seconds since 1970 (RFC 5280, 4.1).

        Certificate ::= SEQUENCE { tbs SEQUENCE { [0] version OPTIONAL, serialNumber, signature,
                                                  issuer, validity SEQUENCE { notBefore, notAfter }

    Raises:
        ValueError, IndexError: it is no certificate.
    """
    _, at, _ = _element(encoded, 0)
    _, at, _ = _element(encoded, at)
    tag, _, end = _element(encoded, at)
    skipped = 3 if tag != _VERSION else 4
    for _ in range(skipped):
        _, _, at = _element(encoded, at)
    _, at, _ = _element(encoded, at)
    _, _, at = _element(encoded, at)
    tag, start, end = _element(encoded, at)
    text = encoded[start:end].decode("ascii")
    if tag == _UTC_TIME:
        text = ("20" if text < "5" else "19") + text
    moment = datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC)
    return int(moment.timestamp())


def _element(encoded: bytes, at: int) -> tuple[int, int, int]:
    """Return the tag of an element of DER, and where its content starts and ends."""
    tag, size, start = encoded[at], encoded[at + 1], at + 2
    if size & _LONG:
        width = size & ~_LONG
        size = int.from_bytes(encoded[start : start + width])
        start += width
    return tag, start, start + size
