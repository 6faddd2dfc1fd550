"""Read the sources of the configuration, and remember where each value is written."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from harebell.base.names import did_you_mean
from harebell.server.config.errors import ConfigError
from harebell.server.config.setting import PREFIX
from harebell.server.config.settings import ALIASES, BY_NAME, CONFIG_VARIABLE, SETTINGS
from harebell.server.config.values import ValueOrigin

RABBITMQ_PREFIX = "RABBITMQ_"
CREDENTIALS = "CREDENTIALS_DIRECTORY"
"""The variable in which systemd names the directory of a unit's credentials."""
NATIVE_FALLBACK = Path("/etc/harebell/harebell.toml")
RABBITMQ_FALLBACK = Path("/etc/rabbitmq")
"""Files that are read when no file is named."""
OTHER_VARIABLES = (
    *(CONFIG_VARIABLE, "HAREBELL_IMPL", "HAREBELL_URL", "HAREBELL_BUILD_THREADS"),
    "HAREBELL_PIPELINES",
    *("HAREBELL_SERVER", "HAREBELL_SERVER_CA", "HAREBELL_SERVER_PASSWORD"),
    "HAREBELL_SERVER_PASSWORD_FILE",
)
"""Variables with the prefix HAREBELL_ that are not configuration keys."""
FOREIGN_PREFIXES = ("HAREBELL_TEST_", "HAREBELL_BENCH_")
"""Prefixes of the variables of the tests and benchmarks."""
_KUBERNETES = re.compile(r"HAREBELL_(SERVICE_(HOST|PORT\w*)|PORT_\d+_\w+)|HAREBELL_\w+_SERVICE_\w+")
"""Variables that Kubernetes sets in all pods of a namespace with a Service `harebell`."""
SECRET_FILES = {"default_pass": "default_pass_file", "tls_key_password": "tls_key_password_file"}
"""Secrets, and the keys that name a file with them."""
_SECRET_BYTES_MAX = 4096
NO_FILE = "none"
"""As the name of the configuration file: read none, not even the ones in /etc."""


