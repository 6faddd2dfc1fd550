"""A real authorization server as far as a broker sees one: signed tokens, and keys over HTTP."""

from __future__ import annotations

import json
import time
from http.server import BaseHTTPRequestHandler
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

from tests.unit.management.backends.local_server import LocalServer, QuietHandler

RESOURCE = "rabbitmq"
EVERYTHING = "rabbitmq.configure:*/* rabbitmq.write:*/* rabbitmq.read:*/*"


class AuthorizationServer(LocalServer):
    """Signs tokens, and publishes its keys.

    Attributes:
        keys: the private keys by id, with the algorithm of each.
        published: the ids of the keys in the set.
        read: the paths that were asked for.
        status: the status code of its answers.
    """

    def __init__(self) -> None:
        self.keys: dict[str, tuple[Any, str]] = {
            "rsa": (rsa.generate_private_key(65537, 2048), "RS256"),
            "ec": (ec.generate_private_key(ec.SECP256R1()), "ES256"),
            "ed": (ed25519.Ed25519PrivateKey.generate(), "EdDSA"),
        }
        self.published = ["rsa", "ec", "ed"]
        self.read: list[str] = []
        self.status = 200
        server = self

        class Handler(QuietHandler, BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                server.read.append(self.path)
                self.answer(server.status, json.dumps(server.document(self.path)))

        super().__init__(Handler)
        self.issuer = f"http://127.0.0.1:{self.port}/realm"

    def document(self, path: str) -> dict[str, Any]:
        """What is at a path."""
        if path == "/realm/.well-known/openid-configuration":
            return {"issuer": self.issuer, "jwks_uri": f"{self.issuer}/keys"}
        return {"keys": [self.public(name) for name in self.published]}

    def public(self, name: str) -> dict[str, Any]:
        """A public key, as a set has it."""
        key, algorithm = self.keys[name]
        kinds: dict[str, Any] = {
            "RS256": RSAAlgorithm,
            "ES256": ECAlgorithm,
            "EdDSA": OKPAlgorithm,
        }
        row = dict(kinds[algorithm].to_jwk(key.public_key(), as_dict=True))
        return {**row, "kid": name, "alg": algorithm, "use": "sig"}

    def pem(self, name: str) -> bytes:
        """A public key, as a PEM file has it."""
        public = self.keys[name][0].public_key()
        return bytes(public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))

    def token(
        self, scope: Any = EVERYTHING, *, key: str = "rsa", seconds: float = 300, **claims: Any
    ) -> str:
        """A signed token; a claim that is None is left out."""
        private, algorithm = self.keys[key]
        all_claims = {
            "iss": self.issuer,
            "aud": RESOURCE,
            "sub": "ada",
            "exp": int(time.time() + seconds),
            "scope": scope,
            **claims,
        }
        payload = {name: value for name, value in all_claims.items() if value is not None}
        return jwt.encode(payload, private, algorithm, {"kid": key})
