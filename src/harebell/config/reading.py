"""Read the sources of the configuration, and note where each value is written."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from harebell.base.names import did_you_mean
from harebell.config.errors import ConfigError, Problems
from harebell.config.setting import PREFIX
from harebell.config.settings import ALIASES, BY_NAME, CONFIG_VARIABLE, SETTINGS
from harebell.config.values import ValueOrigin

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
_KUBERNETES = r"HAREBELL_(SERVICE_(HOST|PORT\w*)|PORT_\d+_\w+)|HAREBELL_\w+_SERVICE_\w+"
"""Variables that Kubernetes sets in all pods of a namespace with a Service `harebell`."""
SECRET_FILES = {"default_pass": "default_pass_file", "tls_key_password": "tls_key_password_file"}
"""Secrets, and the keys that name a file with them."""
_SECRET_BYTES_MAX = 4096
NO_FILE = "none"
"""The name of the configuration file that means: read no file, not even those in /etc."""


class Reading:
    """Values of the configuration from the sources read so far.

    Args:
        environ: the environment.

    Attributes:
        values: the checked values, by key.
        places: where they are written, by key.
        warnings: settings without an effect, each as a sentence.
        files: the files that were read.
        problems: the errors; a key with a wrong value is not in `values`.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._rabbitmq = environ
        self._env_file_places: dict[str, str] = {}
        self.values: dict[str, Any] = {}
        self.places: dict[str, ValueOrigin] = {}
        self.warnings: list[str] = []
        self.files: list[Path] = []
        self.problems = Problems()

    # --- files ------------------------------------------------------------------------------------

    def read_files(self, named: str | os.PathLike[str] | None) -> None:
        """Read the configuration files; `named` is the one of the command line."""
        with self.problems.noted():
            self._read_env_file(named)
        with self.problems.noted():
            native, rabbitmq = self._files(named)
            if rabbitmq:
                self.read_rabbitmq(rabbitmq)
            if native is not None:
                self.files.append(native)
                self._add(self._from_toml(native))

    def _files(self, named: str | os.PathLike[str] | None) -> tuple[Path | None, list[Path]]:
        """Return the TOML file or None, and RabbitMQ's files that exist."""
        environ = self._environ
        native: Path | None = None
        chosen = named or environ.get(CONFIG_VARIABLE) or None
        if chosen is not None and str(chosen) == NO_FILE:
            return None, []
        rabbitmq: list[Path] = []
        if any(name.startswith(RABBITMQ_PREFIX) for name in self._rabbitmq):
            from harebell.config.rabbitmq_environment import named_files

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
        """Read the `rabbitmq-env.conf` beside the files of RabbitMQ, if it exists."""
        environ = self._environ
        path = _env_file(environ, named or environ.get(CONFIG_VARIABLE) or None)
        if path is None:
            return
        from harebell.config.rabbitmq_env_file import read_env_file

        variables = read_env_file(path, environ)
        self.files.append(path)
        self.warnings += variables.warnings
        # Variables of the environment take precedence over those of the file.
        self._env_file_places = {
            name: place for name, place in variables.places.items() if not environ.get(name)
        }
        used = {name: variables.values[name] for name in self._env_file_places}
        self._rabbitmq = {**environ, **used}

    def read_rabbitmq(self, paths: list[Path]) -> None:
        """Read files of RabbitMQ; later ones have precedence.

        A file with the ending `.config` has Erlang terms, any other one is a `rabbitmq.conf`.
        """
        from harebell.config.rabbitmq_conf import Line, read_file
        from harebell.config.rabbitmq_keys import Translation

        lines: list[Line] = []
        for path in paths:
            self.files.append(path)
            with self.problems.noted():
                if path.suffix == ".config":
                    # Imported here: only few brokers have an advanced.config.
                    from harebell.config.advanced_config import read_advanced

                    advanced = read_advanced(path)
                    lines += advanced.lines
                    self.warnings += advanced.warnings
                else:
                    lines += read_file(path, self._rabbitmq, self.problems)
        translation = Translation(lines, self.problems)
        self.warnings += translation.warnings
        self._add(
            self._checked(
                (name, value, translation.places[name])
                for name, value in translation.values.items()
            )
        )

    def _checked(
        self, given: Iterable[tuple[str, Any, ValueOrigin]]
    ) -> dict[str, tuple[Any, ValueOrigin]]:
        """Parse values by their keys; a wrong value is noted as a problem and left out."""
        checked = {}
        for name, value, place in given:
            with self.problems.noted():
                checked[name] = (_read(name, value, place.shown), place)
        return checked

    # --- environment and flags --------------------------------------------------------------------

    def read_environment(self) -> None:
        """Read RabbitMQ's variables, the credentials of systemd, and Harebell's variables."""
        environ = self._environ
        if any(name.startswith(RABBITMQ_PREFIX) for name in self._rabbitmq):
            self._add_variables(self._rabbitmq)
        if environ.get(CREDENTIALS):
            with self.problems.noted():
                self._add(self._from_credentials(Path(environ[CREDENTIALS])))
        self._add(self._from_environment(environ))

    def read_env_file_alone(self) -> None:
        """Read the variables of `rabbitmq-env.conf`, and none of the environment."""
        self._add_variables({name: self._rabbitmq[name] for name in self._env_file_places})

    def _add_variables(self, environ: Mapping[str, str]) -> None:
        """Add the settings that variables of RabbitMQ give."""
        from harebell.config.rabbitmq_environment import settings_of

        settings, warnings = settings_of(environ)
        self.warnings += warnings
        taken = {}
        for name, (variable, value) in settings.items():
            place = self._env_file_places.get(variable)
            shown = place or f"the environment variable {variable}"
            with self.problems.noted():
                taken[name] = (_read(name, value, shown), ValueOrigin(place or variable))
        self._add(taken)

    def read_flags(self, flags: Mapping[str, Any]) -> None:
        """Read values of the command line; None for a flag that was not given."""
        self._add(
            self._checked(
                (name, value, ValueOrigin(BY_NAME[name].flag or name))
                for name, value in flags.items()
                if value is not None
            )
        )

    def _add(self, settings: Mapping[str, tuple[Any, ValueOrigin]]) -> None:
        """Add the values of a source; they replace those of earlier ones."""
        for secret, file in SECRET_FILES.items():
            if secret in settings and file in settings:
                with self.problems.noted():
                    raise ConfigError(f"{secret} and {file} are both set: leave one out")
            # A secret and the file with it are one setting: without this, the file of a weaker
            # source would win over the secret of a stronger one.
            if secret in settings or file in settings:
                for name in (secret, file):
                    self.values.pop(name, None)
                    self.places.pop(name, None)
        for name, (value, place) in settings.items():
            self.values[name] = value
            self.places[name] = place

    def _from_credentials(self, directory: Path) -> dict[str, tuple[Any, ValueOrigin]]:
        """Read the secrets among the credentials that systemd passes to a unit."""
        secrets = {}
        for setting in SETTINGS:
            path = directory / setting.name
            if setting.secret and path.is_file():
                shown = f"the credential {setting.name}"
                with self.problems.noted():
                    secrets[setting.name] = (
                        _read(setting.name, secret_of(path, shown), shown),
                        ValueOrigin(shown, str(path)),
                    )
        return secrets

    def _from_environment(self, environ: Mapping[str, str]) -> dict[str, tuple[Any, ValueOrigin]]:
        names = {setting.variable: setting.name for setting in SETTINGS}
        names |= {PREFIX + alias.upper(): name for alias, name in ALIASES.items()}
        values: dict[str, tuple[Any, ValueOrigin]] = {}
        for variable, value in environ.items():
            if not variable.startswith(PREFIX) or variable in OTHER_VARIABLES:
                continue
            if variable.startswith(FOREIGN_PREFIXES) or re.fullmatch(_KUBERNETES, variable):
                continue
            with self.problems.noted():
                name, read = _from_variable(variable, value, names)
                values[name] = (read, ValueOrigin(variable))
        return values

    def _from_toml(self, path: Path) -> dict[str, tuple[Any, ValueOrigin]]:
        text, table = _toml(path)
        values: dict[str, tuple[Any, ValueOrigin]] = {}
        for key, value in _flattened(table):
            source = f"{path}, line {_line_of(key.partition('.')[0], text)}:"
            name = key.replace(".", "_")
            name = ALIASES.get(name, name)
            with self.problems.noted():
                if name not in BY_NAME:
                    hint = did_you_mean(key, BY_NAME)
                    raise ConfigError(f"{source} the key {key} is unknown: {hint}")
                read = _read(name, value, f"{source} {key}")
                values[name] = (read, ValueOrigin(f"{source} {key}", str(path)))
        return values


