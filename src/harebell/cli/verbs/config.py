"""`harebell config`: show, check and convert configurations without a broker.

`harebell config reload`, which asks a running broker, is in `harebell.admin.commands.config`.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from harebell.admin.command import plural
from harebell.base.errors import HarebellError
from harebell.cli.formats import json_options
from harebell.cli.verb import Failure, Verb, WrongUsage, echo, echo_json
from harebell.config import (
    CONFIG_VARIABLE,
    Config,
    ConfigError,
    Configuration,
    read_configuration,
)
from harebell.config.settings import SETTINGS

_OWNER_ONLY = 0o600
_GAP = "  "


def _read(environ: dict[str, str] | None, file: str | None) -> Configuration:
    try:
        return read_configuration(None, environ, file)
    except ConfigError as error:
        raise WrongUsage(str(error)) from None


def _show(config_file: str | None, origin: bool, as_json: bool, only_set: bool) -> None:
    from harebell.config.shown import masked, plain, toml_value

    configuration = _read(None, config_file)
    rows: list[dict[str, Any]] = []
    for setting in SETTINGS:
        place = configuration.places.get(setting.name)
        if only_set and place is None:
            continue
        rows.append(
            {
                "key": setting.name,
                "value": masked(setting.name, getattr(configuration.config, setting.name)),
                "origin": "default" if place is None else place.shown,
                "reloads": setting.reloads,
            }
        )
    if as_json:
        for row in rows:
            # JSON has null where TOML has the word none.
            row["value"] = None if row["value"] is None else plain(row["value"])
        echo_json(rows)
        return
    lines = [(row["key"], toml_value(row["value"]), row["origin"]) for row in rows]
    columns = 3 if origin else 2
    widths = [max((len(line[n]) for line in lines), default=0) for n in range(columns)]
    for line in lines:
        cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=False))
        echo(_GAP.join(cells).rstrip())
    _warn(configuration.warnings)


def _warn(warnings: list[str]) -> None:
    for sentence in warnings:
        echo(f"warning: {sentence}", err=True)


def _check(file: str, as_json: bool) -> None:
    configuration = _read({}, file)
    _check_files(configuration.config)
    count = len(configuration.places)
    if as_json:
        echo_json({"keys": count, "warnings": configuration.warnings})
        return
    _warn(configuration.warnings)
    warned = plural(len(configuration.warnings), "warning")
    echo(f"{file} is valid: {plural(count, 'key')}, {warned}")


def _check_files(config: Config) -> None:
    """Check that the files of TLS can be used and that the definitions can be parsed.

    Raises:
        WrongUsage: a file cannot be used; the text names each.
    """
    wrong = []
    for check in (_check_certificate, _check_definitions):
        try:
            check(config)
        except HarebellError as error:
            wrong.append(str(error))
    if wrong:
        raise WrongUsage(str(ConfigError(*wrong)))


def _check_certificate(config: Config) -> None:
    if config.tls_cert is not None:
        from harebell.server.net.tls import tls_context

        tls_context(config)


def _check_definitions(config: Config) -> None:
    if config.load_definitions is not None and config.load_definitions.is_file():
        from harebell.admin.definitions.importer import parse

        parse(config.load_definitions.read_bytes())


def _convert(file: str, output: str | None) -> None:
    from harebell.config.reading import Reading
    from harebell.config.shown import toml_document

    reading = Reading(os.environ)
    path = Path(file)
    try:
        with reading.problems.noted():
            if path.is_dir():
                reading.read_files(path)
                reading.read_env_file_alone()
            else:
                reading.read_rabbitmq([path])
        reading.problems.end()
    except ConfigError as error:
        raise WrongUsage(str(error)) from None
    _warn(reading.warnings)
    values = {
        each.name: reading.values[each.name] for each in SETTINGS if each.name in reading.values
    }
    if output is None:
        echo(toml_document(values), nl=False)
        return
    document = toml_document(values, secrets=True).encode()
    try:
        # The file may have passwords, so only its owner may read it from the start.
        handle = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _OWNER_ONLY)
        with os.fdopen(handle, "wb") as out:
            out.write(document)
    except OSError as error:
        raise Failure(f"cannot write {output}: {error.strerror or error}") from None
    echo(f"{len(values)} keys were written to {output}")


ACTIONS = (
    Verb(
        "show",
        callback=_show,
        params=[
            click.Option(
                ["--config", "config_file"],
                metavar="FILE",
                help=f"Configuration file. [{CONFIG_VARIABLE}]",
            ),
            click.Option(["--origin"], is_flag=True, help="Also print where each value is set."),
            click.Option(["--set", "only_set"], is_flag=True, help="Only keys that are set."),
            *json_options(),
        ],
        help="""Print the configuration that a broker would have that is started here.

        It is read from files and the environment as `harebell serve` reads it. Secrets are masked.
        """,
    ),
    Verb(
        "check",
        callback=_check,
        params=[click.Argument(["file"]), *json_options()],
        help="""Check FILE: harebell.toml, rabbitmq.conf, or a directory like /etc/rabbitmq.

        Keys without an effect are printed as warnings; everything that is wrong is printed, and
        ends with exit code 2.
        """,
    ),
    Verb(
        "convert",
        callback=_convert,
        params=[
            click.Argument(["file"]),
            click.Option(
                ["-o", "--output"],
                metavar="FILE",
                help="Write a new file with the secrets, which only its owner can read.",
            ),
        ],
        help="""Print rabbitmq.conf, or a directory like /etc/rabbitmq, as harebell.toml.

        Secrets are not printed.
        """,
    ),
)
"""Actions of `harebell config` that need no broker."""
