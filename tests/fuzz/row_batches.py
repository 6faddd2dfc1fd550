"""Record batches of a peer that are to become messages: refused with a text, or read within bounds.

Both kernels have to say the same of every row. The first octet chooses the columns.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import harebell.kernels.rows as native
from harebell.base.errors import BatchError
from harebell.base.row_columns import columns_of
from harebell.kernels.output import OutBuffer
from harebell.kernels.publishing import publishing_id
from harebell.wire.arrow.decode import decode_batch
from harebell.wire.arrow.encode import record_batch

CHOICES = (
    "value",
    "value,routing_key,exchange",
    "value,headers,headers_raw",
    "properties.message_id,properties.priority,properties.timestamp,value",
)
_ROWS = 8
"""How many rows of a batch are looked at."""


def _twin() -> ModuleType:
    path = str(Path(native.__file__).with_name("rows.py"))
    loader = importlib.machinery.SourceFileLoader("harebell_rows_twin", path)
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


_KERNELS = (native, _twin())


def row_batches(data: bytes) -> None:
    """Whatever comes, both kernels make the same messages and frames of it, or the same error."""
    if not data:
        return
    columns, fields = columns_of(CHOICES[data[0] % len(CHOICES)])
    message = data[1:]
    try:
        found = decode_batch(message, columns, fields)
    except BatchError:
        return
    said = [_said(kernel, message, found, columns, fields) for kernel in _KERNELS]
    assert said[0] == said[1], "the compiled kernel and its twin differ"


def _said(
    kernel: Any, message: bytes, found: Any, columns: Sequence[str], fields: Sequence[str]
) -> list[Any]:
    reader = kernel.Rows(columns, fields, "", "key", 2)
    try:
        reader.load(message, *found)
    except BatchError as error:
        return [str(error)]
    said: list[Any] = []
    for row in range(min(found.rows, _ROWS)):
        out = OutBuffer()
        try:
            made = reader.message(row)
            said.append((made.exchange, made.routing_key, made.raw, made.body))
            said.append(publishing_id(made.raw))
            reader.publish(out, 1, 0, 4096, row, row + 1)
            said.append(out.take())
        except BatchError as error:
            said.append(str(error))
    return said


def row_seeds() -> list[bytes]:
    """Batches that are good, of each choice of columns."""
    offsets = b"".join(each.to_bytes(4, "little") for each in (0, 2, 3))
    text = [None, offsets, b"abc"]
    number = [b"\3", bytes(8)]
    return [
        b"\0" + record_batch(2, [(2, 0)], text, None),
        b"\1" + record_batch(2, [(2, 0)] * 3, text * 3, None),
        b"\2" + record_batch(2, [(2, 0)] * 6, [*text, None, offsets, None, *text * 3], None),
        b"\3" + record_batch(2, [(2, 0)] * 5, [None, *text, *number, None, bytes(16), *text], None),
    ]
