"""Metrics of exchanges and vhosts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from harebell.management.metrics.text import COUNTER, GAUGE, Metric, Row, escaped

if TYPE_CHECKING:
    from harebell.management.metrics.source import Source
    from harebell.model.exchange.kind import Exchange
    from harebell.model.vhost import VHost

PUBLISHED = (Metric("exchange_messages_published_total", COUNTER, "Messages published to it."),)
BINDINGS = (Metric("exchange_bindings", GAUGE, "Bindings whose source is the exchange."),)
NAMES = (Metric("exchange_name", GAUGE, "1; the labels name the exchange."),)
VHOSTS = (Metric("vhost_status", GAUGE, "1: the vhost is running."),)

Vhosts = frozenset[str] | None


def _exchanges(source: Source, vhosts: Vhosts) -> Iterator[tuple[VHost, Exchange]]:
    for vhost in list(source.broker.vhosts.values()):
        if vhosts is None or vhost.name in vhosts:
            for exchange in list(vhost.exchanges.values()):
                yield vhost, exchange


def _labels(vhost: VHost, exchange: Exchange) -> str:
    return f'{{vhost="{escaped(vhost.name)}",exchange="{escaped(exchange.name)}"}}'


def _typed_labels(vhost: VHost, exchange: Exchange) -> str:
    return f'{_labels(vhost, exchange)[:-1]},type="{escaped(exchange.KIND)}"}}'


def published_rows(source: Source, vhosts: Vhosts) -> Iterator[Row]:
    """Yield a row of `PUBLISHED` for each exchange that was published to."""
    for vhost, exchange in _exchanges(source, vhosts):
        if exchange.published:
            yield _labels(vhost, exchange), (exchange.published,)


def binding_rows(source: Source, vhosts: Vhosts) -> Iterator[Row]:
    """Yield a row of `BINDINGS` for each exchange, without the default exchange."""
    for vhost, exchange in _exchanges(source, vhosts):
        if exchange.name:
            yield _typed_labels(vhost, exchange), (len(exchange.bindings),)


def name_rows(source: Source, vhosts: Vhosts) -> Iterator[Row]:
    """Yield a row of `NAMES` for each exchange, without the default exchange."""
    for vhost, exchange in _exchanges(source, vhosts):
        if exchange.name:
            yield _typed_labels(vhost, exchange), (1,)


def vhost_rows(source: Source, vhosts: Vhosts) -> Iterator[Row]:
    """Yield a row of `VHOSTS` for each vhost."""
    for name in list(source.broker.vhosts):
        if vhosts is None or name in vhosts:
            yield f'{{vhost="{escaped(name)}"}}', (1,)
