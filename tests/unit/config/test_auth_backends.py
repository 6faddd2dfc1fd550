"""A broker whose configured backends of users are missing does not start with other users."""

from __future__ import annotations

from pathlib import Path

import pytest

from harebell.config import Config, ConfigError, Configuration, read_configuration


def read(directory: Path, text: str, advanced: str = "") -> Configuration:
    (directory / "rabbitmq.conf").write_text(text)
    if advanced:
        (directory / "advanced.config").write_text(advanced)
    return read_configuration({}, {}, directory)


@pytest.mark.parametrize(
    "text",
    [
        "auth_backends.1 = internal",
        "auth_backends.1 = rabbit_auth_backend_internal",
        "auth_backends.1.authn = internal\nauth_backends.1.authz = internal",
    ],
)
def test_the_internal_backend_starts_without_a_warning(tmp_path: Path, text: str) -> None:
    found = read(tmp_path, text + "\n")
    assert (found.config, found.warnings) == (Config(), [])


@pytest.mark.parametrize(
    ("text", "entries", "cached"),
    [
        ("auth_backends.1 = http", ("http",), None),
        ("auth_backends.1 = rabbit_auth_backend_http", ("http",), None),
        ("auth_backends.2 = internal\nauth_backends.1 = http", ("http", "internal"), None),
        (
            "auth_backends.1.authn = internal\nauth_backends.1.authz = http",
            ("internal/http",),
            None,
        ),
        ("auth_backends.1 = cache\nauth_cache.cached_backend = http", ("cache",), "http"),
        (
            "auth_backends.1 = cache\nauth_cache.cached_backend.authn = internal\n"
            "auth_cache.cached_backend.authz = rabbit_auth_backend_http",
            ("cache",),
            "internal/http",
        ),
    ],
)
def test_backends_are_asked_in_the_order_of_their_numbers(
    tmp_path: Path, text: str, entries: tuple[str, ...], cached: str | None
) -> None:
    found = read(tmp_path, text + "\n")
    assert found.config.auth_backends == entries
    assert found.config.auth_cache_cached_backend == cached
    assert found.warnings == []


@pytest.mark.parametrize(
    ("text", "entries"),
    [
        ("http", ("http",)),
        ("http, internal", ("http", "internal")),
        ("internal/http+cache", ("internal/http+cache",)),
        ("http/http", ("http",)),
    ],
)
def test_the_environment_has_them_with_commas(text: str, entries: tuple[str, ...]) -> None:
    environ = {"HAREBELL_AUTH_BACKENDS": text}
    assert read_configuration({}, environ).config.auth_backends == entries


@pytest.mark.parametrize("text", ["", "ldap", "http,", "internal/", "internal/ldap", "/http"])
def test_a_list_of_unknown_backends_is_an_error(text: str) -> None:
    with pytest.raises(ConfigError, match="HAREBELL_AUTH_BACKENDS must be"):
        read_configuration({}, {"HAREBELL_AUTH_BACKENDS": text})


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("auth_http.user_path", "localhost/auth", "must be an address"),
        ("auth_http.user_path", "ftp://localhost/auth", "must be an address"),
        ("auth_http.user_path", "http://[::1/auth", "must be an address"),
        ("auth_http.http_method", "put", "get"),
        ("auth_http.request_timeout", "0", "600000"),
        ("auth_cache.cached_backend", "ldap", "no backend ldap"),
        ("auth_cache.cached_backend.authn", "http", "no backend without a name"),
        ("auth_cache.cached_backend.both", "http", "unknown"),
    ],
)
def test_a_wrong_value_names_the_line(tmp_path: Path, name: str, value: str, said: str) -> None:
    with pytest.raises(ConfigError) as error:
        read(tmp_path, f"{name} = {value}\n")
    assert f"rabbitmq.conf, line 1: {name}" in str(error.value)
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        ("auth_backends.1 = ldap", "auth_backends.1", "no LDAP backend"),
        (
            "auth_backends.1.authn = internal\nauth_backends.1.authz = ldap",
            "auth_backends.1",
            "ldap",
        ),
        ("auth_backends.1 = rabbit_auth_backend_dummy", "auth_backends.1", "_dummy"),
        ("auth_backends.1.authn = internal", "auth_backends.1.authn", "internal"),
        ("auth_backends = internal", "auth_backends", "needs a number"),
        ("auth_backends.a = internal", "auth_backends.a", "needs a number"),
        ("auth_backends.a.authn = http", "auth_backends.a.authn", "needs a number"),
        ("auth_backends.1.auhtn = ldap", "auth_backends.1.auhtn", "unknown"),
    ],
)
def test_a_list_without_a_backend_of_harebell_ends_the_start(
    tmp_path: Path, text: str, key: str, value: str
) -> None:
    with pytest.raises(ConfigError) as error:
        read(tmp_path, text + "\n")
    assert key in str(error.value)
    assert value in str(error.value)
    assert "auth_backends.1 = internal" in str(error.value) or "auth_backends.N" in str(error.value)


def test_a_backend_beside_the_internal_one_is_a_warning(tmp_path: Path) -> None:
    (sentence,) = read(tmp_path, "auth_backends.1 = ldap\nauth_backends.2 = internal\n").warnings
    assert sentence.endswith(
        "line 1: auth_backends.1 has no effect in Harebell: users that only the backend ldap knows "
        "are refused"
    )


@pytest.mark.parametrize(
    "backends",
    [
        "[]",
        "[rabbit_auth_backend_ldap]",
        "rabbit_auth_backend_ldap",
        "[{rabbit_auth_backend_internal, [rabbit_auth_backend_ldap, internal]}]",
    ],
)
def test_the_list_of_advanced_config_replaces_that_of_rabbitmq_conf(
    tmp_path: Path, backends: str
) -> None:
    with pytest.raises(ConfigError, match="auth_backends"):
        read(
            tmp_path,
            "auth_backends.1 = internal\nauth_backends.2 = internal\n",
            f"[{{rabbit, [{{auth_backends, {backends}}}]}}].\n",
        )
    (tmp_path / "advanced.config").unlink()
    text = "[{rabbit, [{auth_backends, [rabbit_auth_backend_internal]}]}].\n"
    assert read(tmp_path, "auth_backends.1 = ldap\n", text).warnings == []
