"""Global parameters: values by name for the whole broker; other components use them."""

from __future__ import annotations

from typing import Any

from harebell.base.ports import Store

ROWS = "global_parameter"
_VALUE = "value"


class GlobalParameters:
    """The global parameters of a broker.

    Args:
        store: the store with the definitions.

    Attributes:
        values: by name.
    """

    def __init__(self, store: Store) -> None:
        self._definitions = store.definitions
        self.values: dict[str, Any] = {}

    def put(self, name: str, value: Any) -> None:
        """Set a value."""
        self._definitions.put(ROWS, (name,), {"value": {_VALUE: value}})
        self.values[name] = value

    def delete(self, name: str) -> bool:
        """Delete a value; False if there is none."""
        if name not in self.values:
            return False
        self._definitions.drop(ROWS, (name,))
        del self.values[name]
        return True

    def restore(self) -> None:
        """Restore the stored values."""
        for (name,), fields in self._definitions.load(ROWS):
            self.values[name] = fields["value"][_VALUE]
