"""A broker whose configured backends of users are missing does not start with other users."""

from __future__ import annotations

from pathlib import Path

import pytest

from harebell.server.config import Config, ConfigError, Configuration, read_configuration


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
    ("text", "key", "value"),
    [
        ("auth_backends.1 = ldap", "auth_backends.1", "ldap"),
        ("auth_backends.1 = rabbit_auth_backend_http", "auth_backends.1", "_http"),
        ("auth_backends.1 = cache\nauth_cache.cached_backend = http", "auth_backends.1", "cache"),
        (
            "auth_backends.1.authn = internal\nauth_backends.1.authz = http",
            "auth_backends.1",
            "internal",
        ),
        ("auth_backends.1.authn = internal", "auth_backends.1.authn", "internal"),
        ("auth_backends = internal", "auth_backends", "needs a number"),
        ("auth_backends.1.auhtn = ldap", "auth_backends.1.auhtn", "unknown"),
    ],
)
def test_a_list_without_the_internal_backend_ends_the_start(
    tmp_path: Path, text: str, key: str, value: str
) -> None:
    with pytest.raises(ConfigError) as error:
        read(tmp_path, text + "\n")
    assert f"rabbitmq.conf, line 1: {key}" in str(error.value)
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
        "[{rabbit_auth_backend_internal, [rabbit_auth_backend_http, internal]}]",
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
