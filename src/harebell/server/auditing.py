"""The audit trail of a running broker, which is opened for its first act."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harebell.admin.audit import Auditor
    from harebell.admin.context import AdminContext
    from harebell.config import Config
    from harebell.server.audit_trail import AuditTrail


class Auditing:
    """Has acts written to the audit trail.

    Args:
        context: the broker, as commands see it.
        config: returns the configuration.
        clock: returns milliseconds since 1970.
    """

    def __init__(
        self, context: AdminContext, config: Callable[[], Config], clock: Callable[[], int]
    ) -> None:
        self._context = context
        self._config = config
        self._clock = clock
        self._trail: AuditTrail | None = None
        context.auditor = lambda: self._auditor
        context.broker.events.audit = self._over_amqp

    @cached_property
    def _auditor(self) -> Auditor:
        # Imported here: most brokers are administered long after their start.
        from harebell.admin.audit import Auditor
        from harebell.server.audit_trail import AuditTrail

        context = self._context
        self._trail = AuditTrail(self._config, context.store, self._clock, context.log)
        return Auditor(context, self._trail, self._clock)

    def _over_amqp(self, key: str, facts: Mapping[str, Any], refusal: str) -> None:
        config = self._config()
        # What ends with its connection or its last consumer is no matter of administration.
        lasts = not facts.get("exclusive") and not facts.get("auto_delete")
        if config.audit_amqp and config.audit_size and lasts:
            self._auditor.over_amqp(key, facts, refusal)

    def close(self) -> None:
        """Sync and close the file."""
        if self._trail is not None:
            self._trail.close()
