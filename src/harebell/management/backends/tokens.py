"""The backend `oauth2`: JSON web tokens whose scopes are permissions (`auth_oauth2`).

A client sends the token as its password; the user name is ignored. The token is verified with a key
of the configuration, or with one that the authorization server publishes. Its end ends the login;
connection.update-secret replaces it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import jwt

from harebell.auth.authority import Question
from harebell.auth.scopes import Grant, ScopeError, allows, granted, scopes_of, tags_of
from harebell.auth.users import Claim
from harebell.base.limits import NAME_BYTES
from harebell.config.auth_backends import ALGORITHMS
from harebell.management.backends.contract import Denied, Identity
from harebell.management.backends.signing_keys import SigningKeys, UnknownKey
from harebell.management.limits import TOKEN_SCOPES

_FAILED = "Authentication using an OAuth 2/JWT token failed: "
_PARTS = 3
_KINDS = {
    "RSA": ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    "EC": ("ES256", "ES384", "ES512"),
    "OKP": ("EdDSA",),
}
"""The algorithms of each type of key. A public key is none of a shared secret's (HS256)."""


@dataclass(frozen=True, slots=True)
class TokenRules:
    """What a token has to be like.

    Args:
        resource_server: the name of the broker, which the audience has to have.
        prefix: the start of its scopes.
        audience: whether the audience is checked.
        issuer: who has to have issued it; "" for anybody with a key.
        algorithms: the algorithms of signatures.
        user_claims: the claims that may name the user, in order.
        additional: paths of more claims with scopes.
        aliases: scopes by other names of them.
    """

    resource_server: str
    prefix: str
    audience: bool = True
    issuer: str = ""
    algorithms: tuple[str, ...] = ALGORITHMS
    user_claims: tuple[str, ...] = ("sub", "client_id")
    additional: tuple[str, ...] = ()
    aliases: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Token:
    """A verified token.

    Args:
        user: whom it names.
        tags: the tags that it gives.
        grants: the permissions that it gives.
        expires: when it ends, in seconds since 1970.
    """

    user: str
    tags: tuple[str, ...]
    grants: tuple[Grant, ...]
    expires: float


class TokenAuthority:
    """The permissions of a token, until it ends.

    Args:
        token: what the permissions are found in.
        verify: verifies a new one.
        wall: returns seconds since 1970.
    """

    def __init__(
        self,
        token: Token,
        verify: Callable[[str], Any],
        wall: Callable[[], float],
    ) -> None:
        self._token = token
        self._verify = verify
        self._wall = wall

    @property
    def expires(self) -> float:
        """When the token ends, in seconds since 1970."""
        return self._token.expires

    def allows(self, question: Question) -> bool:
        """True if a scope of the token allows it."""
        return self._wall() < self._token.expires and allows(self._token.grants, question)

    def settled(self) -> None:
        """Do nothing: a token decides at once."""

    async def renew(self, secret: str) -> str:
        """Use another token of the same user from now on; return why not."""
        try:
            token: Token = await self._verify(secret)
        except Denied as denied:
            return denied.why
        if token.user != self._token.user:
            return "Not allowed to change username on refreshed token"
        self._token = token
        return ""


class TokenBackend:
    """Logs in clients with tokens.

    Args:
        rules: what a token has to be like.
        keys: the keys that verify it.
        wall: returns seconds since 1970.
    """

    name = "oauth2"

    def __init__(self, rules: TokenRules, keys: SigningKeys, wall: Callable[[], float]) -> None:
        self._rules = rules
        self._keys = keys
        self._wall = wall

    async def authenticate(self, claim: Claim) -> Identity:
        """Verify the token; the identity has the user that it names."""
        token = await self.verified(claim.password or "")
        return TokenIdentity(token.user, token.tags, claim.address, token.expires, token)

    async def authorize(self, claim: Claim, name: str) -> tuple[str, ...]:
        """Verify the token of a user whom another backend has authenticated."""
        return (await self.verified(claim.password or "")).tags

    def authority(self, identity: Identity, claim: Claim) -> TokenAuthority:
        """Return what the token permits."""
        assert isinstance(identity, TokenIdentity), "oauth2 authorizes only what it authenticated"
        return TokenAuthority(identity.token, self.verified, self._wall)

    async def verified(self, text: str) -> Token:
        """Verify a token.

        Raises:
            Denied: it is wrong or has ended; the text has nothing of the token.
        """
        if text.count(".") != _PARTS - 1 or not text.isascii():
            raise Denied(f"{_FAILED}provided token is invalid")
        try:
            head = jwt.get_unverified_header(text)
            key = await self._keys.get(head.get("kid"))
            claims = self._decoded(text, key)
            scopes = self._scopes(claims)
        except jwt.ExpiredSignatureError:
            raise Denied(f"{_FAILED}Provided JWT token has expired") from None
        except jwt.MissingRequiredClaimError as error:
            raise Denied(f"{_FAILED}Provided JWT token has no {error.claim} claim") from None
        except jwt.InvalidAudienceError:
            raise Denied(f"{_FAILED}invalid_aud") from None
        except jwt.InvalidSignatureError:
            raise Denied(f"{_FAILED}signature_invalid") from None
        except jwt.PyJWTError as error:
            # The texts of these errors name claims and algorithms, and have no values.
            raise Denied(f"{_FAILED}{error}") from None
        except ScopeError as error:
            raise Denied(f"{_FAILED}{error}") from None
        except UnknownKey as error:
            raise Denied(f"{_FAILED}{error}", failed=error.failed) from None
        return Token(
            self._user(claims), tags_of(scopes), granted(scopes, claims), float(claims["exp"])
        )

    def _decoded(self, text: str, key: jwt.PyJWK) -> dict[str, Any]:
        rules = self._rules
        kinds = _KINDS.get(str(key.key_type), ())
        algorithms = [each for each in rules.algorithms if each in kinds]
        claims: dict[str, Any] = jwt.decode(
            text,
            key.key,
            algorithms,
            audience=rules.resource_server if rules.audience else None,
            issuer=rules.issuer or None,
            options={"require": ["exp"], "verify_aud": rules.audience, "verify_iat": False},
        )
        return claims

    def _scopes(self, claims: Mapping[str, Any]) -> list[str]:
        rules = self._rules
        return scopes_of(
            claims,
            resource_server=rules.resource_server,
            prefix=rules.prefix,
            additional=rules.additional,
            aliases=rules.aliases,
            limit=TOKEN_SCOPES,
        )

    def _user(self, claims: Mapping[str, Any]) -> str:
        for name in self._rules.user_claims:
            user = claims.get(name)
            if isinstance(user, str) and user:
                if len(user.encode()) > NAME_BYTES:
                    raise Denied(f"{_FAILED}the claim {name} is too long for the name of a user")
                return user
        return "unknown"


@dataclass(frozen=True, slots=True)
class TokenIdentity(Identity):
    """Who has logged in with a token.

    Args:
        token: what was presented, and verified.
    """

    token: Token = field(default=Token("", (), (), 0.0), repr=False)
