"""Global parameters: values by name for the whole broker, kept for whoever understands them."""

from __future__ import annotations

from typing import Any

from harebell.base.ports import Store

ROWS = "global_parameter"
_VALUE = "value"


class GlobalParameters:
    """The global parameters of a broker.

    Args:
        store: has the definitions.

    Attributes:
        values: by name.
    """

    def __init__(self, store: Store) -> None:
        self._definitions = store.definitions
        self.values: dict[str, Any] = {}

    def put(self, name: str, value: Any) -> None:
        """Take a value in, or another one under the same name."""
        self.values[name] = value
        self._definitions.put(ROWS, (name,), {"value": {_VALUE: value}})

    def delete(self, name: str) -> bool:
        """Forget a value; False when there is none."""
        if name not in self.values:
            return False
        del self.values[name]
        self._definitions.drop(ROWS, (name,))
        return True

    def restore(self) -> None:
        """Bring back what was written down."""
        for (name,), fields in self._definitions.load(ROWS):
            self.values[name] = fields["value"][_VALUE]
