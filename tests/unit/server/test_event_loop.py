"""What is imported for the event loop, with TLS and without it."""

from __future__ import annotations

import subprocess
import sys

import pytest

_PLAIN = "config = Config(loop='{loop}')"
_TLS = (
    "config = Config(loop='{loop}', tls_cert='cert.pem')",
    "config = Config(loop='{loop}', storage='postgresql://host/name')",
    "config = Config(loop='{loop}', storage_stores=2)",
)
_IMPORTED = """
import sys
from harebell.config import Config
from harebell.server.event_loop import import_loop, loop_factory
assert not {{"asyncio", "uvloop", "ssl"}} & sys.modules.keys()
{config}
import_loop(config)
loop = loop_factory(config.loop)()
print(type(loop).__module__.partition(".")[0], "ssl" in sys.modules)
loop.close()
"""
_LATER = """
import ssl
context = ssl.create_default_context()
print(isinstance(context, ssl.SSLContext), issubclass(ssl.SSLError, OSError))
"""
_MISSING = """
import sys
sys.modules["uvloop"] = None
from harebell.server.event_loop import loop_factory
from harebell.server.net.tls import StartError
print(loop_factory("auto").__module__)
try:
    loop_factory("uvloop")
except StartError as error:
    print(error)
"""


def printed(script: str) -> str:
    """What a script prints in a process of its own."""
    command = [sys.executable, "-c", script]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_a_broker_without_tls_imports_its_loop_without_ssl(loop: str) -> None:
    assert printed(_IMPORTED.format(config=_PLAIN.format(loop=loop))) == f"{loop} False"


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
@pytest.mark.parametrize("config", _TLS)
def test_a_broker_that_may_have_tls_imports_ssl_with_its_loop(loop: str, config: str) -> None:
    assert printed(_IMPORTED.format(config=config.format(loop=loop))) == f"{loop} True"


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_what_imports_ssl_after_the_loop_finds_the_real_one(loop: str) -> None:
    lines = printed(_IMPORTED.format(config=_PLAIN.format(loop=loop)) + _LATER).splitlines()
    assert lines[1] == "True True"


def test_a_loop_that_is_configured_has_to_be_installed() -> None:
    first, second = printed(_MISSING).splitlines()
    assert first.startswith("asyncio")
    assert "pip install uvloop" in second
