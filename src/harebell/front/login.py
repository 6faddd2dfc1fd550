"""How a link logs in with SASL: what a mechanism may know of it, and what the old versions offer.

0-8, 0-9, 0-9-1 and the transitional 0-10 have the mechanisms that end with the first response, as
their clients know no others: those of RabbitMQ. The final 0-10 has challenges, too
(`harebell.front.session010.login`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harebell.auth.sasl.exchange import Context, Exchange
from harebell.auth.sasl.exchanges import begin_single, single_offers
from harebell.wire.v09.fields import decode_table

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from harebell.front.link import Link


def _table_without_length(data: bytes) -> Mapping[str, Any]:
    """Decode an AMQPLAIN response."""
    table, _ = decode_table(len(data).to_bytes(4) + data)
    return table


def context_of(link: Link) -> Context:
    """Who logs in from where, and how that is allowed."""
    peer, settings = link.peer, link.settings
    return Context(
        link.users,
        peer.address,
        settings.rng,
        peer.certificate,
        settings.anonymous_user,
        settings.mechanisms,
        _table_without_length,
    )


def offered(link: Link) -> bytes:
    """The mechanisms that can succeed with one response, as connection.start names them."""
    return " ".join(single_offers(context_of(link))).encode()


def begun(link: Link, mechanism: str) -> Exchange | None:
    """The exchange of a mechanism that is offered; None for others."""
    return begin_single(mechanism, context_of(link))
