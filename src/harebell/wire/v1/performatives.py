"""Composites to octets and back."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from harebell.base.errors import DecodeError
from harebell.kernels.limits import PERFORMATIVE_VALUES
from harebell.wire.v1.composites import Begin, Close, Detach, End, Open
from harebell.wire.v1.decoding import ValueReader
from harebell.wire.v1.described_list import DescribedList
from harebell.wire.v1.tables import COMPOSITES
from harebell.wire.v1.values import Described, Symbol, ULong

_BY_DESCRIPTOR: dict[Any, Any] = {
    **{spec.code: spec for spec in COMPOSITES.values()},
    **{spec.symbol: spec for spec in COMPOSITES.values()},
}


def decode_performative(body: bytes, start: int = 0) -> tuple[DescribedList, int]:
    """Decode a composite; return it and where it ends.

    Args:
        body: of a frame; octets behind the composite are its payload.
        start: where the composite begins.

    Raises:
        DecodeError: it is malformed or unknown; the text names composite and field.
    """
    reader = ValueReader(body, start, len(body), False, PERFORMATIVE_VALUES)
    composite = composite_of(reader.value())
    if not isinstance(composite, DescribedList):
        raise DecodeError(f"no composite that is known: {composite!r:.100}")
    return composite, reader.offset


def decode_repeated(body: bytes) -> tuple[DescribedList, int]:
    """Decode the performative of a frame as `decode_performative`.

    Those that begin and end connections, sessions and links are the same objects for the same
    octets, as clients of one kind send the same; handlers change none of these.
    """
    if len(body) <= _REPEATED_BYTES and body[:_HEAD] in _REPEATED:
        return _repeated(body)
    return decode_performative(body)


_HEAD = 3
_REPEATED = frozenset(
    b"\0\x53" + bytes((kind.SPEC.code,)) for kind in (Open, Begin, Detach, End, Close)
)
_REPEATED_BYTES = 128
_repeated = lru_cache(maxsize=256)(decode_performative)


def composite_of(value: Any) -> Any:
    """Return the composite that a decoded value is; other values unchanged.

    Raises:
        DecodeError: the fields of a known composite do not fit.
    """
    if type(value) is not Described or type(value.descriptor) not in (ULong, Symbol):
        return value
    spec = _BY_DESCRIPTOR.get(value.descriptor)
    if spec is None:
        return value
    if type(value.value) is not list:
        raise DecodeError(f"{spec.name}: must be a list")
    return spec.read(value.value, composite_of)


def encode_composite(composite: DescribedList) -> bytes:
    """Return the octets of a composite.

    Raises:
        TypeError, ValueError: a value does not fit its field; the text names both.
    """
    return composite.encoded()


def code_of(composite: DescribedList | type[DescribedList]) -> int:
    """Return the code of the descriptor of a composite or its type."""
    code: int = composite.SPEC.code
    return code
