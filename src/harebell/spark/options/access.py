"""Parse the options for the address of the broker and the user, for reading and writing.

Everything may be in `url`; single options override it. A password is in `url` or `password`,
which Spark redacts in plans, or in a file on the driver's machine, and no text of Harebell
contains it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from harebell.client.url import URL, URLError
from harebell.spark.options.values import OptionError, Reader, read_text, read_url

URL_VARIABLE = "HAREBELL_URL"
DEFAULT_URL = "amqp://guest:guest@127.0.0.1:5672/%2F"

ACCESS: dict[str, tuple[str, Reader]] = {
    "url": ("url", read_url),
    "username": ("username", read_text),
    "password": ("password", lambda _, value: value),
    "passwordFile": ("password_file", read_text),
    "vhost": ("vhost", read_text),
    "cacertfile": ("cacertfile", read_text),
    "certfile": ("certfile", read_text),
    "keyfile": ("keyfile", read_text),
}
"""Names of options: the attribute that they set, and their parser."""
_PARTS = [target for target, _ in ACCESS.values() if target != "url"]


def default_url(values: dict[str, str], environment: Mapping[str, str]) -> None:
    """Set the default of the option `url`.

    Args:
        values: the options, by their names in small letters.
        environment: may contain the address.
    """
    values.setdefault("url", environment.get(URL_VARIABLE) or DEFAULT_URL)


def take_address(read: dict[str, Any]) -> None:
    """Merge the single options for the address into `url`.

    Args:
        read: the parsed options; the options of this module except `url` are removed from it.

    Raises:
        OptionError: the options contradict each other, or the password file cannot be read.
    """
    url: URL = read["url"]
    said = {part: read.pop(part) for part in _PARTS if part in read}
    if "password_file" in said:
        if "password" in said:
            raise OptionError("the options password and passwordFile exclude each other")
        path = said.pop("password_file")
        try:
            said["password"] = Path(path).read_text().rstrip("\r\n")
        except (OSError, UnicodeDecodeError) as error:
            raise OptionError(f"the option passwordFile cannot be read: {error}") from None
    for name in ("cacertfile", "certfile", "keyfile"):
        if name in said and not url.tls:
            raise OptionError(f"the option {name} belongs to TLS: the url must begin with amqps://")
    try:
        read["url"] = replace(url, **said)
    except URLError as error:
        raise OptionError(f"the option keyfile needs the option certfile: {error}") from None
