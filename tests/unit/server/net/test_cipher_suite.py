"""Names of cipher suites."""

from __future__ import annotations

import ssl

import pytest

from harebell.server.net.cipher_suite import cipher_suite


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("TLS_AES_256_GCM_SHA384", ("any", "aes_256_gcm", "aead")),
        ("TLS_CHACHA20_POLY1305_SHA256", ("any", "chacha20_poly1305", "aead")),
        ("TLS_AES_128_CCM_8_SHA256", ("any", "aes_128_ccm_8", "aead")),
        ("ECDHE-RSA-AES128-GCM-SHA256", ("ecdhe_rsa", "aes_128_gcm", "aead")),
        ("ECDHE-ECDSA-AES256-SHA384", ("ecdhe_ecdsa", "aes_256_cbc", "sha384")),
        ("DHE-RSA-AES256-CCM8", ("dhe_rsa", "aes_256_ccm_8", "aead")),
        ("PSK-AES256-CBC-SHA384", ("psk", "aes_256_cbc", "sha384")),
        ("DHE-RSA-CAMELLIA256-SHA", ("dhe_rsa", "camellia_256_cbc", "sha")),
        ("AES128-SHA", ("rsa", "aes_128_cbc", "sha")),
        ("", ("rsa", "", "")),
    ],
)
def test_a_suite_has_a_key_exchange_a_cipher_and_a_hash(
    name: str, parts: tuple[str, str, str]
) -> None:
    assert cipher_suite(name) == parts


def test_every_suite_of_this_openssl_has_three_parts() -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_ciphers("ALL:COMPLEMENTOFALL:@SECLEVEL=0")
    for each in context.get_ciphers():
        assert all(cipher_suite(each["name"])), each["name"]
