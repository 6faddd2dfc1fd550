"""Renew the secret of a connection: its user goes on with the permissions of now.

Passwords do not expire, so a secret is accepted from their users; a token is replaced. The user's
permissions are looked up again, and consumers of queues that it may no longer read are cancelled,
as by RabbitMQ.
"""

from __future__ import annotations

from collections.abc import Callable

from harebell.auth.authority import RemoteUser
from harebell.front.common.base_connection import BaseConnection
from harebell.front.common.decisions import await_answer

REFUSED = "New secret was refused by one of the backends"


def renew_secret(
    connection: BaseConnection,
    secret: str,
    renewed: Callable[[], object],
    refused: Callable[[str], object],
) -> None:
    """Replace the secret of a connection.

    Args:
        connection: of the user.
        secret: the new one.
        renewed: called when it is in force.
        refused: called with the text for the peer if a backend refuses it.

    Either is called once, now or in another turn, unless the connection ends before.
    """
    user = connection.user
    if not isinstance(user, RemoteUser) or user.renew is None:
        _check_again(connection)
        renewed()
        return
    # A list, because the answer is set in one function and read in another; "" is no refusal.
    renew, refusal = user.renew, [""]

    def ask(wake: Callable[[], None]) -> None:
        def answered(why: str) -> None:
            refusal[0] = why
            wake()

        renew(secret, answered)

    def go_on() -> None:
        if refusal[0]:
            text = f"Secret update was refused for user '{user.name}': {refusal[0]}"
            connection.log("error", f"{connection.peer}: {text}")
            refused(REFUSED)
            return
        _check_again(connection)
        renewed()

    await_answer(connection, ask, go_on)


def _check_again(connection: BaseConnection) -> None:
    """Check the permissions of the open channels again."""
    if connection.vhost is not None:
        # A new epoch: channels look up the exchange of their next publish again.
        connection.vhost.router.changed()
    for channel in list(connection.channels.values()):
        channel.cancel_forbidden()
