"""The event loop of a broker: uvloop, or asyncio's own; both without TLS where there is none.

Both import `ssl` when they are imported, and never ask for it again. It takes 1 MiB. A broker that
cannot have connections with TLS imports them with a stand-in under that name, so that they have no
TLS. Whatever is imported later, such as a client of HTTPS, finds `ssl`.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from harebell.server.net.tls import StartError

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Callable

    from harebell.config import Config

_SSL = "ssl"
_ASYNCIO = "asyncio"
_UVLOOP = "uvloop"


class _WithoutTls(ModuleType):
    """Has every name that is asked for: numbers are 0, and of the classes there is no object."""

    def __getattr__(self, name: str) -> Any:
        value = 0 if name.startswith("SSL_") else type(name, (Exception,), {})
        setattr(self, name, value)
        return value


def import_loop(config: Config) -> None:
    """Import the packages of the loop, before anything else does."""
    if _has_tls(config) or _SSL in sys.modules:
        _import(config.loop)
        return
    sys.modules[_SSL] = _WithoutTls(_SSL)
    try:
        _import(config.loop)
    finally:
        del sys.modules[_SSL]


def _has_tls(config: Config) -> bool:
    """True if the loop may have connections with TLS.

    They need a certificate at the start, because no reload adds an address. Brokers of a cluster
    may connect to each other with TLS.
    """
    return config.tls_cert is not None or config.storage != "" or config.storage_stores > 1


def _import(loop: str) -> ModuleType:
    """Import what a loop needs, and return the package that makes it."""
    asyncio = import_module(_ASYNCIO)
    if loop == _ASYNCIO:
        return asyncio
    try:
        return import_module(_UVLOOP)
    except ImportError:
        return asyncio


def loop_factory(loop: str) -> Callable[[], AbstractEventLoop]:
    """Return the factory of the event loop: uvloop if installed, unless configured otherwise.

    Raises:
        StartError: uvloop is configured, and not installed.
    """
    package = _import(loop)
    if loop == _UVLOOP != package.__name__:
        raise StartError("loop is 'uvloop', which is not installed: pip install uvloop")
    factory: Callable[[], AbstractEventLoop] = package.new_event_loop
    return factory
