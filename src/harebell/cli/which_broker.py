"""Which broker a verb is about: the option `--url` and the variable HAREBELL_URL, for every verb.

    amqp://ann:sesame@host:5672/vhost    messages go there; administration asks the HTTP API of the
                                         same host
    https://ann@host:15671               administration; messages go to AMQP of the same host
    /var/lib/harebell                    the broker of this machine on that data directory

The older words are accepted, too: `--server` and HAREBELL_SERVER, `--data-dir`.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

import click

from harebell.cli.verb import NotConnected, WrongUsage

if TYPE_CHECKING:
    from harebell.management.control.remote import Remote

URL_VARIABLE = "HAREBELL_URL"
SERVER_VARIABLE = "HAREBELL_SERVER"
DEFAULT_URL = "amqp://guest:guest@127.0.0.1:5672/%2F"
_GIVEN = "harebell.url"
_VHOST = "harebell.vhost"
_HTTP = {"http": "amqp", "https": "amqps"}
_SERVERS: dict[str, Remote] = {}
"""Those that this process has asked, by their URLs."""
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


def _remember(ctx: click.Context, _param: click.Parameter, value: str | None) -> str | None:
    """Keep the URL where the verb finds it, whether it is before or behind the verb."""
    if value is not None:
        ctx.meta[_GIVEN] = value
    return value


def url_option(help_text: str, *names: str, hidden: bool = False, **more: Any) -> click.Option:
    """Return an option that names the broker."""
    return click.Option(
        list(names or ("--url",)),
        metavar="URL",
        callback=_remember,
        hidden=hidden,
        help=help_text,
        **more,
    )


def about(context: click.Context, url: str, vhost: str) -> None:
    """Let what runs in a context be about the broker and the vhost of a shell; "" for neither."""
    if url:
        context.meta.setdefault(_GIVEN, url)
    if vhost:
        context.meta[_VHOST] = vhost


def given_url() -> str:
    """Return the URL on the command line; "" for none."""
    return _given()[0]


def _given(kept: str = _GIVEN) -> tuple[str, str]:
    """Return the URL on the command line and its option; "" for none."""
    context = click.get_current_context(silent=True)
    return ("" if context is None else str(context.meta.get(kept, ""))), "--url"


def in_vhost(url: str, vhost: str) -> str:
    """Return an address of AMQP with another vhost."""
    address, question, parameters = url.partition("?")
    scheme, _, rest = address.partition("://")
    authority = rest.partition("/")[0]
    return f"{scheme}://{authority}/{quote(vhost, safe='')}{question}{parameters}"


def is_path(url: str) -> bool:
    """Whether a URL is the path of a directory."""
    return "://" not in url


def absolute(place: str) -> str:
    """Return a place of backups: a URL as it is, the path of a directory as an absolute one."""
    return str(Path(place).absolute()) if is_path(place) else place


def administered(data_dir: str | None) -> tuple[str, str | None]:
    """Return what a verb of administration asks: the URL of an HTTP API, or a data directory.

    Args:
        data_dir: the directory of `--data-dir`, if it was given.

    Returns:
        The URL, or "" for a broker of this machine, and its data directory, if one is named.

    Raises:
        WrongUsage: the URL is none.
    """
    if data_dir is not None:
        return "", data_dir
    url, source = _given()
    if not url:
        url, source = os.environ.get(SERVER_VARIABLE, ""), SERVER_VARIABLE
    if not url:
        url, source = os.environ.get(URL_VARIABLE, ""), URL_VARIABLE
        parts = urlsplit(url)
        if parts.scheme not in ("", *_HTTP) and parts.hostname in _LOOPBACK:
            # The variable of `publish` names a broker of this machine, which has a control socket.
            return "", None
    if not url or is_path(url):
        return "", url or None
    return _http(url, source), None


def server_at(url: str, *, asks: bool = True) -> Remote:
    """Return the broker at a URL; its password is asked for once.

    Args:
        url: of its HTTP API.
        asks: whether the user may be asked for a password; not while Tab is answered.

    Raises:
        ServerError: its address, password or certificates cannot be used.
    """
    from harebell.management.control.remote import configured

    if url not in _SERVERS:
        _SERVERS[url] = configured(url, _asked_password if asks else lambda _: None)
    return _SERVERS[url]


def forget_servers() -> None:
    """Ask for passwords again: one may have been mistyped."""
    _SERVERS.clear()


def _asked_password(text: str) -> str | None:
    """Ask the user for a password; None without a terminal."""
    if sys.stdin is None or not sys.stdin.isatty():
        return None
    return str(click.prompt(text, hide_input=True, err=True))


def _http(url: str, source: str) -> str:
    """Return the URL of the HTTP API of a broker."""
    if url.partition("://")[0] in _HTTP:
        return url
    from harebell.client.url import URL, URLError

    try:
        target = URL.parse(url)
    except URLError as error:
        raise WrongUsage(f"{source}: {error}") from None
    user = urlsplit(url).netloc.rpartition("@")[0]
    host = f"[{target.host}]" if ":" in target.host else target.host
    # The client's default user has its default password.
    login = user or "guest:guest"
    return f"http{'s' if target.tls else ''}://{login}@{host}"


def amqp_url(given: str | None, option: str = "--url") -> str:
    """Return the address of AMQP for a verb that sends or takes messages.

    Args:
        given: the URL of the verb's own option; None for none.
        option: the name of that option, for errors.

    Raises:
        WrongUsage: it is no URL.
        NotConnected: no broker runs on the data directory that it names.
    """
    if given:
        return _amqp_url(given, option)
    url, source = _given()
    if not url:
        url, source = os.environ.get(URL_VARIABLE) or DEFAULT_URL, URL_VARIABLE
    url = _amqp_url(url, source)
    vhost, _ = _given(_VHOST)
    return in_vhost(url, vhost) if vhost else url


def _amqp_url(url: str, source: str) -> str:
    from harebell.client.url import URL, URLError

    if is_path(url):
        return _listener_of(Path(url), source)
    scheme, _, rest = url.partition("://")
    if scheme in _HTTP:
        login, at, _ = rest.partition("/")[0].rpartition("@")
        host = urlsplit(url).hostname or ""
        url = f"{_HTTP[scheme]}://{login}{at}{f'[{host}]' if ':' in host else host}"
    try:
        URL.parse(url)
    except URLError as error:
        raise WrongUsage(f"{source}: {error}") from None
    return url


def _listener_of(data_dir: Path, source: str) -> str:
    """Return the address that the broker on a data directory listens on."""
    from harebell.management.control.client import ControlError, NotRunning, ask_overview

    if not data_dir.is_dir():
        raise WrongUsage(
            f"{source}: {str(data_dir)!r} is no URL and no data directory: write "
            "amqp://USER@HOST, https://USER@HOST:15671 or a directory"
        )
    try:
        listeners = ask_overview(data_dir)["listeners"]
    except NotRunning as error:
        raise NotConnected(str(error)) from None
    except ControlError as error:
        raise WrongUsage(f"{source}: {error}") from None
    addresses = [str(each) for each in listeners if each.startswith("amqp://")]
    if not addresses:
        raise NotConnected(f"the broker on {data_dir} listens on no port without TLS: write a URL")
    return addresses[0].replace("//[::]:", "//127.0.0.1:").replace("//0.0.0.0:", "//127.0.0.1:")
