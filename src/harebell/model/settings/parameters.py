"""Parameters of one vhost: values by component and name.

The component `vhost-limits` has an effect here. Others belong to plugins of RabbitMQ, such as
shovels and federation: they are stored and returned unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from harebell.base.ports import Store
from harebell.model.definitions import Recorder
from harebell.model.resource import precondition
from harebell.model.settings import vhost_limits

ROWS = "parameter"
_ELSEWHERE = ("operator_policy", "policy")
"""Components with tables and commands of their own."""
_VALUE = "value"

Key = tuple[str, str]


class Parameters:
    """The parameters of one vhost.

    Args:
        vhost: its name.
        recorder: stores them.

    Attributes:
        values: by component and name.
    """

    def __init__(self, vhost: str, recorder: Recorder) -> None:
        self._vhost = vhost
        self._recorder = recorder
        self.values: dict[Key, Any] = {}

    def put(self, component: str, name: str, value: Any, *, strict: bool = True) -> None:
        """Set a parameter.

        Args:
            component: what the parameter is for.
            name: unique among those of the component.
            value: decoded JSON.
            strict: whether unknown limits are refused; otherwise they are kept.

        Raises:
            Refusal: PRECONDITION_FAILED, the parameter is invalid.
        """
        check_parameter(component, name, value, strict=strict)
        self.values[component, name] = value
        self._recorder.put(ROWS, (self._vhost, component, name), {"value": {_VALUE: value}})

    def delete(self, component: str, name: str) -> bool:
        """Delete a parameter; False if there is none."""
        if (component, name) not in self.values:
            return False
        del self.values[component, name]
        self._recorder.drop(ROWS, (self._vhost, component, name))
        return True

    def clear(self) -> None:
        """Delete all parameters."""
        for component, name in list(self.values):
            self.delete(component, name)

    @property
    def limits(self) -> Mapping[str, Any]:
        """Return the limits of the vhost."""
        limits: Mapping[str, Any] = self.values.get((vhost_limits.COMPONENT, vhost_limits.NAME), {})
        return limits


def check_parameter(component: str, name: str, value: Any, *, strict: bool = True) -> None:
    """Refuse an invalid parameter; unknown limits only if `strict`.

    Raises:
        Refusal: PRECONDITION_FAILED, with the reason.
    """
    if component in _ELSEWHERE:
        raise precondition(f"the component '{component}' has commands of its own: use those")
    if component == vhost_limits.COMPONENT:
        if name != vhost_limits.NAME:
            raise precondition(
                f"the component '{component}' has the one parameter '{vhost_limits.NAME}', "
                f"not '{name}'"
            )
        vhost_limits.check_limits(value, strict=strict)


def restore_parameters(of: Callable[[str], Parameters], store: Store) -> None:
    """Restore the stored parameters.

    Args:
        of: returns the parameters of a vhost by its name.
        store: the store with the definitions.
    """
    for (vhost, component, name), fields in store.definitions.load(ROWS):
        if component not in _ELSEWHERE:
            of(vhost).values[component, name] = fields["value"][_VALUE]
