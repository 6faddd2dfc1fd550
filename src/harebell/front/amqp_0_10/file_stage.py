"""A file.stage that is being received: its body is written to the staging area frame by frame.

A file takes no memory before it is published, and received bytes are kept when the connection ends.
A resumed session sends the whole command again, from the offset in file.open-ok; bytes that are
already stored are skipped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harebell.base.errors import ProtocolError, Refusal
from harebell.front.amqp_0_10.errors import (
    ILLEGAL_ARGUMENT,
    PRECONDITION_FAILED,
    ExecutionError,
)
from harebell.front.amqp_0_10.file_stream_adapter import FileStreamAdapter, adapter_of
from harebell.wire.convert.listed import to_list
from harebell.wire.v09.property_list import FILE, PropertyList

if TYPE_CHECKING:
    from harebell.front.amqp_0_10.assembly import Assembly
    from harebell.front.amqp_0_10.session import Session

STAGE = b"\x09\x08"
"""Class and code of file.stage."""


def read_list(listed: PropertyList, header: bytes) -> bytes:
    """Return the property list of a content.

    Raises:
        ExecutionError: 531, it is missing in the header segment or malformed.
    """
    try:
        raw = to_list(listed, header)
        listed.parse(raw)
    except ValueError as error:
        raise ExecutionError(ILLEGAL_ARGUMENT, f"{listed.name}: {error}") from None
    except ProtocolError as error:
        raise ExecutionError(ILLEGAL_ARGUMENT, f"{listed.name}: {error.text}") from None
    return raw


class Stage:
    """A file that is being received.

    Args:
        adapter: of its session.
        header: its header segment.
    """

    def __init__(self, adapter: FileStreamAdapter, header: bytes) -> None:
        self._arrivals = adapter.classes.arrivals
        self._adapter = adapter
        self._staged = self._arrivals.to_stage()
        # Bytes that were stored since file.open-ok announced an offset: the peer sends them again.
        self._skipped_bytes = self._staged.staged - self._arrivals.announced
        self._arrivals.describe(self._staged, read_list(FILE, header))

    def take(self, payload: bytes) -> None:
        """Take the next bytes of the body."""
        session = self._adapter.session
        if session.ended:
            return
        try:
            self._take(payload)
        except (Refusal, ProtocolError) as error:
            # The command gets its number when it is whole, but the exception has to name it now.
            session.begin()
            session.caught(error, *STAGE)

    def _take(self, payload: bytes) -> None:
        if self._skipped_bytes:
            skipped = min(self._skipped_bytes, len(payload))
            self._skipped_bytes -= skipped
            payload = payload[skipped:]
        staged = self._staged
        if staged.staged + len(payload) > staged.size:
            text = f"file.stage has more than the {staged.size} octets of '{staged.key[2]}'"
            raise ExecutionError(PRECONDITION_FAILED, text)
        self._arrivals.write(staged, payload)

    def finish(self) -> None:
        """End the stage: its body has arrived.

        Raises:
            ExecutionError: 406, the body is shorter than announced; received bytes are kept.
        """
        staged = self._staged
        self._arrivals.detach(staged)
        if not staged.whole:
            text = (
                f"file.stage ends early: {staged.staged} of the {staged.size} octets of "
                f"'{staged.key[2]}' are staged"
            )
            raise ExecutionError(PRECONDITION_FAILED, text)


def begin_body(session: Session, assembly: Assembly) -> None:
    """Send the body of a file.stage to the staging area, once its header has arrived."""
    if assembly.command()[:2] != STAGE or session.done_before():
        return
    adapter = adapter_of(session)
    try:
        adapter.stage = Stage(adapter, assembly.header())
    except (Refusal, ProtocolError) as error:
        session.begin()
        session.caught(error, *STAGE)
    else:
        assembly.drain = adapter.stage.take
