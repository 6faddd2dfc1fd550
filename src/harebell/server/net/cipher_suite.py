"""Read the names that OpenSSL gives cipher suites.

TLS_AES_256_GCM_SHA384         TLS 1.3: any, aes_256_gcm, aead
ECDHE-RSA-AES128-GCM-SHA256    ecdhe_rsa, aes_128_gcm, aead
ECDHE-ECDSA-CHACHA20-POLY1305  ecdhe_ecdsa, chacha20_poly1305, aead
DHE-RSA-AES256-CCM8            dhe_rsa, aes_256_ccm_8, aead
AES256-SHA256                  rsa, aes_256_cbc, sha256
"""

from __future__ import annotations

import re
from typing import NamedTuple

_TLS_1_3 = "TLS_"
_EXCHANGES = frozenset({"ECDHE", "DHE", "ADH", "AECDH", "RSA", "ECDSA", "DSS", "PSK", "SRP"})
_HASH = re.compile(r"[-_](SHA\d*|MD5)$")
_SIZED = re.compile(r"^(AES|CAMELLIA|ARIA)[-_]?(\d+)")
_WITHOUT_MODE = re.compile(r"^[a-z]+_\d+$")
_AEAD = ("gcm", "ccm", "poly1305")


class CipherSuite(NamedTuple):
    """The parts of a cipher suite, in RabbitMQ's words.

    Args:
        key_exchange: such as "ecdhe_rsa"; "any" in TLS 1.3.
        cipher: such as "aes_256_gcm".
        hash: such as "sha256"; "aead" if the cipher authenticates messages by itself.
    """

    key_exchange: str
    cipher: str
    hash: str


def cipher_suite(name: str) -> CipherSuite:
    """Return the parts of the cipher suite that OpenSSL calls `name`."""
    match = _HASH.search(name)
    digest = match.group(1).lower() if match else ""
    rest = name.removesuffix(match.group(0)) if match else name
    if rest.startswith(_TLS_1_3):
        exchange, cipher = "any", rest.removeprefix(_TLS_1_3)
    else:
        words = rest.split("-")
        split = next((n for n, word in enumerate(words) if word not in _EXCHANGES), len(words))
        exchange, cipher = "_".join(words[:split]).lower() or "rsa", "-".join(words[split:])
    cipher = _SIZED.sub(r"\1_\2", cipher).lower().replace("-", "_").replace("ccm8", "ccm_8")
    if any(mode in cipher for mode in _AEAD):
        return CipherSuite(exchange, cipher, "aead")
    # OpenSSL names no mode if it is CBC.
    return CipherSuite(exchange, f"{cipher}_cbc" if _WITHOUT_MODE.match(cipher) else cipher, digest)
