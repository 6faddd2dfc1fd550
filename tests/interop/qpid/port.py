"""What the rewriting of `qpid-python` by lib2to3 leaves: octets, and what Python has lost since.

The client keeps octets in str, and so it stays: each letter is an octet, and sockets, `struct` and
texts are where octets become letters and the other way round.
"""

from __future__ import annotations

import re
from pathlib import Path

_STRUCT = """import struct as _struct

calcsize, error = _struct.calcsize, _struct.error

def _octets(value):
    return value.encode("latin-1") if isinstance(value, str) else value

def pack(form, *values):
    return _struct.pack(form, *map(_octets, values)).decode("latin-1")

def unpack(form, octets):
    values = _struct.unpack(form, _octets(octets))
    return tuple(v.decode("latin-1") if isinstance(v, bytes) else v for v in values)
"""
_CONNECT = '''class Latin:
  """A socket whose octets are letters."""

  def __init__(self, sock):
    self.sock = sock

  def send(self, letters):
    return self.sock.send(letters.encode("latin-1"))

  def sendall(self, letters):
    return self.sock.sendall(letters.encode("latin-1"))

  def recv(self, n):
    return self.sock.recv(n).decode("latin-1")

  def __getattr__(self, name):
    return getattr(self.sock, name)

def connect(host, port):
  return Latin(_connect(host, port))

def _connect(host, port):'''
_COMPARE = "".join(
    f"  def __{name}__(self, other): return self.__cmp__(other) {sign} 0\n"
    for name, sign in (
        ("eq", "=="),
        ("ne", "!="),
        ("lt", "<"),
        ("le", "<="),
        ("gt", ">"),
        ("ge", ">="),
    )
)
_LOCKED = """def synchronized(meth):
  import functools
  @functools.wraps(meth)
  def locked(self, *args, **kwargs):
    with self._lock:
      return meth(self, *args, **kwargs)
  return locked

"""
_FRAME_TYPE = """DECODERS = {}

class FrameType(type):
"""
_FRAME = """        DECODERS[t.type] = t
      return t

class Frame(metaclass=FrameType):

  DECODERS = DECODERS
"""
_UTF8 = '.encode("latin-1").decode("utf8")'

_MANAGEMENT = """# Qpid's management over messages is another package, and another broker's.
class Management:
  def __init__(self, *arguments, **more):
    raise NotImplementedError("asks Qpid's management")

class Console:
  pass

Session = BrokerAgent = EventHelper = Management
"""

_CHANGES: dict[str, tuple[tuple[str, str], ...]] = {
    "qpid/codec010.py": (
        ('.decode("utf8")', _UTF8),
        ('s.encode("utf8")', 's.encode("utf8").decode("latin-1")'),
        ("size/8", "size//8"),
        ("    if isinstance(b, str):\n      b = b.encode('utf8')\n", ""),
        ("class CodecException", "class buffer(str): pass\n\nclass CodecException"),
        ("    str: map_str,\n", ""),
        (
            "string.joinfields(list(map(self._write_map_elem, list(m.keys()), list(m.values()))), "
            '"")',
            '"".join(map(self._write_map_elem, m.keys(), m.values()))',
        ),
        ('UUID(bytes=self.unpack("16s"))', 'UUID(bytes=self.unpack("16s").encode("latin-1"))'),
    ),
    "qpid/util.py": (
        ("def connect(host, port):", _CONNECT),
        ("from ssl import wrap_socket as ssl", "ssl = None"),
    ),
    "qpid/messaging/transports.py": (("from ssl import wrap_socket, ", "from ssl import "),),
    "qpid/messaging/message.py": (
        ("TYPE_MAPPINGS={", "from qpid.codec010 import buffer\n\nTYPE_MAPPINGS={"),
        ("  buffer: None,\n  str: None,", "  buffer: None,"),
        ('x.encode("utf8")', 'x.encode("utf8").decode("latin-1")'),
        ('x.decode("utf8")', "x" + _UTF8),
    ),
    "qpid/compat.py": (('"\\0")', 'b"\\0")'), ("e[0]", "e.args[0]")),
    "qpid/datatypes.py": (
        ("class Struct:", "def _cmp(a, b): return (a > b) - (a < b)\n\nclass Struct:"),
        ("class Serial:\n", "class Serial:\n" + _COMPARE),
        (" cmp(", " _cmp("),
    ),
    "qpid/mimetype.py": (("import re, rfc822", "import re\nimport email.utils as rfc822"),),
    "qpid/spec08.py": (
        ("import re, new, ", "import re, types, "),
        ("new.module(", "types.ModuleType("),
    ),
    "qpid/codec.py": (("from struct import *", "from latin_struct import *"),),
    "qpid/peer.py": (("(str, buffer)", "str"), ("isAlive()", "is_alive()")),
    "qpid/queue.py": (("isAlive()", "is_alive()"),),
    "qpid/connection08.py": (
        ("return SockIO(sock)", "return SockIO(Latin(sock))"),
        ("from .exceptions import", "from .util import Latin\nfrom .exceptions import"),
        ("class Frame:\n\n  DECODERS = {}\n\n  class __metaclass__(type):\n", _FRAME_TYPE),
        ("        Frame.DECODERS[t.type] = t\n      return t\n", _FRAME),
    ),
    "qpid/testlib.py": (
        ("import queue\n", "import queue as standard_queue\n"),
        ("except queue.Empty", "except standard_queue.Empty"),
    ),
    "mllib/parsers.py": (
        ("import sgmllib, xml", "import xml"),
        ("sgmllib.SGMLParser", "object"),
    ),
    "qpid_tests/broker_0_10/priority.py": (
        ("temp.sort(key_to_cmp(key, reverse=reverse))", "temp.sort(key=key, reverse=reverse)"),
    ),
    "qpid_tests/broker_0_9/echo.py": (("FRAME_MIN_SIZE / 2", "FRAME_MIN_SIZE // 2"),),
    "qpid_tests/broker_0_10/exchange.py": (
        ("import queue, ", "import queue as standard_queue\nimport "),
        ("queue.Empty", "standard_queue.Empty"),
    ),
}
"""By file: what stands there, and what shall."""


