"""Signing in to the web interface at an issuer of tokens: OpenID Connect, by code with PKCE.

The page itself goes to the issuer and gets the tokens (RFC 6749 4.1, RFC 7636), as a client without
a secret; its addresses for coming back are those of RabbitMQ's page. The broker says where to sign
in, lets the content policy of the page reach these servers, and checks tokens as it always does.

    GET /api/auth                              where to sign in, for pages; as on RabbitMQ
    GET /js/oidc-oauth/login-callback.html     the issuer sends the browser back here
    GET /js/oidc-oauth/logout-callback.html    and here
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from harebell.management.http.answer import JSON, Answer
from harebell.management.http.errors import bad_request
from harebell.management.json_rows import encode

if TYPE_CHECKING:
    from harebell.config import Config

_DISCOVERY = ".well-known/openid-configuration"
_ORIGIN = re.compile(r"https?://[\w.\-\[\]:]+", re.ASCII)
_PRINTABLE = re.compile(r"[!-~]*")
_BACK: dict[tuple[str, ...], str] = {
    ("js", "oidc-oauth", "login-callback.html"): "../../#/login-callback?",
    ("js", "oidc-oauth", "logout-callback.html"): "../../#/overview?",
}


class SignIn:
    """Where the web interface signs in, if it does.

    Args:
        config: the configuration.

    Attributes:
        settings: what the page has to know, with the names of RabbitMQ's `GET /api/auth`.
        origins: the servers that the page asks: those of the metadata and of tokens.
    """

    def __init__(self, config: Config) -> None:
        self.settings: dict[str, Any] = {"oauth_enabled": False}
        self.origins: tuple[str, ...] = ()
        issuer = config.management_oauth_provider_url or config.auth_oauth2_issuer
        metadata = config.management_oauth_metadata_url
        if issuer and not metadata:
            metadata = f"{issuer.rstrip('/')}/{_DISCOVERY}"
        sign_in = config.auth_oauth2_authorization_endpoint
        tokens = config.auth_oauth2_token_endpoint
        known = metadata or (sign_in and tokens)
        if not (config.management_oauth_enabled and config.management_oauth_client_id and known):
            return
        self.settings = {
            "oauth_enabled": True,
            "oauth_disable_basic_auth": config.management_oauth_disable_basic_auth,
            "oauth_client_id": config.management_oauth_client_id,
            "oauth_scopes": config.management_oauth_scopes,
            "oauth_resource_id": config.auth_oauth2_resource_server_id,
            "oauth_provider_url": issuer,
            "oauth_metadata_url": metadata,
            "oauth_authorization_endpoint": sign_in,
            "oauth_token_endpoint": tokens,
            "oauth_end_session_endpoint": config.auth_oauth2_end_session_endpoint,
            "oauth_authorization_endpoint_params": config.auth_oauth2_authorization_endpoint_params,
            "oauth_token_endpoint_params": config.auth_oauth2_token_endpoint_params,
        }
        origins = [_origin(each) for each in (metadata, tokens) if each]
        self.origins = tuple(dict.fromkeys(filter(None, origins)))

    def answer(self, segments: list[str], query: bytes) -> Answer | None:
        """Answer a path of this module; None for all other paths.

        Args:
            segments: the path.
            query: the query string, as it was sent.

        Raises:
            HttpError: 400, the query has characters that no address has.
        """
        if segments == ["api", "auth"]:
            return Answer(200, (JSON,), (encode(self.settings),))
        back = _BACK.get(tuple(segments))
        if back is None:
            return None
        # In the fragment it is sent to no server again, and is in no log.
        text = query.decode("latin-1")
        if not _PRINTABLE.fullmatch(text):
            raise bad_request("the query has characters that have to be percent-encoded")
        return Answer(302, (("location", back + text), ("referrer-policy", "no-referrer")))


def _origin(address: str) -> str:
    """The server of an address, as a content policy names it; "" if it has other characters."""
    parts = urlsplit(address)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    origin = f"{parts.scheme}://{host}" + (f":{parts.port}" if parts.port else "")
    return origin if _ORIGIN.fullmatch(origin) else ""
