"""Read `advanced.config`: the settings of RabbitMQ's applications as terms of Erlang.

    [{rabbit, [{tcp_listeners, [5672]}, {heartbeat, 30}]},
     {rabbitmq_management, [{listener, [{port, 15672}]}]}].

Every setting becomes the lines that `rabbitmq.conf` has for it, so that the same rules translate
both. Messages name it as `rabbit.heartbeat`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from harebell.config.auth_backends import NO_BACKENDS
from harebell.config.erlang_terms import Atom, TermError, Tuple, read_term
from harebell.config.errors import ConfigError
from harebell.config.rabbitmq_conf import Line, content_of, encrypted_value
from harebell.config.rabbitmq_reasons import reason_of

ADVANCED_ENDING = ".config"
_PAIR = 2
_UNSET = "undefined"
_APPLICATIONS = {
    "rabbit": "",
    "rabbitmq_management": "management",
    "rabbitmq_management_agent": "management_agent",
    "rabbitmq_prometheus": "prometheus",
    "rabbitmq_auth_backend_http": "auth_http",
    "rabbitmq_auth_backend_cache": "auth_cache",
    "rabbitmq_auth_backend_ldap": "auth_ldap",
    "rabbitmq_auth_backend_oauth2": "auth_oauth2",
    "rabbitmq_mqtt": "mqtt",
    "rabbitmq_stomp": "stomp",
    "rabbitmq_stream": "stream",
    "rabbitmq_web_mqtt": "web_mqtt",
    "rabbitmq_web_stomp": "web_stomp",
    "rabbitmq_shovel": "shovel",
    "rabbitmq_federation": "federation",
}
"""The applications, and the first segment of their keys in `rabbitmq.conf`."""
_LISTS = {
    "listeners": "listeners",
    "auth_mechanisms": "auth_mechanisms",
    "ssl_options.versions": "ssl_options.versions",
    "ssl_options.ciphers": "ssl_options.ciphers",
    "management.cors_allow_origins": "management.cors.allow_origins",
    "tcp_listeners": "listeners.tcp",
    "ssl_listeners": "listeners.ssl",
}
"""Settings whose members are numbered in `rabbitmq.conf`."""
_SOCKETS = {"tcp": ("port", "ip"), "ssl": ("port", "ip", "cacertfile", "certfile", "keyfile")}
_RENAMED = {
    "connection_max": "max_connections",
    "management.listener.port": "management.tcp.port",
    "management.listener.ip": "management.tcp.ip",
    **{
        f"{plugin}.{socket}_config.{key}": f"{plugin}.{socket}.{key}"
        for plugin in ("management", "prometheus")
        for socket, keys in _SOCKETS.items()
        for key in keys
    },
    "management.cors_max_age": "management.cors.max_age",
    "management.content_security_policy": "management.csp.policy",
    "management.strict_transport_security": "management.hsts.policy",
    "definitions.file": "definitions.local.path",
    "log.console.enabled": "log.console",
    "log.exchange.enabled": "log.exchange",
    "log.syslog.enabled": "log.syslog",
    "log.file.file": "log.file",
}


class _Setting(NamedTuple):
    """One setting of an application.

    Args:
        path: the file.
        line: the number of the line.
        named: the application and the key, for messages.
        key: the key in the form of `rabbitmq.conf`.
        value: the term.
    """

    path: Path
    line: int
    named: str
    key: str
    value: Any

    def to(self, key: str, text: str) -> Line:
        """Return the setting as a line of `rabbitmq.conf` with another key and text."""
        return Line(self.path, self.line, tuple(key.split(".")), text, self.named)


class Advanced(NamedTuple):
    """The settings of an advanced.config.

    Args:
        lines: the settings as lines of `rabbitmq.conf`.
        warnings: a sentence for each setting without an effect.
    """

    lines: list[Line]
    warnings: list[str]


def read_advanced(path: Path) -> Advanced:
    """Read the settings of a file.

    Args:
        path: an advanced.config, or a rabbitmq.config, the older name of the same form.

    Raises:
        ConfigError: it cannot be read, is no list of applications, or has an encrypted value.
    """
    content = content_of(path)
    try:
        term = read_term(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"{path} is not a configuration file: byte {error.start} is not UTF-8"
        ) from None
    except TermError as error:
        raise ConfigError(
            f"{path}, line {error.line}: this is not a list of Erlang terms: {error.reason}"
        ) from None
    if not isinstance(term, list) or not all(_is_application(each) for each in term):
        raise ConfigError(
            f"{path} is not a configuration: write a list of applications such as "
            "[{rabbit, [{heartbeat, 30}]}]."
        )
    advanced = Advanced([], [])
    for application, settings in term:
        for each in settings:
            _add(advanced, path, str(application), each)
    return advanced


def _is_application(term: Any) -> bool:
    return (
        isinstance(term, Tuple)
        and len(term) == _PAIR
        and isinstance(term[0], Atom)
        and isinstance(term[1], list)
    )


def _is_pair(term: Any) -> bool:
    return isinstance(term, Tuple) and len(term) == _PAIR and isinstance(term[0], Atom)


def _add(advanced: Advanced, path: Path, application: str, term: Any) -> None:
    """Add the lines of one setting, or the warning about it."""
    if not _is_pair(term):
        # An atom alone stands for {atom, true}.
        advanced.warnings.append(f"{path}: a member of {application} is no setting: it is ignored")
        return
    name = str(term[0])
    first = _APPLICATIONS.get(application)
    key = ".".join(part for part in (first, name) if part)
    setting = _Setting(path, term.line, f"{application}.{name}", key, term[1])
    if first is None:
        _warn(advanced, setting, "Harebell has no counterpart of this application")
        return
    _refuse_encrypted(setting.value, setting)
    before = len(advanced.lines)
    advanced.lines.extend(_lines_of(setting))
    if len(advanced.lines) == before and setting.value not in (_UNSET, []):
        _warn(advanced, setting, reason_of(tuple(key.split("."))))


def _warn(advanced: Advanced, setting: _Setting, reason: str) -> None:
    why = f": {reason}" if reason else ": its value has a form that is not read"
    advanced.warnings.append(
        f"{setting.path}, line {setting.line}: {setting.named} has no effect in Harebell{why}"
    )


def _refuse_encrypted(value: Any, setting: _Setting) -> None:
    if isinstance(value, Tuple) and value and value[0] == "encrypted":
        raise encrypted_value(f"{setting.path}, line {setting.line}: {setting.named}")
    if isinstance(value, list | Tuple):
        for each in value:
            _refuse_encrypted(each, setting)


def _lines_of(setting: _Setting) -> Iterator[Line]:
    """Yield the lines that stand for a setting; none if it has another form."""
    special = _SPECIAL.get(setting.key)
    if special is not None:
        yield from special(setting)
        return
    yield from _flat(setting, setting.key, setting.value)


def _flat(setting: _Setting, key: str, value: Any) -> Iterator[Line]:
    """Yield a line for a value, or for each member of nested settings."""
    numbered = _LISTS.get(key)
    if numbered is not None and isinstance(value, list):
        for number, each in enumerate(value, start=1):
            text = _address(each) if "listeners" in numbered else _text(each)
            if text is not None:
                yield setting.to(f"{numbered}.{number}", text)
        if not value and "listeners" in numbered:
            yield setting.to(numbered, "none")
    elif key == "tcp_listen_options.linger" and _is_pair(value):
        for name, each in zip(("on", "timeout"), value, strict=True):
            yield setting.to(f"{key}.{name}", str(each))
    elif isinstance(value, list) and value and all(_is_pair(each) for each in value):
        for name, each in value:
            yield from _flat(setting, f"{key}.{name}", each)
    else:
        text = _text(value)
        if text is not None and text != _UNSET:
            yield setting.to(_RENAMED.get(key, key), text)


def _text(value: Any) -> str | None:
    """Return a number, atom, string or binary as text; None for another term."""
    if isinstance(value, str | int | float):
        return str(value)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return None


def _address(value: Any) -> str | None:
    """Return a listener, `5672` or `{"127.0.0.1", 5672}`, as `rabbitmq.conf` has it."""
    if not isinstance(value, Tuple) or len(value) != _PAIR:
        return _text(value)
    host, port = value
    if isinstance(host, Tuple):
        return f"{'.'.join(str(each) for each in host)}:{port}"
    text = _text(host)
    return None if text is None else f"{text}:{port}"


# --- settings with forms of their own -------------------------------------------------------------


def _permissions(setting: _Setting) -> Iterator[Line]:
    if isinstance(setting.value, list):
        for name, each in zip(("configure", "write", "read"), setting.value, strict=False):
            yield setting.to(f"default_permissions.{name}", _text(each) or "")


def _named(setting: _Setting) -> Iterator[Line]:
    """Yield `loopback_users.guest = true` for a member of a list of names."""
    if not isinstance(setting.value, list):
        return
    if setting.key == "loopback_users":
        yield setting.to(setting.key, "none")
    for each in setting.value:
        segments = (setting.key, _text(each) or "")
        yield Line(setting.path, setting.line, segments, "true", setting.named)


def _watermark(setting: _Setting) -> Iterator[Line]:
    value, kind = setting.value, "relative"
    if _is_pair(value):
        kind, value = str(value[0]), value[1]
    yield setting.to(f"{setting.key}.{kind}", _text(value) or "")


def _disk_limit(setting: _Setting) -> Iterator[Line]:
    value, kind = setting.value, "absolute"
    if _is_pair(value):
        kind, value = str(value[0]).replace("mem_relative", "relative"), value[1]
    yield setting.to(f"{setting.key}.{kind}", _text(value) or "")


def _backends(setting: _Setting) -> Iterator[Line]:
    if not isinstance(setting.value, list) or not setting.value:
        yield setting.to("auth_backends.1", _text(setting.value) or NO_BACKENDS)
        return
    for number, each in enumerate(setting.value, start=1):
        if _is_pair(each):
            yield setting.to(f"auth_backends.{number}.authn", _text(each[0]) or "")
            others = each[1] if isinstance(each[1], list) else [each[1]]
            names = ", ".join(_text(other) or "" for other in others)
            yield setting.to(f"auth_backends.{number}.authz", names)
        else:
            yield setting.to(f"auth_backends.{number}", _text(each) or "")


def _consumer_timeout(setting: _Setting) -> Iterator[Line]:
    text = _text(setting.value) or ""
    yield setting.to(setting.key, "0" if text in (_UNSET, "false", "infinity") else text)


def _log(setting: _Setting) -> Iterator[Line]:
    """Yield the outputs and the categories of the log."""
    if not isinstance(setting.value, list):
        return
    for name, settings in (each for each in setting.value if _is_pair(each)):
        if name != "categories":
            yield from _flat(setting, f"log.{name}", settings)
        elif isinstance(settings, list):
            for category, each in (pair for pair in settings if _is_pair(pair)):
                yield from _flat(setting, f"log.{category}", each)


_SPECIAL: dict[str, Callable[[_Setting], Iterator[Line]]] = {
    "auth_backends": _backends,
    "consumer_timeout": _consumer_timeout,
    "default_permissions": _permissions,
    "default_user_tags": _named,
    "disk_free_limit": _disk_limit,
    "log": _log,
    "loopback_users": _named,
    "vm_memory_high_watermark": _watermark,
}