def port(root: Path) -> None:
    """Finish what lib2to3 began.

    Raises:
        LookupError: a file is not as it should be.
    """
    (root / "latin_struct.py").write_text(_STRUCT)
    for name, changes in _CHANGES.items():
        text = (root / name).read_text()
        for old, new in changes:
            if old not in text:
                raise LookupError(f"{name} has no {old!r}")
            text = text.replace(old, new)
        (root / name).write_text(text)
    (root / "qmf").mkdir()
    (root / "qmf/__init__.py").write_text("")
    (root / "qmf/console.py").write_text(_MANAGEMENT)
    (root / "qpidtoollibs").mkdir()
    for name in ("__init__", "broker"):
        (root / f"qpidtoollibs/{name}.py").write_text(_MANAGEMENT)
    for name in ("qpid_tests/__init__.py", "qpid_tests/broker_0_10/__init__.py"):
        (root / name).write_text("")
    locks = root / "qpid/concurrency.py"
    text = locks.read_text()
    begin, end = text.index("def synchronized"), text.index("class Waiter")
    locks.write_text(text[:begin] + _LOCKED + text[end:])
    for directory in ("qpid", "qpid_tests", "mllib"):
        for path in (root / directory).rglob("*.py"):
            path.write_text(_imported(path, path.read_text()))


def _imported(path: Path, text: str) -> str:
    """A module with its neighbours imported as such, and `next` as the method that it is."""
    beside = {each.stem for each in path.parent.glob("*.py")} - {path.stem, "queue", "socket"}

    def apart(match: re.Match[str]) -> str:
        names = [name.strip() for name in match[1].split(",")]
        ours = [name for name in names if name in beside]
        others = [name for name in names if name not in beside]
        lines = [f"from . import {', '.join(ours)}"] if ours else []
        lines += [f"import {', '.join(others)}"] if others else []
        return "\n".join(lines)

    text = re.sub(r"^import ([\w, ]+)$", apart, text, flags=re.MULTILINE)
    text = re.sub(r"^import (.*, )?struct\b(, .*)?$", _with_latin_struct, text, flags=re.MULTILINE)
    text = text.replace("def __next__(self", "def next(self")
    return re.sub(r"(?<!def )\bnext\((self(?:\.\w+)*)\)", r"\1.next()", text)


def _with_latin_struct(match: re.Match[str]) -> str:
    others = ((match[1] or "") + (match[2] or "")).replace(", , ", ", ").strip(", ")
    return "import latin_struct as struct" + (f"\nimport {others}" if others else "")
