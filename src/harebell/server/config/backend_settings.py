"""The configuration keys of the backends of users."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from harebell.server.config.auth_backends import ALGORITHMS, backend_entries, backend_entry
from harebell.server.config.setting import Setting
from harebell.server.config.values import (
    COUNT_MAX,
    choice,
    names,
    optional,
    pem_file,
    switch,
    text,
    texts,
    whole,
)

_MAX_MS = 600_000


def web_address(value: Any) -> str:
    """Check an address of a web server."""
    try:
        parts = urlsplit(value.strip()) if isinstance(value, str) else urlsplit("")
        fits = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        fits = False
    if not fits or not value.isprintable() or " " in value.strip() or "#" in value:
        raise ValueError("must be an address such as http://localhost:8000/auth/user")
    return str(value.strip())


def words(value: Any) -> tuple[str, ...]:
    """Parse words with blanks between them, or a list of them."""
    found = value.split() if isinstance(value, str) else value
    if isinstance(found, list | tuple) and all(isinstance(each, str) and each for each in found):
        return tuple(found)
    raise ValueError("must be words with blanks between them, such as realm_access.roles groups")


def prefix(value: Any) -> str:
    """Check the start of scopes, which may be empty."""
    if isinstance(value, str) and value.isprintable() and " " not in value:
        return value
    raise ValueError('must be text without blanks, such as rabbitmq. or ""')


def algorithms(value: Any) -> tuple[str, ...]:
    """Check algorithms of signatures."""
    allowed = f"must be of {', '.join(ALGORITHMS)}, with commas between them"
    try:
        found = names(value)
    except ValueError:
        raise ValueError(allowed) from None
    if not found or not set(found) <= set(ALGORITHMS):
        raise ValueError(allowed)
    return found


def signing_keys(value: Any) -> dict[str, str]:
    """Check a table of PEM files by the ids of their keys."""
    try:
        found = texts(value)
    except ValueError:
        raise ValueError('must be a table of PEM files such as { key-1 = "/etc/k.pem" }') from None
    return {name: pem_file(path) for name, path in found.items()}


def scope_aliases(value: Any) -> dict[str, tuple[str, ...]]:
    """Check a table of scopes by other names of them."""
    try:
        return {name: words(each) for name, each in texts(value).items()}
    except ValueError:
        raise ValueError(
            'must be a table such as { admin = "rabbitmq.tag:administrator" }'
        ) from None


_milliseconds = whole(1, _MAX_MS)

BACKEND_SETTINGS = (
    Setting(
        "auth_backends",
        backend_entries,
        "Backends of users, in the order of asking; without it internal alone.",
    ),
    Setting(
        "auth_http_http_method",
        choice("get", "post"),
        "How the backend http sends its questions; post keeps passwords out of addresses.",
    ),
    Setting("auth_http_user_path", web_address, "Where it asks about users and passwords."),
    Setting(
        "auth_http_vhost_path", web_address, "Where it asks whether a user may open a virtual host."
    ),
    Setting("auth_http_resource_path", web_address, "Where it asks about queues and exchanges."),
    Setting(
        "auth_http_topic_path", web_address, "Where it asks about routing keys at topic exchanges."
    ),
    Setting("auth_http_request_timeout", _milliseconds, "Milliseconds that an answer may take."),
    Setting(
        "auth_http_connection_timeout",
        _milliseconds,
        "Milliseconds that a connection to it may take.",
    ),
    Setting(
        "auth_http_ssl_options_cacertfile",
        optional(pem_file),
        "PEM file with authorities that verify it; none for those of the system.",
    ),
    Setting(
        "auth_http_ssl_options_certfile",
        optional(pem_file),
        "PEM file with the certificate that is shown to it.",
    ),
    Setting(
        "auth_http_ssl_options_keyfile",
        optional(pem_file),
        "PEM file with the key of that certificate.",
    ),
    Setting(
        "auth_http_ssl_options_verify",
        choice("verify_peer", "verify_none"),
        "Whether its certificate is verified.",
    ),
    Setting(
        "auth_cache_cached_backend",
        backend_entry,
        "What the backend cache remembers the answers of, such as http or internal/http.",
    ),
    Setting(
        "auth_cache_cache_ttl",
        whole(1, COUNT_MAX),
        "For how many milliseconds it remembers them.",
    ),
    Setting("auth_cache_cache_refusals", switch, "Whether it remembers refusals, too."),
    Setting(
        "auth_oauth2_resource_server_id",
        optional(text),
        "Name of the broker as a resource server: the audience of OAuth 2 tokens.",
    ),
    Setting(
        "auth_oauth2_scope_prefix",
        optional(prefix),
        "Start of its scopes; without it the name of the resource server with a dot.",
    ),
    Setting(
        "auth_oauth2_additional_scopes_key",
        words,
        "Claims beside scope that have scopes, such as realm_access.roles.",
    ),
    Setting(
        "auth_oauth2_preferred_username_claims",
        names,
        "Claims that name the user, before sub and client_id.",
    ),
    Setting(
        "auth_oauth2_verify_aud", switch, "Whether the audience of a token (claim aud) is checked."
    ),
    Setting(
        "auth_oauth2_issuer",
        optional(web_address),
        "Who has to have issued tokens (claim iss); its metadata name the keys.",
    ),
    Setting(
        "auth_oauth2_discovery_endpoint_path",
        prefix,
        "Where below the issuer its metadata are.",
    ),
    Setting(
        "auth_oauth2_jwks_url",
        optional(web_address),
        "Where the keys are that verify tokens; without it the metadata say so.",
    ),
    Setting(
        "auth_oauth2_signing_keys",
        signing_keys,
        "PEM files with public keys or certificates, by the kid of tokens.",
    ),
    Setting(
        "auth_oauth2_default_key",
        optional(text),
        "Id of the key for tokens without kid.",
    ),
    Setting(
        "auth_oauth2_algorithms",
        algorithms,
        "Algorithms of signatures that are accepted; without it all.",
    ),
    Setting(
        "auth_oauth2_scope_aliases",
        scope_aliases,
        "Scopes by other names of them, such as names of roles.",
    ),
    Setting(
        "auth_oauth2_https_cacertfile",
        optional(pem_file),
        "PEM file with authorities that verify the server of the keys.",
    ),
    Setting(
        "auth_oauth2_https_peer_verification",
        choice("verify_peer", "verify_none"),
        "Whether the certificate of that server is verified.",
    ),
    Setting(
        "auth_oauth2_https_hostname_verification",
        choice("wildcard", "none"),
        "Whether the certificate has to have its name; wildcard allows *.example.com.",
    ),
    Setting(
        "management_oauth_enabled",
        switch,
        "Whether the HTTP API is meant for OAuth 2 tokens.",
    ),
    Setting(
        "management_oauth_disable_basic_auth",
        switch,
        "With management_oauth_enabled: whether it accepts tokens alone, no HTTP Basic.",
    ),
)

BACKEND_KEYS = {
    "auth_cache.cache_refusals": "auth_cache_cache_refusals",
    "auth_cache.cache_ttl": "auth_cache_cache_ttl",
    "auth_http.connection_timeout": "auth_http_connection_timeout",
    "auth_http.http_method": "auth_http_http_method",
    "auth_http.request_timeout": "auth_http_request_timeout",
    "auth_http.resource_path": "auth_http_resource_path",
    "auth_http.ssl_options.cacertfile": "auth_http_ssl_options_cacertfile",
    "auth_http.ssl_options.certfile": "auth_http_ssl_options_certfile",
    "auth_http.ssl_options.keyfile": "auth_http_ssl_options_keyfile",
    "auth_http.ssl_options.verify": "auth_http_ssl_options_verify",
    "auth_http.topic_path": "auth_http_topic_path",
    "auth_http.user_path": "auth_http_user_path",
    "auth_http.vhost_path": "auth_http_vhost_path",
    "auth_oauth2.additional_scopes_key": "auth_oauth2_additional_scopes_key",
    "auth_oauth2.default_key": "auth_oauth2_default_key",
    "auth_oauth2.discovery_endpoint_path": "auth_oauth2_discovery_endpoint_path",
    "auth_oauth2.https.cacertfile": "auth_oauth2_https_cacertfile",
    "auth_oauth2.https.hostname_verification": "auth_oauth2_https_hostname_verification",
    "auth_oauth2.https.peer_verification": "auth_oauth2_https_peer_verification",
    "auth_oauth2.issuer": "auth_oauth2_issuer",
    "auth_oauth2.jwks_uri": "auth_oauth2_jwks_url",
    "auth_oauth2.jwks_url": "auth_oauth2_jwks_url",
    "auth_oauth2.resource_server_id": "auth_oauth2_resource_server_id",
    "auth_oauth2.scope_prefix": "auth_oauth2_scope_prefix",
    "auth_oauth2.verify_aud": "auth_oauth2_verify_aud",
    "management.oauth_disable_basic_auth": "management_oauth_disable_basic_auth",
    "management.oauth_enabled": "management_oauth_enabled",
}
"""The keys of `rabbitmq.conf` whose values are read as they are."""
