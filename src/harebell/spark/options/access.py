"""Parse the options for the address of the broker and the user, for reading and writing.

Everything may be in `url`; single options override it. A password is in `url` or `password`,
which Spark redacts in plans, or in a file on the driver's machine, and no text of Harebell
contains it.
"""

from __future__ import annotations

import os
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


def read_options(
    values: Mapping[str, str],
    readers: Mapping[str, tuple[str, Reader]],
    names: Mapping[str, str],
    environment: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Parse each option by itself; the address has a default.

    Args:
        values: the options, by name in lower case; those without a parser are left out.
        readers: their attributes and parsers, by name in lower case.
        names: their names as an error has them, by name in lower case.
        environment: may contain the address; by default that of the process.

    Returns:
        The parsed options by attribute, with everything about the address in `url`.

    Raises:
        OptionError: an option is wrong; the text says how to correct it.
    """
    environment = os.environ if environment is None else environment
    default = environment.get(URL_VARIABLE) or DEFAULT_URL
    read: dict[str, Any] = {}
    for name, value in {**values, "url": values.get("url", default)}.items():
        if name in readers:
            attribute, reader = readers[name]
            read[attribute] = reader(names[name], value)
    _take_address(read)
    return read


def _take_address(read: dict[str, Any]) -> None:
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
