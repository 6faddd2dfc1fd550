"""Write values of the configuration for people and as TOML; secrets are masked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from os import PathLike
from typing import Any

from harebell.config.settings import BY_NAME

MASK = "********"
"""Stands for a secret."""
_SECRET_MEMBER = "password"  # noqa: S105  # the name of a member, not a password
_DELETE = "\x7f"


def masked(name: str, value: Any) -> Any:
    """Return the value of a key, with a mask for a secret."""
    if not BY_NAME[name].secret or value is None or value == {}:
        return value
    if isinstance(value, dict):
        return {
            key: {
                member: MASK if member == _SECRET_MEMBER else each for member, each in row.items()
            }
            for key, row in value.items()
        }
    return MASK


def shown_values(config: Any) -> dict[str, Any]:
    """Return the value of every key, with the types of TOML and JSON, without secrets."""
    return {name: plain(masked(name, getattr(config, name))) for name in BY_NAME}


def plain(value: Any) -> Any:
    """Return a value with the types of TOML and JSON; None is the word none."""
    if value is None:
        return "none"
    if isinstance(value, PathLike):
        return str(value)
    if isinstance(value, Mapping):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, tuple | list):
        return [_url(each) if isinstance(each, tuple) else plain(each) for each in value]
    return value


def _url(each: tuple[str, str, int]) -> str:
    scheme, host, port = each
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"


def toml_value(value: Any) -> str:
    """Return a value as TOML writes it, on one line."""
    value = plain(value)
    if isinstance(value, dict):
        members = ", ".join(f"{_text(key)} = {toml_value(each)}" for key, each in value.items())
        return f"{{ {members} }}" if members else "{}"
    if isinstance(value, list):
        return f"[{', '.join(toml_value(each) for each in value)}]"
    if isinstance(value, str):
        return _text(value)
    return json.dumps(value)


def _text(text: str) -> str:
    # TOML's strings have JSON's escapes; TOML also wants one for DEL.
    return json.dumps(text, ensure_ascii=False).replace(_DELETE, "\\u007f")


def toml_document(values: Mapping[str, Any], *, secrets: bool = False) -> str:
    """Return values by key as a TOML file.

    Args:
        values: the configured values, by key.
        secrets: whether secrets are written; otherwise a comment replaces each.
    """
    lines = []
    for name, value in values.items():
        if BY_NAME[name].secret and not secrets:
            variable = BY_NAME[name].variable
            lines.append(
                f"# {name} is a secret and is not printed: set {variable}, or use --output"
            )
        else:
            lines.append(f"{name} = {toml_value(value)}")
    return "".join(line + "\n" for line in lines)
