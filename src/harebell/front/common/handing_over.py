"""Connections that another broker of the cluster continues, because it owns their vhost.

    client                this broker                          owner of the vhost
      | header ... open      |                                    |
      |--------------------->| hand_over: ends without an answer  |
      |                      | the kept input, from the header    |
      |                      |----------------------------------->| replays the handshake:
      |                      |                                    | drop_repeated, for the client
      |<----------------------------------------- open-ok --------| has had these answers

The owner checks login and permission itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from harebell.front.common.connection_log import log_handed_over
from harebell.wire.v09.states import ConnectionState

if TYPE_CHECKING:
    from harebell.front.common.base_connection import BaseConnection

_ENDING = (ConnectionState.CLOSING, ConnectionState.CLOSED)


def hand_over(connection: BaseConnection, vhost: str) -> bool:
    """End a connection without an answer if its vhost is in another store: the owner answers.

    The shell passes on what the client has sent, from the protocol header.

    Args:
        connection: the one that has asked for the vhost; its login has been counted.
        vhost: the vhost that connection.open names, and that this broker does not have.

    Returns:
        False if no other store has the vhost, or the client comes from another broker.
    """
    # A replayed client is not passed on again: brokers that each believe another one to be the
    # owner would pass it round in a circle.
    if connection.peer.replayed or not connection.settings.elsewhere(vhost):
        return False
    connection.has_opened()
    log_handed_over(connection, vhost)
    # The owner needs the random bytes of the challenge that the client has answered.
    connection.peer = replace(connection.peer, entropy=connection.entropy)
    connection.handed_over = vhost
    connection.finish()
    return True


def may_be_handed_over(connection: BaseConnection) -> bool:
    """True until the client is served here or refused: its input has to be kept."""
    if connection.handed_over:
        return True
    return connection.vhost is None and connection.state not in _ENDING


def drop_repeated(connection: BaseConnection) -> None:
    """Drop the output of a replayed handshake: another broker has sent it to the client."""
    if connection.peer.replayed:
        connection.out.take()
