"""Errors of the dtx classes: each of them ends the channel.

The specification requires a channel exception for every refusal, and 541 for internal errors; the
transaction manager's other sessions continue.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from harebell.base.errors import ProtocolError
from harebell.front.amqp_0_10_transitional.access import check_ticket
from harebell.front.common.access_tickets import ACTIVE
from harebell.front.common.errors import describe, soft
from harebell.model.xa.branch import BranchError
from harebell.model.xa.states import Fault
from harebell.model.xa.xid import XidError

if TYPE_CHECKING:
    from harebell.front.amqp_0_10_transitional.channel import TransitionalChannel

_CODES = {
    Fault.UNKNOWN_XID: 404,
    Fault.ALREADY_KNOWN: 530,
    Fault.ILLEGAL_STATE: 503,
    Fault.INVALID: 503,
    Fault.BAD_VALUE: 530,
    Fault.TOO_MUCH: 506,
    Fault.FAILED: 541,
}


@contextmanager
def guarded(channel: TransitionalChannel, ids: tuple[int, int], ticket: int) -> Iterator[None]:
    """Check the ticket of a method, and translate errors of its handler.

    Args:
        channel: the channel of the method.
        ids: its class and method id.
        ticket: its access ticket; 0 for a method without one.

    Raises:
        ProtocolError: for the channel.
    """
    check_ticket(channel, ticket, ACTIVE, ids)
    try:
        yield
    except ProtocolError:
        raise
    except XidError as error:
        raise soft(530, str(error), *ids) from None
    except BranchError as error:
        raise soft(_CODES[error.fault], error.text, *ids) from None
    except Exception as error:
        # Not the connection, as for other internal errors: the rule "internal-error" has 541 soft.
        connection = channel.connection
        connection.log("error", f"{connection.peer}: {describe(error)}")
        raise soft(541, "internal error", *ids) from None
