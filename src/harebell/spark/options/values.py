"""Parse the value of one option; one parser for each type of value.

Each parser takes the option's name, for its error, and the text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import field, fields
from pathlib import Path
from typing import Any

from harebell.base.errors import HarebellError
from harebell.base.limits import NAME_BYTES
from harebell.base.names import nearest
from harebell.client.url import URL, URLError

Reader = Callable[[str, str], object]
_OF_KAFKA = {
    "kafka.bootstrap.servers": "url",
    "subscribe": "queue, queues or superStream",
    "subscribepattern": "queuePattern",
    "assign": "queues",
    "kafka.group.id": "group",
    "topic": "exchange or queue",
}


class OptionError(HarebellError, ValueError):
    """An option that cannot be used; the text names it."""


def option(reader: Reader, default: Any = None, name: str = "", *, shown: bool = True) -> Any:
    """Return a field of a dataclass of options.

    Args:
        reader: parses the text of the option.
        default: the value where the option is not given.
        name: the name of the option; "" for that of the field in camel case.
        shown: whether the value may be printed.
    """
    return field(default=default, repr=shown, metadata={"reader": reader, "name": name})


def table_of(options: type) -> dict[str, tuple[str, Reader]]:
    """Return the fields that a dataclass of options has by `option`, and their parsers, by name."""
    table = {}
    for each in fields(options):
        if "reader" in each.metadata:
            first, *words = each.name.split("_")
            name = each.metadata["name"] or "".join((first, *map(str.capitalize, words)))
            table[name] = (each.name, each.metadata["reader"])
    return table


def unknown(name: str, names: Mapping[str, str]) -> str:
    """Return the error text for an unknown option; `names` has the valid ones by lower case."""
    here = _OF_KAFKA.get(name.lower())
    if here is not None:
        return f"unknown option {name!r}: what Kafka calls so is {here} here"
    if name.lower().startswith("kafka."):
        return (
            f"unknown option {name!r}: it is for Kafka's client; the address, the user and TLS are "
            "in the option url"
        )
    near = nearest(name.lower(), names)
    if near:
        return f"unknown option {name!r}: did you mean {names[near]}?"
    return f"unknown option {name!r}: the options are {', '.join(sorted(names.values()))}"


def problems(
    given: Mapping[str, str], readers: Mapping[str, tuple[str, Reader]], names: Mapping[str, str]
) -> dict[str, str]:
    """Return what is wrong with each option by itself, by its name as it is given.

    Args:
        given: the options.
        readers: their attributes and parsers, by name in lower case.
        names: the valid names, by lower case; some may have no parser.
    """
    problems = {}
    for name, value in given.items():
        lower = name.lower()
        if lower not in names:
            problems[name] = unknown(name, names)
        elif lower in readers:
            try:
                readers[lower][1](names[lower], value)
            except OptionError as error:
                problems[name] = str(error)
    return problems


def read_url(name: str, value: str) -> URL:
    """Parse the address of a broker."""
    try:
        return URL.parse(value)
    except URLError as error:
        # Without the value: it may hold a password.
        raise OptionError(f"the option {name} is wrong: {error}") from None


def read_queue(name: str, value: str) -> str:
    """Parse the name of a queue."""
    if not value or len(value.encode()) > NAME_BYTES:
        raise OptionError(f"the option {name} must be a queue's name of 1 to {NAME_BYTES} bytes")
    return value


def _split(name: str, value: str) -> list[Any]:
    """Split a text at commas, or parse a JSON array, whose elements may be of any type."""
    text = value.strip()
    if not text.startswith("["):
        return [one.strip() for one in text.split(",")]
    try:
        elements: list[Any] = json.loads(text)
    except ValueError as error:
        raise OptionError(f"the option {name} is no JSON array: {error}") from None
    return elements


def read_queues(name: str, value: str) -> tuple[str, ...]:
    """Parse names between commas, or a JSON array for names that contain commas."""
    names = _split(name, value)
    if not all(isinstance(one, str) for one in names):
        raise OptionError(f"the option {name} must be a JSON array of names, not {value!r}")
    if not names or not all(names):
        raise OptionError(
            f"the option {name} must be names between commas, such as orders,payments, or a JSON "
            f"array of names, not {value!r}"
        )
    queues = tuple(read_queue(name, one) for one in names)
    for one in queues:
        if queues.count(one) > 1:
            raise OptionError(f"the option {name} names queue {one!r} twice")
    return queues


def read_keys(name: str, value: str) -> tuple[str, ...]:
    """Parse binding keys between commas, or a JSON array for keys that contain commas."""
    keys = _split(name, value)
    # One empty key alone is a key, as fanout exchanges have it; in a JSON array it is meant.
    if not value.strip().startswith("[") and len(keys) > 1 and not all(keys):
        raise OptionError(
            f"the option {name} has an empty key between commas, {value!r}: leave it out, or "
            'write a JSON array such as ["orders.*", ""] if the empty key is meant'
        )
    if not keys or not all(isinstance(one, str) for one in keys):
        raise OptionError(
            f"the option {name} must be keys between commas, such as orders.*,audit.#, or a JSON "
            f"array of keys, not {value!r}"
        )
    for one in keys:
        if len(one.encode()) > NAME_BYTES:
            raise OptionError(f"the option {name} has a key of more than {NAME_BYTES} bytes")
        if keys.count(one) > 1:
            raise OptionError(f"the option {name} names key {one!r} twice")
    return tuple(keys)


def read_text(name: str, value: str) -> str:
    """Parse any text but an empty one."""
    if not value.strip():
        raise OptionError(f"the option {name} is empty")
    return value


def read_group(name: str, value: str) -> str:
    """Parse the name of a lease group."""
    if not value or len(value.encode()) > NAME_BYTES:
        raise OptionError(f"the option {name} must be a name of 1 to {NAME_BYTES} bytes")
    return value


def whole(minimum: int, maximum: int | None = None) -> Callable[[str, str], int]:
    """Return a parser for whole numbers in a range."""
    allowed = f"at least {minimum}" if maximum is None else f"from {minimum} to {maximum}"

    def read(name: str, value: str) -> int:
        try:
            number = int(value.replace("_", ""))
        except ValueError:
            number = minimum - 1
        if number < minimum or (maximum is not None and number > maximum):
            raise OptionError(f"the option {name} must be a whole number {allowed}, not {value!r}")
        return number

    return read


_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "": 1.0}
_OCTETS = {"": 1, "b": 1, "k": 2**10, "kb": 2**10, "m": 2**20, "mb": 2**20, "g": 2**30, "gb": 2**30}
_SIZE_END = 2**63
_LETTERS = "abcdefghijklmnopqrstuvwxyz "


def read_seconds(name: str, value: str) -> float:
    """Parse a time with its unit, in seconds."""
    seconds = _seconds(value)
    if not 0 < seconds < float("inf"):
        raise OptionError(
            f"the option {name} must be a time above 0 such as 30s, 500ms or 2m, not {value!r}"
        )
    return seconds


def read_seconds_or_none(name: str, value: str) -> float:
    """Parse a time with its unit, in seconds, which may be 0."""
    seconds = _seconds(value)
    if not 0 <= seconds < float("inf"):
        raise OptionError(
            f"the option {name} must be a time such as 30s, 500ms or 2m, or 0, not {value!r}"
        )
    return seconds


def _digits_and_unit(value: str) -> tuple[str, str]:
    text = value.strip().lower()
    digits = text.rstrip(_LETTERS)
    return digits, text[len(digits) :].strip()


def _seconds(value: str) -> float:
    """Parse a time in seconds; negative if it is invalid."""
    digits, unit = _digits_and_unit(value)
    try:
        return float(digits) * _SECONDS[unit]
    except (KeyError, ValueError):
        return -1.0


def read_size(name: str, value: str) -> int:
    """Parse a size with its unit, in bytes."""
    digits, unit = _digits_and_unit(value)
    try:
        byte_count = int(digits.replace("_", "")) * _OCTETS[unit]
    except (KeyError, ValueError):
        byte_count = 0
    if not 1 <= byte_count < _SIZE_END:
        raise OptionError(
            f"the option {name} must be a size above 0 such as 64m, 512k or 1000000, not {value!r}"
        )
    return byte_count


def read_flag(name: str, value: str) -> bool:
    """Parse true or false."""
    flag = {"true": True, "false": False}.get(value.strip().lower())
    if flag is None:
        raise OptionError(f"the option {name} must be true or false, not {value!r}")
    return flag


def read_directory(name: str, value: str) -> Path:
    """Parse an absolute path."""
    path = Path(value)
    if not path.is_absolute():
        raise OptionError(
            f"the option {name} must be an absolute path that every executor sees, not {value!r}"
        )
    return path


def choice(*allowed: str) -> Callable[[str, str], str]:
    """Return a parser for one of some words, in any case."""
    words = {word.lower(): word for word in allowed}

    def read(name: str, value: str) -> str:
        word = words.get(value.strip().lower())
        if word is None:
            listed = " or ".join(filter(None, (", ".join(allowed[:-1]), allowed[-1])))
            raise OptionError(f"the option {name} must be {listed}, not {value!r}")
        return word

    return read
