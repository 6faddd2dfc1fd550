"""The keys that tokens are verified with: from files, and from an authorization server.

    auth_oauth2_signing_keys    PEM files by the id of their key
    auth_oauth2_jwks_url        a set of JSON web keys (RFC 7517)
    auth_oauth2_issuer          whose metadata name such a set (OpenID Connect Discovery 1.0)

The set is read when a token names a key that is not known, and replaces the one before if it has a
usable key: a server that answers with an error or an empty set takes no key away. At most one
request is under way, and unknown keys cause one each `KEYS_SECONDS`, so that made-up tokens do not
become requests.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any

import jwt

from harebell.management.backends.contract import Log
from harebell.management.backends.web_client import WebClient, WebError
from harebell.management.limits import KEYS_SECONDS

_OK = 200


class UnknownKey(Exception):
    """There is no such key.

    Args:
        why: for the log.
        failed: whether the set of keys could not be read.
    """

    def __init__(self, why: str, *, failed: bool = False) -> None:
        super().__init__(why)
        self.failed = failed


class SigningKeys:
    """Finds keys.

    Args:
        keys: the keys of the configuration, by id.
        default: the id for tokens that name none; "" for none.
        jwks_url: where the set of keys is; "" for none.
        discovery_url: where metadata name it, if jwks_url is "".
        client: sends requests.
        log: writes to the log.
        clock: returns seconds, monotonic.
    """

    def __init__(
        self,
        keys: Mapping[str, jwt.PyJWK],
        default: str,
        jwks_url: str,
        discovery_url: str,
        client: WebClient,
        log: Log,
        clock: Callable[[], float],
    ) -> None:
        self._fixed = dict(keys)
        self._default = default
        self._jwks_url = jwks_url
        self._discovery_url = discovery_url
        self._client = client
        self._log = log
        self._clock = clock
        self._published: dict[str, jwt.PyJWK] = {}
        self._next = 0.0
        self._reading: asyncio.Task[None] | None = None
        self._failure = ""

    async def get(self, name: Any) -> jwt.PyJWK:
        """Return the key of a token.

        Args:
            name: its `kid`; None if it names none.

        Raises:
            UnknownKey: there is none.
        """
        if not isinstance(name, str) or not name:
            name = self._default
        key = self._known(name)
        if key is None and (self._jwks_url or self._discovery_url):
            await self._read_again()
            key = self._known(name)
            if key is None and self._failure:
                raise UnknownKey(f"the keys cannot be read: {self._failure}", failed=True)
        if key is None:
            raise UnknownKey("key_not_found")
        return key

    def _known(self, name: str) -> jwt.PyJWK | None:
        key = self._fixed.get(name) or self._published.get(name)
        if key is None and not name and len(self._published) == 1 and not self._fixed:
            # A token that names no key, and a set of one key.
            key = next(iter(self._published.values()))
        return key

    async def _read_again(self) -> None:
        """Read the set of keys, or wait until it is read."""
        if self._reading is None:
            if self._clock() < self._next:
                return
            self._reading = asyncio.get_running_loop().create_task(self._read())
        try:
            await asyncio.shield(self._reading)
        finally:
            if self._reading is not None and self._reading.done():
                self._reading = None

    async def _read(self) -> None:
        try:
            if not self._jwks_url:
                metadata = await self._json(self._discovery_url)
                address = metadata.get("jwks_uri")
                if not isinstance(address, str) or not address.startswith(("http://", "https://")):
                    raise WebError(f"{self._discovery_url} has no jwks_uri")
                self._jwks_url = address
            keys = _keys_of(await self._json(self._jwks_url))
            if not keys:
                raise WebError(f"{self._jwks_url} has no key that tokens can be verified with")
            self._published = keys
            self._failure = ""
            self._log("info", f"keys of {self._jwks_url}: {', '.join(sorted(keys))}")
        except WebError as error:
            self._failure = str(error)
            self._log("error", f"the keys for OAuth 2 tokens cannot be read: {error}")
        self._next = self._clock() + KEYS_SECONDS

    async def _json(self, url: str) -> dict[str, Any]:
        try:
            answer = await self._client.get(url)
        except WebError as error:
            raise WebError(f"{url}: {error}") from None
        if answer.status != _OK:
            raise WebError(f"{url}: status {answer.status}")
        try:
            document = json.loads(answer.body)
        except ValueError:
            document = None
        if not isinstance(document, dict):
            raise WebError(f"{url}: the answer is no JSON object")
        return document


def _keys_of(document: dict[str, Any]) -> dict[str, jwt.PyJWK]:
    """Return the usable keys of a set; others are for other purposes or of newer kinds."""
    keys: dict[str, jwt.PyJWK] = {}
    rows = document.get("keys")
    for row in rows if isinstance(rows, list) else []:
        # A secret has no place in a published set: its readers could sign with it.
        if not isinstance(row, dict) or row.get("use", "sig") != "sig" or row.get("kty") == "oct":
            continue
        try:
            key = jwt.PyJWK(row, None if "alg" in row else _algorithm(row))
        except jwt.PyJWTError:
            continue
        keys[str(row.get("kid", ""))] = key
    return keys


def _algorithm(row: dict[str, Any]) -> str | None:
    """Return an algorithm that fits a key which names none."""
    return {"RSA": "RS256", "OKP": "EdDSA"}.get(str(row.get("kty")))


def key_of_pem(data: bytes) -> jwt.PyJWK:
    """Return the public key, or the certificate's, of a PEM file.

    Raises:
        ValueError: it is neither.
    """
    from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, rsa
    from cryptography.hazmat.primitives.serialization import load_pem_public_key
    from cryptography.x509 import load_pem_x509_certificate
    from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

    certificate = b"BEGIN CERTIFICATE" in data
    public: object = (
        load_pem_x509_certificate(data).public_key() if certificate else load_pem_public_key(data)
    )
    if isinstance(public, rsa.RSAPublicKey):
        row = RSAAlgorithm.to_jwk(public, as_dict=True)
    elif isinstance(public, ec.EllipticCurvePublicKey):
        row = ECAlgorithm.to_jwk(public, as_dict=True)
    elif isinstance(public, ed25519.Ed25519PublicKey | ed448.Ed448PublicKey):
        row = OKPAlgorithm.to_jwk(public, as_dict=True)
    else:
        raise ValueError("it is no key of RSA, of an elliptic curve or of EdDSA")
    return jwt.PyJWK(row, _algorithm(row))
