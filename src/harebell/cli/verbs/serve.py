"""`harebell serve`: run a broker until SIGTERM or SIGINT.

Every key of the configuration has a flag, except secrets. The flags are generated from the table of
keys.
"""

from __future__ import annotations

import gc
import ipaddress
import os
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harebell.base.errors import DiskError, HarebellError
from harebell.cli.verb import DiskFailed, Failure, Verb, WrongUsage
from harebell.cluster.process_config import config_of
from harebell.cluster.stores import VARIABLE, end_with_supervisor, number_of
from harebell.config import (
    CONFIG_VARIABLE,
    Config,
    ConfigError,
    Configuration,
    read_configuration,
)
from harebell.config.setting import PREFIX
from harebell.config.settings import SETTINGS

if TYPE_CHECKING:
    from harebell.auth.users import Users
    from harebell.server.app import App


_AMQP_PORT = 5672


def _shown_default(name: str, defaults: Config) -> str:
    """Return the default of a key for `--help`."""
    if name == "data_dir":
        return "harebell in $XDG_DATA_HOME or ~/.local/share"
    default = getattr(defaults, name)
    if isinstance(default, tuple):
        return ",".join(default)
    return "" if default is None or default == {} else str(default)


def setting_flags(command: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a command with one flag per key of the configuration, and with `--config`."""
    defaults = Config()
    for setting in reversed(SETTINGS):
        if setting.flag is None:
            continue
        default = _shown_default(setting.name, defaults)
        note = f"default: {default}; " if default else ""
        command = click.option(
            setting.flag,
            setting.name,
            metavar="VALUE",
            help=f"{setting.help} [{note}{setting.variable}]",
        )(command)
    return click.option(
        "--config",
        "config_file",
        metavar="FILE",
        help="TOML file with the keys of docs/reference/configuration.md, or rabbitmq.conf, or a "
        f"directory with rabbitmq.conf and conf.d. [{CONFIG_VARIABLE}]",
    )(command)


def _refuse_secret(_ctx: click.Context, param: click.Parameter, value: str | None) -> None:
    if value is not None:
        raise click.UsageError(
            f"Other users can read command lines: give {param.name} in "
            f"{PREFIX}{(param.name or '').upper()} or in the configuration file"
        )


@click.command(
    cls=Verb,
    epilog="The password of the default user comes from HAREBELL_DEFAULT_PASS or the file only, "
    "because other users can read command lines.",
)
@setting_flags
@click.option("--default-pass", hidden=True, expose_value=False, callback=_refuse_secret)
@click.option("--tls-key-password", hidden=True, expose_value=False, callback=_refuse_secret)
@click.option("--definitions-https-url", hidden=True, expose_value=False, callback=_refuse_secret)
@click.option(
    "--definitions-tls-key-password", hidden=True, expose_value=False, callback=_refuse_secret
)
@click.option("--default-users", hidden=True, expose_value=False, callback=_refuse_secret)
def serve(config_file: str | None, **flags: str | None) -> None:
    """Run a broker.

    Flags win over the environment, which wins over configuration files. It ends at SIGTERM or
    SIGINT, after telling every client why.
    """

    def read() -> Configuration:
        configuration = read_configuration(flags, config_file=config_file)
        return configuration._replace(config=config_of(configuration.config, number_of(os.environ)))

    end_with_supervisor(os.environ)
    try:
        configuration = read()
    except ConfigError as error:
        raise WrongUsage(str(error)) from None
    if configuration.config.storage_stores > 1 and VARIABLE not in os.environ:
        click.get_current_context().exit(_supervise(configuration))
    # Imported objects are never garbage: collections during the import would waste time.
    gc.disable()
    from harebell.server.broker_process import run

    gc.freeze()
    gc.enable()
    try:
        code = run(
            configuration,
            lambda app: announce(app, app.config),
            read,
            click.echo,
        )
    except DiskError as error:
        raise DiskFailed(str(error)) from None
    except HarebellError as error:
        raise Failure(str(error)) from None
    click.get_current_context().exit(code)


def _supervise(configuration: Configuration) -> int:
    """Run a process per store, and return the exit code."""
    from harebell.cluster import supervisor

    def report(level: str, line: str) -> None:
        click.echo(f"{level}: {line}", err=True)

    try:
        return supervisor.run(configuration.config, click.echo, report)
    except HarebellError as error:
        raise Failure(str(error)) from None


def announce(app: App, config: Config) -> None:
    """Print the addresses of the broker and the line "Server startup complete"."""
    from harebell.cli.main import version_line

    click.echo(version_line())
    for listener in app.addresses:
        click.echo(f"listening on {listener.shown}")
    click.echo(f"data directory {config.data_dir}")
    warning = exposure_warning([listener.host for listener in app.addresses], app.users)
    if warning is not None:
        click.echo(warning, err=True)
    click.echo("Server startup complete")
    if sys.stdout.isatty():
        page = app.http_listeners[0].shown if app.http_listeners else ""
        port = next((each.port for each in app.listeners if each.scheme == "amqp"), None)
        place = None if config.data_dir == Config().data_dir else config.data_dir
        page = page and f"{page}{config.management_path_prefix}/"
        for line in first_steps(page, port, place):
            click.echo(line)


def first_steps(page: str, port: int | None, data_dir: Path | None) -> list[str]:
    """Return what people at a terminal may do next: where the web page is, and three things to try.

    Args:
        page: the address of the web page; "" for none.
        port: the port for AMQP without TLS; None for none.
        data_dir: the data directory; None for that of the defaults.
    """
    from harebell.management.http.listening import INSTALL, is_installed

    if not page:
        page = "none (management_port)" if is_installed() else f"none: {INSTALL}"
    url = "" if port in (None, _AMQP_PORT) else f" --url amqp://guest:guest@127.0.0.1:{port}"
    place = "" if data_dir is None else f" --data-dir {shlex.quote(str(data_dir))}"
    return [
        "",
        f"web page  {page}",
        "Three things to try in another terminal:",
        f"  harebell queues declare hello{place} && harebell publish -r hello 'it works'{url}",
        f"  harebell top{place}",
        "  harebell demo --stay",
        "Ctrl-C ends the broker.",
    ]


def exposure_warning(hosts: list[str], users: Users) -> str | None:
    """Return a warning if remote machines can connect but all users are restricted to loopback."""
    open_hosts = [host for host in hosts if not ipaddress.ip_address(host).is_loopback]
    names = [user.name for user in users.all()]
    if not open_hosts or not all(user.loopback_only for user in users.all()):
        return None
    return (
        f"warning: other machines can reach {open_hosts[0]}, but the only user is "
        f"{' and '.join(names)}, who may log in from this machine only: begin a new data directory "
        "with --default-user and HAREBELL_DEFAULT_PASS"
    )
