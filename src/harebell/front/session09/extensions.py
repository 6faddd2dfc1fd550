"""Who serves the methods of Harebell's own classes, a file per class; 0-9-1 alone has them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from harebell.front.session09 import bulk, bulk_names, lease, publisher, stage

_CLASSES: tuple[Mapping[Any, Any], ...] = (
    lease.HANDLERS,
    bulk.HANDLERS,
    bulk_names.HANDLERS,
    publisher.HANDLERS,
    stage.HANDLERS,
)
"""The handlers of each class."""

HANDLERS: dict[type, Callable[[Any, Any], None]] = {}
for _handlers in _CLASSES:
    HANDLERS.update(_handlers)