class Reading:
    """Values of the configuration, from the sources that were read so far.

    Args:
        environ: the environment.

    Attributes:
        values: the checked values, by key.
        places: where they are written, by key.
        warnings: what has no effect, each as a sentence.
        files: the files that were read.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._rabbitmq = environ
        self._env_file_places: dict[str, str] = {}
        self.values: dict[str, Any] = {}
        self.places: dict[str, ValueOrigin] = {}
        self.warnings: list[str] = []
        self.files: list[Path] = []

    # --- files ------------------------------------------------------------------------------------

    def read_files(self, named: str | os.PathLike[str] | None) -> None:
        """Read the configuration files; `named` is the one of the command line.

        Raises:
            ConfigError: a file cannot be read, or a value in it is wrong.
        """
        self._read_env_file(named)
        native, rabbitmq = self._files(named)
        if rabbitmq:
            self.read_rabbitmq(rabbitmq)
        if native is not None:
            self.files.append(native)
            self._take(_from_toml(native))

    def _files(self, named: str | os.PathLike[str] | None) -> tuple[Path | None, list[Path]]:
        """Return the TOML file and RabbitMQ's files, each as far as there is one."""
        environ = self._environ
        native: Path | None = None
        chosen = named or environ.get(CONFIG_VARIABLE) or None
        if chosen is not None and str(chosen) == NO_FILE:
            return None, []
        rabbitmq: list[Path] = []
        if any(name.startswith(RABBITMQ_PREFIX) for name in self._rabbitmq):
            from harebell.server.config.rabbitmq_environment import named_files

            rabbitmq = named_files(self._rabbitmq)
        if chosen is not None:
            path = Path(chosen)
            if path.is_dir() or path.suffix in (".conf", ".config"):
                rabbitmq = rabbitmq_files(path)
            else:
                native = path
        elif not rabbitmq:
            if environ is os.environ and NATIVE_FALLBACK.is_file():
                native = NATIVE_FALLBACK
            elif environ is os.environ and RABBITMQ_FALLBACK.is_dir():
                rabbitmq = _fallback_files()
        return native, rabbitmq

    def _read_env_file(self, named: str | os.PathLike[str] | None) -> None:
        """Read the `rabbitmq-env.conf` that belongs to the files of RabbitMQ, if there is one."""
        environ = self._environ
        path = _env_file(environ, named or environ.get(CONFIG_VARIABLE) or None)
        if path is None:
            return
        from harebell.server.config.rabbitmq_env_file import read_env_file

        found = read_env_file(path, environ)
        self.files.append(path)
        self.warnings += found.warnings
        # Variables of the environment take precedence over those of the file.
        self._env_file_places = {
            name: place for name, place in found.places.items() if not environ.get(name)
        }
        self._rabbitmq = {**environ, **{name: found.values[name] for name in self._env_file_places}}

    def read_rabbitmq(self, paths: list[Path]) -> None:
        """Read files of RabbitMQ; later ones have precedence.

        A file with the ending `.config` has Erlang terms, any other one is a `rabbitmq.conf`.

        Raises:
            ConfigError: a file cannot be read, or a value in it is wrong.
        """
        from harebell.server.config.rabbitmq_conf import Line, read_file
        from harebell.server.config.rabbitmq_keys import Translation

        lines: list[Line] = []
        for path in paths:
            self.files.append(path)
            if path.suffix == ".config":
                # Imported only if there is such a file.
                from harebell.server.config.advanced_config import read_advanced

                advanced = read_advanced(path)
                lines += advanced.lines
                self.warnings += advanced.warnings
            else:
                lines += read_file(path, self._rabbitmq)
        translation = Translation(lines)
        self.warnings += translation.warnings
        self._take(
            {
                name: (_read(name, value, translation.places[name].shown), translation.places[name])
                for name, value in translation.values.items()
            }
        )

    # --- environment and flags --------------------------------------------------------------------

    def read_environment(self) -> None:
        """Read RabbitMQ's variables, the credentials of systemd, and Harebell's variables.

        Raises:
            ConfigError: a variable of Harebell is unknown, or a value is wrong.
        """
        environ = self._environ
        if any(name.startswith(RABBITMQ_PREFIX) for name in self._rabbitmq):
            self._take_variables(self._rabbitmq)
        if environ.get(CREDENTIALS):
            self._take(_from_credentials(Path(environ[CREDENTIALS])))
        self._take(_from_environment(environ))

    def read_env_file_alone(self) -> None:
        """Read the variables of `rabbitmq-env.conf`, and none of the environment.

        Raises:
            ConfigError: a value is wrong.
        """
        self._take_variables({name: self._rabbitmq[name] for name in self._env_file_places})

    def _take_variables(self, environ: Mapping[str, str]) -> None:
        """Take the settings that variables of RabbitMQ have."""
        from harebell.server.config.rabbitmq_environment import settings_of

        found, warnings = settings_of(environ)
        self.warnings += warnings
        taken = {}
        for name, (variable, value) in found.items():
            place = self._env_file_places.get(variable)
            shown = place or f"the environment variable {variable}"
            taken[name] = (_read(name, value, shown), ValueOrigin(place or variable))
        self._take(taken)

    def read_flags(self, flags: Mapping[str, Any]) -> None:
        """Read values of the command line; None for a flag that was not given.

        Raises:
            ConfigError: a value is wrong.
        """
        found = {}
        for name, value in flags.items():
            if value is not None:
                shown = BY_NAME[name].flag or name
                found[name] = (_read(name, value, shown), ValueOrigin(shown))
        self._take(found)

    def _take(self, found: Mapping[str, tuple[Any, ValueOrigin]]) -> None:
        """Add the values of a source; they replace those of earlier ones."""
        for secret, file in SECRET_FILES.items():
            if secret in found and file in found:
                raise ConfigError(f"{secret} and {file} are both set: leave one out")
            # A secret and a file with it are one setting: the stronger source decides.
            if secret in found or file in found:
                for name in (secret, file):
                    self.values.pop(name, None)
                    self.places.pop(name, None)
        for name, (value, place) in found.items():
            self.values[name] = value
            self.places[name] = place


def rabbitmq_files(path: Path) -> list[Path]:
    """Return the files of a directory such as /etc/rabbitmq, or the one file."""
    if not path.is_dir():
        return [path]
    from harebell.server.config.rabbitmq_conf import conf_files

    found = conf_files(path)
    if not found:
        raise ConfigError(
            f"{path} is a directory without rabbitmq.conf, conf.d/*.conf and advanced.config: name "
            "a file"
        )
    return found


def _env_file(environ: Mapping[str, str], chosen: str | os.PathLike[str] | None) -> Path | None:
    """Return the `rabbitmq-env.conf` that is read; None for none.

    It is the one that a variable names, or else the one in the directory that is chosen, or in
    /etc/rabbitmq if no file of Harebell is.
    """
    if chosen is not None and str(chosen) == NO_FILE:
        return None
    if environ.get("RABBITMQ_CONF_ENV_FILE"):
        return Path(environ["RABBITMQ_CONF_ENV_FILE"])
    directory = None
    if chosen is not None:
        directory = Path(chosen)
    elif environ is os.environ and not NATIVE_FALLBACK.is_file():
        directory = RABBITMQ_FALLBACK
    # The file is named in `harebell.server.config.rabbitmq_env_file`, which is not loaded here.
    path = None if directory is None else directory / "rabbitmq-env.conf"
    return path if path is not None and path.is_file() else None


