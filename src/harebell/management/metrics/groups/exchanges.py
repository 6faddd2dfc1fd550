"""Metrics of exchanges and vhosts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from harebell.management.metrics.section import Selection, section
from harebell.management.metrics.text import Row, escaped

if TYPE_CHECKING:
    from harebell.model.exchange.kind import Exchange


def _exchanges(chosen: Selection) -> Iterator[tuple[str, Exchange]]:
    """Yield the exchanges of the selected vhosts, each with its labels."""
    for vhost in list(chosen.source.broker.vhosts.values()):
        if chosen.vhosts is None or vhost.name in chosen.vhosts:
            for exchange in list(vhost.exchanges.values()):
                name = escaped(exchange.name)
                yield f'{{vhost="{escaped(vhost.name)}",exchange="{name}"}}', exchange


def _typed(chosen: Selection) -> Iterator[tuple[str, Exchange]]:
    """Yield the exchanges but for the default exchange, each with its labels and its type."""
    for labels, exchange in _exchanges(chosen):
        if exchange.name:
            yield f'{labels[:-1]},type="{escaped(exchange.KIND)}"}}', exchange


@section("""
    by vhost exchange
    counter rabbitmq_exchange_messages_published_total Messages published to it.
""")
def published(chosen: Selection) -> Iterator[Row]:
    """Yield a row for each exchange that was published to."""
    for labels, exchange in _exchanges(chosen):
        if exchange.published:
            yield labels, (exchange.published,)


@section("""
    by vhost exchange type
    gauge rabbitmq_cluster_exchange_bindings Bindings whose source is the exchange.
""")
def bindings(chosen: Selection) -> Iterator[Row]:
    """Yield a row for each exchange, without the default exchange."""
    for labels, exchange in _typed(chosen):
        yield labels, (len(exchange.bindings),)


@section("""
    by vhost exchange type
    gauge rabbitmq_cluster_exchange_name 1; the labels name the exchange.
""")
def names(chosen: Selection) -> Iterator[Row]:
    """Yield a row for each exchange, without the default exchange."""
    for labels, _ in _typed(chosen):
        yield labels, (1,)


@section("""
    by vhost
    gauge rabbitmq_cluster_vhost_status 1: the vhost is running.
""")
def vhosts(chosen: Selection) -> Iterator[Row]:
    """Yield a row for each vhost."""
    for name in list(chosen.source.broker.vhosts):
        if chosen.vhosts is None or name in chosen.vhosts:
            yield f'{{vhost="{escaped(name)}"}}', (1,)