def rabbitmq_files(path: Path) -> list[Path]:
    """Return the files of a directory such as /etc/rabbitmq, or `path` itself if it is a file."""
    if not path.is_dir():
        return [path]
    from harebell.config.rabbitmq_conf import conf_files

    paths = conf_files(path)
    if not paths:
        raise ConfigError(
            f"{path} is a directory without rabbitmq.conf, conf.d/*.conf and advanced.config: name "
            "a file"
        )
    return paths


def _env_file(environ: Mapping[str, str], chosen: str | os.PathLike[str] | None) -> Path | None:
    """Return the `rabbitmq-env.conf` to read; None for none.

    RABBITMQ_CONF_ENV_FILE names it. Otherwise it is in the chosen directory, or in /etc/rabbitmq if
    no file is chosen and Harebell's own file in /etc does not exist.
    """
    if chosen is not None and str(chosen) == NO_FILE:
        return None
    if environ.get("RABBITMQ_CONF_ENV_FILE"):
        return Path(environ["RABBITMQ_CONF_ENV_FILE"])
    directory = None
    if chosen is not None:
        directory = Path(chosen) if Path(chosen).is_dir() else None
    elif environ is os.environ and not NATIVE_FALLBACK.is_file():
        directory = RABBITMQ_FALLBACK
    # Without an import of `harebell.config.rabbitmq_env_file`: most brokers have no such file.
    path = None if directory is None else directory / "rabbitmq-env.conf"
    return path if path is not None and path.is_file() else None