def _fallback_files() -> list[Path]:
    from harebell.server.config.rabbitmq_conf import conf_files

    return conf_files(RABBITMQ_FALLBACK)


def _read(name: str, value: Any, source: str) -> Any:
    """Parse one value; an error names the source and does not repeat secrets."""
    setting = BY_NAME[name]
    try:
        return setting.read(value)
    except ValueError as error:
        shown = "" if setting.secret else f", not {value!r}"
        raise ConfigError(f"{source} {error}{shown}") from None


def _from_credentials(directory: Path) -> dict[str, tuple[Any, ValueOrigin]]:
    """Read the secrets among the credentials that systemd passes to a unit."""
    found = {}
    for setting in SETTINGS:
        path = directory / setting.name
        if setting.secret and path.is_file():
            shown = f"the credential {setting.name}"
            found[setting.name] = (
                _read(setting.name, secret_of(path, shown), shown),
                ValueOrigin(shown, str(path)),
            )
    return found


def secret_of(path: Path, what: str) -> str:
    """Read a secret from a file, without the line break at its end.

    Raises:
        ConfigError: the file cannot be read; the text names it and not its content.
    """
    try:
        with path.open("rb") as file:
            text = file.read(_SECRET_BYTES_MAX).decode("utf-8")
    except UnicodeDecodeError:
        raise ConfigError(f"{what}: {path} is not UTF-8") from None
    except OSError as error:
        raise ConfigError(f"{what}: cannot read {path}: {error.strerror or error}") from None
    return text.removesuffix("\n").removesuffix("\r")


def _from_environment(environ: Mapping[str, str]) -> dict[str, tuple[Any, ValueOrigin]]:
    known = {setting.variable: setting for setting in SETTINGS}
    known |= {PREFIX + alias.upper(): BY_NAME[name] for alias, name in ALIASES.items()}
    values: dict[str, tuple[Any, ValueOrigin]] = {}
    for variable, value in environ.items():
        if not variable.startswith(PREFIX) or variable in OTHER_VARIABLES:
            continue
        if variable.startswith(FOREIGN_PREFIXES) or _KUBERNETES.fullmatch(variable):
            continue
        if variable not in known:
            hint = did_you_mean(variable, [*known, *OTHER_VARIABLES])
            raise ConfigError(f"the environment variable {variable} is unknown: {hint}")
        name = known[variable].name
        if value.startswith("tcp://"):
            raise ConfigError(
                f"the environment variable {variable} is {value!r}, which Kubernetes sets for a "
                "Service of that name: set enableServiceLinks: false in the pod, or rename the "
                "Service"
            )
        read = _read(name, value, f"the environment variable {variable}")
        values[name] = (read, ValueOrigin(variable))
    return values


def _from_toml(path: Path) -> dict[str, tuple[Any, ValueOrigin]]:
    try:
        text = path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not a TOML file: byte {error.start} is not UTF-8") from None
    except OSError as error:
        raise ConfigError(
            f"cannot read the configuration file {path}: {error.strerror or error}"
        ) from None
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(_toml_sentence(path, text, str(error))) from None
    values: dict[str, tuple[Any, ValueOrigin]] = {}
    for key, value in _flattened(table):
        source = f"{path}, line {_line_of(key.partition('.')[0], text)}:"
        name = key.replace(".", "_")
        name = ALIASES.get(name, name)
        if name not in BY_NAME:
            raise ConfigError(f"{source} the key {key} is unknown: {did_you_mean(key, BY_NAME)}")
        values[name] = (
            _read(name, value, f"{source} {key}"),
            ValueOrigin(f"{source} {key}", str(path)),
        )
    return values


def _flattened(table: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Yield keys and values; `product` in the table `compat` becomes `compat.product`."""
    for key, value in table.items():
        name = before + key
        leads_on = any(known.startswith(name.replace(".", "_") + "_") for known in BY_NAME)
        if isinstance(value, dict) and value and leads_on:
            yield from _flattened(value, name + ".")
        else:
            yield name, value


def _toml_sentence(path: Path, text: str, reason: str) -> str:
    """Return an error of the TOML parser with the path and the line first."""
    found = re.fullmatch(r"(.*) \(at (?:line (\d+), column (\d+)|end of document)\)", reason, re.S)
    if found is None:
        return f"{path} is not valid TOML: {reason}"
    line = found[2] or str(text.count("\n") + 1)
    return f"{path}, line {line}: not valid TOML: {found[1]}"


def _line_of(name: str, text: str) -> int:
    """Return the line number of a top-level key or table."""
    key = re.compile(rf"""\s*\[*\s*["']?{re.escape(name)}["']?\s*[=.\]]""")
    for number, line in enumerate(text.splitlines(), start=1):
        if key.match(line):
            return number
    return 1
