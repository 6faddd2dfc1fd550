"""Format lines of the log as RabbitMQ prints them: text, or JSON.

    2024-10-04 03:38:35.600956-04:00 [info] <0.899.0> accepting AMQP connection ...
    {"time":"2024-10-04 03:38:35.600956-04:00","level":"info","msg":"...","pid":"<0.899.0>", ...}

`<0.899.0>` is the process of a connection in RabbitMQ; here it has the number of the connection,
and 0 for the broker itself.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from functools import lru_cache, partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from msgspec import Struct

if TYPE_CHECKING:
    from harebell.config import Config

DEFAULT_CATEGORY = "default"
_NS = 1_000_000_000
_US = 1_000
_MINUTE_SECONDS = 60
_THREE = {"debug": "dbg", "info": "inf", "warning": "wrn", "error": "err"}
_FOUR = {"debug": "dbug", "info": "info", "warning": "warn", "error": "eror"}
_LEVEL_NAMES: dict[str, Callable[[str], str]] = {
    "lc": str,
    "uc": str.upper,
    "lc3": _THREE.__getitem__,
    "uc3": lambda level: _THREE[level].upper(),
    "lc4": _FOUR.__getitem__,
    "uc4": lambda level: _FOUR[level].upper(),
}
_PART = re.compile(r"\$(time|level|pid|msg|domain)\b")
_OTHERS = "*"
_DROPPED = "-"


class Line(Struct, frozen=True, gc=False):
    """A line of the log.

    Args:
        at: when it was written, in nanoseconds since 1970.
        level: "debug", "info", "warning" or "error".
        category: "connection", "channel", "queue", "user" or "default".
        origin: the number of the connection that it is about; 0 for none.
        text: what happened, without control characters.
    """

    at: int
    level: str
    category: str
    origin: int
    text: str

    @property
    def pid(self) -> str:
        """Return the identifier of the connection or the broker, in the form of RabbitMQ's."""
        return f"<0.{self.origin}.0>"

    @property
    def domain(self) -> str:
        """Return the category as RabbitMQ's JSON has it."""
        if self.category == DEFAULT_CATEGORY:
            return "rabbitmq"
        return f"rabbitmq.{self.category}"


class Formatter:
    """Formats lines for one output.

    Args:
        formatter: "plaintext" or "json".
        time_format: "rfc3339_space", "rfc3339_t", "epoch_usecs" or "epoch_secs".
        level_format: "lc", "uc", "lc3", "uc3", "lc4" or "uc4".
        plaintext_format: a text with `$time`, `$level`, `$pid`, `$domain` and `$msg`.
        json_field_map: `time:ts` renames a field of JSON lines, `pid:-` drops it, and `*:-` drops
            all that are not named.
        node: the name of the broker.
    """

    def __init__(
        self,
        formatter: str,
        time_format: str,
        level_format: str,
        plaintext_format: str,
        json_field_map: str,
        node: str = "",
    ) -> None:
        self._json = formatter == "json"
        self._time = _TIMES[time_format]
        self._levels = {level: _LEVEL_NAMES[level_format](level) for level in _THREE}
        # Other text and the names of values take turns.
        parts = _PART.split(plaintext_format)
        self._plain = "%s".join([part.replace("%", "%%") for part in parts[::2]])
        self._values = [self._reader(name) for name in parts[1::2]]
        self._node = node
        pairs = [pair.partition(":") for pair in json_field_map.split()]
        self._names = {name: new for name, _, new in pairs if name != _OTHERS}
        self._keeps_others = (_OTHERS, _DROPPED) not in {(name, new) for name, _, new in pairs}

    def format(self, line: Line) -> str:
        """Return the line, without a line break."""
        if self._json:
            return json.dumps(self._fields(line), ensure_ascii=False, separators=(",", ":"))
        return self._plain % tuple([value(line) for value in self._values])

    def _reader(self, name: str) -> Callable[[Line], Any]:
        """Return what reads a value of a line, as the text has it."""
        if name == "time":
            return lambda line: self._time(line.at)
        if name == "level":
            return lambda line: self._levels[line.level]
        return attrgetter("text" if name == "msg" else name)

    def _fields(self, line: Line) -> dict[str, Any]:
        fields = {
            "time": self._time(line.at),
            "level": self._levels[line.level],
            "msg": line.text,
            "pid": line.pid,
            "domain": line.domain,
            "node": self._node,
        }
        named = {
            new: fields[name]
            for name, new in self._names.items()
            if name in fields and new != _DROPPED
        }
        if self._keeps_others:
            named |= {name: value for name, value in fields.items() if name not in self._names}
        return named


def formatter_of(config: Config, output: str, node: str = "") -> Formatter:
    """Return the formatter of an output, such as "console", "file", "syslog" or "exchange"."""
    keys = ("formatter", "time_format", "level_format", "plaintext_format", "json_field_map")
    given = {key: getattr(config, f"log_{output}_{key}") for key in keys}
    return Formatter(**given, node=node)


@lru_cache(maxsize=4)
def _second(seconds: int, between: str) -> tuple[str, str]:
    """Return a second of local time as text, and the offset of its zone."""
    local = time.localtime(seconds)
    offset = local.tm_gmtoff
    hours, minutes = divmod(abs(offset) // _MINUTE_SECONDS, 60)
    sign = "-" if offset < 0 else "+"
    shown = time.strftime(f"%Y-%m-%d{between}%H:%M:%S", local)
    return shown, f"{sign}{hours:02d}:{minutes:02d}"


def _date(between: str, at: int) -> str:
    seconds, nanoseconds = divmod(at, _NS)
    shown, zone = _second(seconds, between)
    return f"{shown}.{nanoseconds // _US:06d}{zone}"


_TIMES: dict[str, Callable[[int], Any]] = {
    "rfc3339_space": partial(_date, " "),
    "rfc3339_t": partial(_date, "T"),
    "epoch_usecs": lambda at: at // _US,
    "epoch_secs": lambda at: at / _NS,
}


def time_of(time_format: str, at: int) -> Any:
    """Return a time as one of the formats has it."""
    return _TIMES[time_format](at)
