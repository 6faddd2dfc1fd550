"""The error of an invalid configuration."""

from __future__ import annotations

from harebell.base.errors import HarebellError


class ConfigError(HarebellError):
    """The configuration is invalid; the text is a sentence for the user."""
