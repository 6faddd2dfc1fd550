"""Make the chain of backends that the configuration names; used only where it names another one.

Imported only then, for it loads what these backends need.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from harebell.auth.users import Users
from harebell.config import Config
from harebell.config.auth_backends import ALGORITHMS, CACHE, HTTP, INTERNAL, OAUTH2, split
from harebell.config.errors import ConfigError
from harebell.management.backends.cache import Cache
from harebell.management.backends.chain import Chain, Entry
from harebell.management.backends.contract import Backend, Log
from harebell.management.backends.internal import InternalBackend
from harebell.management.backends.web_client import TlsFiles, WebClient
from harebell.management.backends.web_service import WebPaths, WebService

_MS = 1_000
_KEYS_MS = 10_000
_SECRET_BYTES = 32
_Key = TypeVar("_Key")


class Backends:
    """The backends of the list, each made once.

    Args:
        config: the configuration.
        users: the users of the broker.
        log: writes to the log.
        flush: called after an answer, when connections may have output.
        clock: returns seconds, monotonic.

    Attributes:
        chain: logs users in.

    Raises:
        ConfigError: a file of TLS cannot be used, or a key is missing.
    """

    def __init__(
        self,
        config: Config,
        users: Users,
        log: Log,
        flush: Callable[[], None],
        clock: Callable[[], float],
    ) -> None:
        self._config = config
        self._users = users
        self._log = log
        self._clock = clock
        self._made: dict[str, Backend] = {}
        self._clients: list[WebClient] = []
        entries = []
        for text in config.auth_backends or ():
            authn, authz = split(text)
            entries.append(Entry(self._backend(authn), tuple(map(self._backend, authz))))
        self.chain = Chain(tuple(entries), users, log, flush)

    @property
    def tokens(self) -> bool:
        """True if tokens log in."""
        return OAUTH2 in self._made

    @property
    def local(self) -> bool:
        """True if the users of the broker may log in on their own."""
        return any(entry.local for entry in self.chain.entries)

    def close(self) -> None:
        """Drop what waits for an answer, and close the connections to servers."""
        self.chain.close()
        for client in self._clients:
            client.close()

    def _backend(self, name: str) -> Backend:
        if name not in self._made:
            make = {
                INTERNAL: self._internal,
                HTTP: self._web_service,
                CACHE: self._cache,
                OAUTH2: self._tokens,
            }
            self._made[name] = make[name]()
        return self._made[name]

    def _internal(self) -> Backend:
        return InternalBackend(self._users)

    def _web_service(self) -> Backend:
        config = self._config
        paths = WebPaths(
            config.auth_http_user_path,
            config.auth_http_vhost_path,
            config.auth_http_resource_path,
            config.auth_http_topic_path,
            posts=config.auth_http_http_method == "post",
        )
        tls = TlsFiles(
            config.auth_http_ssl_options_cacertfile,
            config.auth_http_ssl_options_certfile,
            config.auth_http_ssl_options_keyfile,
            verify=config.auth_http_ssl_options_verify == "verify_peer",
        )
        client = self._client(
            config.auth_http_connection_timeout, config.auth_http_request_timeout, tls, "auth_http"
        )
        return WebService(paths, client, self._log, self._clock)

    def _cache(self) -> Backend:
        config = self._config
        if config.auth_cache_cached_backend is None:
            raise ConfigError(
                "auth_backends has cache but auth_cache_cached_backend is not set: name what is "
                "cached, such as http"
            )
        authn, authz = split(config.auth_cache_cached_backend)
        if CACHE in (authn, *authz) or len(authz) > 1:
            raise ConfigError(
                "auth_cache_cached_backend must name one backend, or one that authenticates and "
                "one that authorizes, and not the cache itself"
            )
        return Cache(
            self._backend(authn),
            self._backend(authz[0]),
            config.auth_cache_cache_ttl / _MS,
            refusals=config.auth_cache_cache_refusals,
            secret=os.urandom(_SECRET_BYTES),
            clock=self._clock,
        )

    def _tokens(self) -> Backend:
        try:
            from harebell.management.backends.signing_keys import SigningKeys, key_of_pem
            from harebell.management.backends.tokens import TokenBackend, TokenRules
        except ImportError:
            raise ConfigError(
                "auth_backends has oauth2, which needs packages that are not installed: "
                "pip install 'PyJWT[crypto]'"
            ) from None
        config = self._config
        server = self._check_tokens()
        issuer, url = config.auth_oauth2_issuer or "", config.auth_oauth2_jwks_url or ""
        tls = TlsFiles(
            config.auth_oauth2_https_cacertfile,
            verify=config.auth_oauth2_https_peer_verification == "verify_peer",
            hostname=config.auth_oauth2_https_hostname_verification == "wildcard",
        )
        discovery = f"{issuer.rstrip('/')}/{config.auth_oauth2_discovery_endpoint_path.lstrip('/')}"
        prefix = config.auth_oauth2_scope_prefix
        return TokenBackend(
            TokenRules(
                server,
                f"{server}." if prefix is None else prefix,
                audience=config.auth_oauth2_verify_aud,
                issuer=issuer,
                algorithms=config.auth_oauth2_algorithms or ALGORITHMS,
                user_claims=(*config.auth_oauth2_preferred_username_claims, "sub", "client_id"),
                additional=config.auth_oauth2_additional_scopes_key,
                aliases=config.auth_oauth2_scope_aliases,
            ),
            SigningKeys(
                _read_keys(config.auth_oauth2_signing_keys, key_of_pem),
                config.auth_oauth2_default_key or "",
                url,
                discovery if issuer else "",
                self._client(_KEYS_MS, _KEYS_MS, tls, "auth_oauth2"),
                self._log,
                self._clock,
            ),
            time.time,
        )

    def _check_tokens(self) -> str:
        """Check the keys of OAuth 2 against each other; return the audience of the tokens.

        Raises:
            ConfigError: one is missing.
        """
        config = self._config
        server = config.auth_oauth2_resource_server_id
        if server is None:
            raise ConfigError(
                "auth_backends has oauth2 but auth_oauth2_resource_server_id is not set: name the "
                "audience of the tokens"
            )
        issuer, url = config.auth_oauth2_issuer or "", config.auth_oauth2_jwks_url or ""
        if not (issuer or url or config.auth_oauth2_signing_keys):
            raise ConfigError(
                "auth_backends has oauth2 but no key verifies tokens: set auth_oauth2_issuer, "
                "auth_oauth2_jwks_url or auth_oauth2_signing_keys"
            )
        if url.startswith("http:") or (issuer.startswith("http:") and not url):
            self._log(
                "warning", "keys for OAuth 2 tokens are read without TLS: use an https address"
            )
        return server

    def _client(self, connect_ms: int, answer_ms: int, tls: TlsFiles, group: str) -> WebClient:
        try:
            client = WebClient(connect_ms / _MS, answer_ms / _MS, tls)
        except OSError as error:
            raise ConfigError(f"the TLS files of {group} cannot be used: {error}") from None
        self._clients.append(client)
        return client


def _read_keys(paths: Mapping[str, str], key_of: Callable[[bytes], _Key]) -> dict[str, _Key]:
    """Return the public keys in files, by the names of the keys.

    Raises:
        ConfigError: a file has none.
    """
    keys = {}
    for name, path in paths.items():
        try:
            keys[name] = key_of(Path(path).read_bytes())
        except (OSError, ValueError) as error:
            raise ConfigError(
                f"auth_oauth2_signing_keys: {path} has no public key: {error}"
            ) from None
    return keys
