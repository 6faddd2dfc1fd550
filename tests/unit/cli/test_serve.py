"""The flags of `serve`, and when it warns."""

from __future__ import annotations

import click
import pytest

from harebell.cli.serve import exposure_warning, serve
from harebell.server.config import Config
from harebell.server.settings import SETTINGS


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
    assert exposure_warning([host], Config()) is None


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1"])
def test_other_machines_cannot_log_in_as_guest_and_are_told(host: str) -> None:
    warning = exposure_warning(["127.0.0.1", host], Config())
    assert warning is not None
    assert host in warning
    assert exposure_warning([host], Config(default_user="alice")) is None
