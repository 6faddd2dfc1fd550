"""Where the HTTP API is and who asks: flags, then the configuration file, then defaults."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harebell_rabbitmq_compat.management.formats import FORMATS

DEFAULTS: dict[str, Any] = {
    "hostname": "localhost",
    "port": "15672",
    "node": "default",
    "path_prefix": "",
    "declare_vhost": "/",
    "username": "guest",
    "password": "guest",
    "ssl": False,
    "ssl_insecure": False,
    "ssl_disable_hostname_verification": False,
    "request_timeout": 120,
    "verbose": True,
    "format": "table",
    "depth": "1",
}


class SettingsError(Exception):
    """The flags or the configuration file are wrong."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> Any:
        raise SettingsError(message)


def parser() -> argparse.ArgumentParser:
    """Return the parser of the flags."""
    flags = _Parser(
        prog="rabbitmqadmin",
        usage="rabbitmqadmin [options] subcommand",
        argument_default=argparse.SUPPRESS,
        epilog="`rabbitmqadmin help subcommands` lists the subcommands, "
        "`rabbitmqadmin help config` describes the configuration file.",
    )
    add = flags.add_argument
    add("words", nargs="*", help=argparse.SUPPRESS)
    add("-c", "--config", help="configuration file [default: ~/.rabbitmqadmin.conf]")
    add("-N", "--node", help="section of the configuration file [default: default]")
    add("-H", "--host", dest="hostname", metavar="HOST", help="host [default: localhost]")
    add("-P", "--port", help="port [default: 15672]")
    add("--path-prefix", help="prefix of the path of the HTTP API")
    add("-V", "--vhost", help="vhost [default: all to list, '/' to declare]")
    add("-u", "--username", help="user [default: guest]")
    add("-p", "--password", help="password [default: guest]")
    add("-U", "--base-uri", metavar="URI", help="address as a URI, instead of the flags above")
    add("-q", "--quiet", dest="verbose", action="store_false", help="no status messages")
    add("-s", "--ssl", action="store_true", help="connect with TLS")
    add("--ssl-key-file", help="client key, PEM")
    add("--ssl-cert-file", help="client certificate, PEM")
    add("--ssl-ca-cert-file", help="certificates of authorities, PEM")
    add(
        "--ssl-disable-hostname-verification",
        action="store_true",
        help="accept a certificate for another host",
    )
    add("-k", "--ssl-insecure", action="store_true", help="accept any certificate")
    add("-t", "--request-timeout", type=int, help="timeout in seconds [default: 120]")
    add("-f", "--format", help=f"format of lists: {', '.join(FORMATS)} [default: table]")
    add("-S", "--sort", help="column to sort by")
    add("-R", "--sort-reverse", action="store_true", help="sort from the end")
    add("-d", "--depth", help="levels of objects that become columns [default: 1]")
    add("--bash-completion", action="store_true", help="print a completion script for bash")
    add("--version", action="store_true", help="print the version")
    return flags


def settings_of(words: Sequence[str]) -> argparse.Namespace:
    """Parse a command line, and add the configuration file and the defaults.

    Args:
        words: the command line.

    Raises:
        SettingsError: a flag or the configuration file is wrong.
    """
    given = vars(parser().parse_intermixed_args(list(words)))
    wanted = given.get("config")
    usual = Path.home() / ".rabbitmqadmin.conf"
    if wanted is not None and not Path(wanted).is_file():
        raise SettingsError(f"Could not read config file '{wanted}'")
    file = Path(wanted) if wanted is not None else usual
    node = given.get("node", DEFAULTS["node"])
    from_file = _section(file, node, named="node" in given) if file.is_file() else {}
    found = {**DEFAULTS, "vhost": None, "sort": None, "words": [], **from_file, **given}
    if "base_uri" in given:
        found.update(_of_uri(given["base_uri"]))
    if found["format"] not in FORMATS:
        raise SettingsError(f"Format {found['format']} not recognised")
    return argparse.Namespace(**found)


def _section(file: Path, node: str, *, named: bool) -> dict[str, Any]:
    from configparser import ConfigParser, Error

    reader = ConfigParser(interpolation=None)
    try:
        reader.read(file, encoding="utf-8")
        if node not in reader:
            if named:
                raise SettingsError(f"Could not read section '{node}' in config file '{file}'")
            return {}
        values = dict(reader.items(node))
    except (Error, UnicodeDecodeError) as error:
        raise SettingsError(f"Could not read config file '{file}': {error}") from None
    words = {"true": True, "false": False}
    return {name: words.get(value.lower(), value) for name, value in values.items()}


def _of_uri(uri: str) -> dict[str, Any]:
    from urllib.parse import urlsplit

    parts = urlsplit(uri)
    found: dict[str, Any] = {"ssl": True} if parts.scheme == "https" else {}
    for name in ("hostname", "port", "username", "password"):
        if getattr(parts, name) is not None:
            found[name] = getattr(parts, name)
    return found
