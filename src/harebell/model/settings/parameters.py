"""Parameters of one vhost: values by component and name.

The component `vhost-limits` has an effect here. Others belong to tools and plugins of RabbitMQ:
they are stored and returned unchanged. Shovels and federation are taken from definitions only.
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
_MIRROR = "`harebell pipeline mirror QUEUE --to URL` publishes the messages of a queue elsewhere"
_NO_LINKS = f"there are no links of federation to other brokers: {_MIRROR}"
_WITHOUT_EFFECT = {
    "shovel": f"there are no shovels: {_MIRROR}",
    "federation": _NO_LINKS,
    "federation-upstream": _NO_LINKS,
    "federation-upstream-set": _NO_LINKS,
}
"""Components that would do something in RabbitMQ, and what is said to those who set them."""
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
            strict: whether what has no effect is refused; otherwise it is kept.

        Raises:
            Refusal: PRECONDITION_FAILED, the parameter is invalid.
        """
        check_parameter(component, name, value, strict=strict)
        self._recorder.put(ROWS, (self._vhost, component, name), {"value": {_VALUE: value}})
        self.values[component, name] = value

    def delete(self, component: str, name: str) -> bool:
        """Delete a parameter; False if there is none."""
        if (component, name) not in self.values:
            return False
        self._recorder.drop(ROWS, (self._vhost, component, name))
        del self.values[component, name]
        return True

    def unstore(self) -> None:
        """Remove the rows of all parameters: the vhost is deleted."""
        for component, name in self.values:
            self._recorder.drop(ROWS, (self._vhost, component, name))

    @property
    def limits(self) -> Mapping[str, Any]:
        """Return the limits of the vhost."""
        limits: Mapping[str, Any] = self.values.get((vhost_limits.COMPONENT, vhost_limits.NAME), {})
        return limits


def check_parameter(component: str, name: str, value: Any, *, strict: bool = True) -> None:
    """Refuse an invalid parameter; unknown limits, and shovels and the like, only if `strict`.

    Raises:
        Refusal: PRECONDITION_FAILED, with the reason.
    """
    if component in _ELSEWHERE:
        raise precondition(f"the component '{component}' has commands of its own: use those")
    if strict and component in _WITHOUT_EFFECT:
        raise precondition(f"component '{component}': {_WITHOUT_EFFECT[component]}")
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
