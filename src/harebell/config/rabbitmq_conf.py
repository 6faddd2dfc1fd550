r"""Parse `rabbitmq.conf`: lines of `key = value`, as RabbitMQ reads them.

    # a comment
    listeners.tcp.default = 5672
    default_pass = 'a#b'          quotes keep # and spaces
    default_user = $(SEED_USER)   an environment variable

A key has segments with dots between them; `\.` is a dot in a segment.
`harebell.config.rabbitmq_keys` gives the keys their meaning.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from harebell.config.errors import ConfigError, Problems

FILE_BYTES_MAX = 8 << 20
_KEY = re.compile(r"(?:\\.|[^\s=#'])+")
_VARIABLE = re.compile(r"\$\(([^()\s]*)\)")
_ESCAPED = re.compile(r"\\(.)")
ENCRYPTED = "encrypted:"
ADVANCED = "advanced.config"


class Line(NamedTuple):
    """One setting of a file.

    Args:
        path: the file.
        number: the number of the line, from 1.
        segments: the key.
        value: the value, without quotes and with its variables replaced.
        named: the name for messages of a setting of `advanced.config`; "" to show the key.
    """

    path: Path
    number: int
    segments: tuple[str, ...]
    value: str
    named: str = ""

    @property
    def key(self) -> str:
        """Return the key as it is written."""
        return ".".join(segment.replace(".", "\\.") for segment in self.segments)

    @property
    def shown(self) -> str:
        """Return the file, the line and the key, for messages."""
        return f"{self.place}: {self.named or self.key}"

    @property
    def place(self) -> str:
        """Return the file and the line, for messages."""
        return f"{self.path}, line {self.number}"


def content_of(path: Path) -> bytes:
    """Read a configuration file whole.

    Raises:
        ConfigError: it cannot be read, or is too large for a configuration.
    """
    try:
        with path.open("rb") as file:
            content = file.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        raise ConfigError(
            f"cannot read the configuration file {path}: {error.strerror or error}"
        ) from None
    if len(content) > FILE_BYTES_MAX:
        raise ConfigError(f"{path} has more than {FILE_BYTES_MAX} bytes: it is no configuration")
    return content


def read_file(path: Path, environ: Mapping[str, str], problems: Problems) -> list[Line]:
    """Read the settings of one file, in their order.

    Args:
        path: the file.
        environ: values of `$(NAME)`.
        problems: gets an error for each line that is no setting; it does not repeat the value.

    Raises:
        ConfigError: the file cannot be read.
    """
    content = content_of(path)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"{path} is not a configuration file: byte {error.start} is not UTF-8"
        ) from None
    lines = []
    for number, line in enumerate(re.split(r"\r\n|\n|\r", text), start=1):
        with problems.noted():
            parsed = _line(path, number, line.strip(), environ)
            if parsed is not None:
                lines.append(parsed)
    return lines


def segments_of(key: str) -> tuple[str, ...]:
    """Split a key at its dots; () if a segment is empty."""
    parts = re.split(r"(?<!\\)\.", key)
    return tuple(_ESCAPED.sub(r"\1", part) for part in parts) if all(parts) else ()


def encrypted_value(where: str) -> ConfigError:
    """Return the error about an encrypted value; `where` names the file, the line and the key."""
    return ConfigError(
        f"{where} is an encrypted value, which Harebell cannot decrypt: give a secret in the "
        "environment, in a file or as a systemd credential"
    )


def _line(path: Path, number: int, line: str, environ: Mapping[str, str]) -> Line | None:
    place = f"{path}, line {number}"
    if not line or line.startswith("#"):
        return None
    key = _KEY.match(line)
    segments = segments_of(key[0]) if key else ()
    rest = line[key.end() :].lstrip() if key else ""
    if not segments or not rest.startswith("="):
        raise ConfigError(f"{place}: this line is not a setting: write one as key = value")
    assert key is not None, "there are segments"
    value = _value(rest[1:].strip(), f"{place}: {key[0]}")
    if value.startswith(ENCRYPTED):
        raise encrypted_value(f"{place}: {key[0]}")
    return Line(path, number, segments, _replaced(value, environ, f"{place}: {key[0]}"))


def _value(text: str, where: str) -> str:
    """Return the value without quotes and without the comment behind it."""
    if not text.startswith("'"):
        value = text.partition("#")[0].rstrip()
        if not value:
            raise ConfigError(f"{where} has no value: write one behind the =, or remove the line")
        return value
    end = 1
    while end < len(text) and text[end] != "'":
        end += 2 if text[end] == "\\" else 1
    after = text[end + 1 :].strip()
    if end >= len(text) or (after and not after.startswith("#")):
        raise ConfigError(f"{where} has a quote without its end: write the value as 'value'")
    return text[1:end].replace("\\'", "'").replace("\\\\", "\\")


def _replaced(value: str, environ: Mapping[str, str], where: str) -> str:
    """Replace `$(NAME)` by variables of the environment."""

    def replacement(match: re.Match[str]) -> str:
        name = match[1]
        if name not in environ:
            raise ConfigError(
                f"{where} names the environment variable {name}, which is not set: set it, or "
                "write the value itself"
            )
        return environ[name]

    return _VARIABLE.sub(replacement, value)


def conf_files(directory: Path) -> list[Path]:
    """Return the files of a directory such as /etc/rabbitmq, in the order of reading.

    These are `rabbitmq.conf`, the files of `conf.d` and `advanced.config`, if they exist.
    """
    paths = [directory / "rabbitmq.conf", *sorted((directory / "conf.d").glob("*.conf"))]
    return [path for path in (*paths, directory / ADVANCED) if path.is_file()]
