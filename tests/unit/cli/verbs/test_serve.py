"""The flags of `serve`, and when it warns."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import click
import pytest

from harebell.auth.users import User, Users
from harebell.cli.verbs.serve import announce, exposure_warning, serve
from harebell.config import Config
from harebell.config.settings import SETTINGS


def users(*names: str) -> Users:
    """Users of whom guest alone has to be on this machine."""
    made = Users(bytes)
    for name in names:
        made.put(User(name, "", loopback_only=name == "guest"))
    return made


def test_every_key_that_may_has_a_flag() -> None:
    flags = {
        flag
        for parameter in serve.params
        if isinstance(parameter, click.Option) and not parameter.hidden
        for flag in parameter.opts
    }
    assert flags == {setting.flag for setting in SETTINGS if setting.flag} | {"--config"}


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1"])
def test_loopback_needs_no_warning(host: str) -> None:
    assert exposure_warning([host], users("guest")) is None


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1"])
def test_other_machines_cannot_log_in_as_guest_and_are_told(host: str) -> None:
    warning = exposure_warning(["127.0.0.1", host], users("guest"))
    assert warning is not None
    assert host in warning
    assert exposure_warning([host], users("alice")) is None
    assert exposure_warning([host], users("guest", "alice")) is None


def test_the_warning_comes_before_the_word_that_it_is_ready(
    capfd: pytest.CaptureFixture[str],
) -> None:
    listener = SimpleNamespace(host="192.0.2.1", shown="amqp://192.0.2.1:5672")
    app: Any = SimpleNamespace(addresses=[listener], users=users("guest"))
    announce(app, Config())
    out, err = capfd.readouterr()
    assert out.splitlines()[1] == "listening on amqp://192.0.2.1:5672"
    assert out.endswith("\nServer startup complete\n")
    assert err.startswith("warning: other machines can reach 192.0.2.1, but the only user is guest")
