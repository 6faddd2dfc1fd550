r"""Read `rabbitmq-env.conf`: variables of RabbitMQ's server, as a shell has them.

    # a comment
    NODENAME=rabbit@orders             the prefix RABBITMQ_ may be left out
    export RABBITMQ_NODE_PORT="5673"
    LOG_BASE=${HOME}/log               variables of the environment and of lines above

RabbitMQ runs the file in a shell. Harebell reads assignments only: other lines are warnings.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from harebell.config.errors import ConfigError
from harebell.config.rabbitmq_conf import FILE_BYTES_MAX

_PREFIX = "RABBITMQ_"
_ASSIGNMENT = re.compile(r"(?:export\s+)?([A-Za-z_]\w*)=(.*)", re.DOTALL)
_PIECE = re.compile(
    r"""'(?P<single>[^']*)'
    |"(?P<double>(?:[^"\\`]|\\.)*)"
    |(?P<plain>(?:[^\s'"\\`;&|<>()#]|\\.|(?<=\S)\#)+)
    """,
    re.VERBOSE | re.DOTALL,
)
_VARIABLE = re.compile(r"\\(.)|\$(?:\{(\w+)\}|(\w+))|(\$)", re.DOTALL)


class EnvFile(NamedTuple):
    """The variables of a file.

    Args:
        values: the values, by the names with the prefix RABBITMQ_.
        places: the file, the line and the name as it is written, by the same names.
        warnings: lines that are not read, each as a sentence.
    """

    values: dict[str, str]
    places: dict[str, str]
    warnings: list[str]


def read_env_file(path: Path, environ: Mapping[str, str]) -> EnvFile:
    """Read the variables of a file.

    Args:
        path: the file.
        environ: values of `$NAME`.

    Raises:
        ConfigError: it cannot be read.
    """
    try:
        with path.open("rb") as file:
            content = file.read(FILE_BYTES_MAX)
        text = content.decode("utf-8-sig")
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not UTF-8: see byte {error.start}") from None
    read = EnvFile({}, {}, [])
    variables = dict(environ)
    for number, line in enumerate(text.splitlines(), start=1):
        _read_line(f"{path}, line {number}", line.strip(), variables, read)
    return read


def _read_line(place: str, line: str, variables: dict[str, str], read: EnvFile) -> None:
    if not line or line.startswith("#"):
        return
    assigned = _ASSIGNMENT.fullmatch(line)
    value = None if assigned is None else _value(assigned[2], variables)
    if assigned is None or value is None:
        read.warnings.append(f"{place} is not read: write it as NAME=value")
        return
    name = assigned[1]
    variables[name] = value
    variable = name if name.startswith(_PREFIX) else _PREFIX + name
    read.values[variable] = value
    read.places[variable] = f"{place}: {name}"


def _value(text: str, variables: Mapping[str, str]) -> str | None:
    """Return the value that a shell would assign; None if only a shell can evaluate it."""
    parts: list[str] = []
    end = 0
    while end < len(text):
        piece = _PIECE.match(text, end)
        if piece is None:
            break
        end = piece.end()
        if piece["single"] is not None:
            parts.append(piece["single"])
            continue
        text_of_piece = piece["double"] if piece["plain"] is None else piece["plain"]
        replaced = _replaced(text_of_piece, variables)
        if replaced is None:
            return None
        parts.append(replaced)
    rest = text[end:].strip()
    return None if rest and not rest.startswith("#") else "".join(parts)


def _replaced(text: str, variables: Mapping[str, str]) -> str | None:
    """Replace variables; None if a `$` begins something else, such as `$(command)`."""
    parts: list[str] = []
    end = 0
    for match in _VARIABLE.finditer(text):
        if match[4] is not None:
            return None
        parts.append(text[end : match.start()])
        name = match[2] or match[3]
        parts.append(match[1] if name is None else variables.get(name, ""))
        end = match.end()
    return "".join((*parts, text[end:]))