def _fallback_files() -> list[Path]:
    from harebell.config.rabbitmq_conf import conf_files

    return conf_files(RABBITMQ_FALLBACK)


def _read(name: str, value: Any, source: str) -> Any:
    """Parse one value; an error names the source and does not repeat secrets."""
    setting = BY_NAME[name]
    try:
        return setting.read(value)
    except ValueError as error:
        shown = "" if setting.secret else f", not {value!r}"
        raise ConfigError(f"{source} {error}{shown}") from None


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


def _from_variable(variable: str, value: str, names: Mapping[str, str]) -> tuple[str, Any]:
    """Return the key and the value of a variable of Harebell."""
    if variable not in names:
        hint = did_you_mean(variable, [*names, *OTHER_VARIABLES])
        raise ConfigError(f"the environment variable {variable} is unknown: {hint}")
    if value.startswith("tcp://"):
        raise ConfigError(
            f"the environment variable {variable} is {value!r}, which Kubernetes sets for a "
            "Service of that name: set enableServiceLinks: false in the pod, or rename the "
            "Service"
        )
    return names[variable], _read(names[variable], value, f"the environment variable {variable}")


def _toml(path: Path) -> tuple[str, dict[str, Any]]:
    """Return the text and the table of a TOML file."""
    # Imported here, as not every broker has such a file.
    import tomllib

    try:
        text = path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not a TOML file: byte {error.start} is not UTF-8") from None
    except OSError as error:
        raise ConfigError(
            f"cannot read the configuration file {path}: {error.strerror or error}"
        ) from None
    try:
        return text, tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(_toml_sentence(path, text, str(error))) from None


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
    match = re.fullmatch(r"(.*) \(at (?:line (\d+), column (\d+)|end of document)\)", reason, re.S)
    if match is None:
        return f"{path} is not valid TOML: {reason}"
    line = match[2] or str(text.count("\n") + 1)
    return f"{path}, line {line}: not valid TOML: {match[1]}"


def _line_of(name: str, text: str) -> int:
    """Return the line number of a top-level key or table."""
    key = re.compile(rf"""\s*\[*\s*["']?{re.escape(name)}["']?\s*[=.\]]""")
    for number, line in enumerate(text.splitlines(), start=1):
        if key.match(line):
            return number
    return 1
