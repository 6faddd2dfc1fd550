"""Parameters of one vhost: values by component and name, kept for whoever understands them.

The component `vhost-limits` is understood here. The others are RabbitMQ's plugins', such as
shovels and federation: they are kept and given back as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from harebell.base.ports import Store
from harebell.model import vhost_limits
from harebell.model.definitions import Recorder
from harebell.model.resource import precondition

ROWS = "parameter"
_ELSEWHERE = ("operator_policy", "policy")
"""Components that have their own tables and verbs."""
_VALUE = "value"

Key = tuple[str, str]


class Parameters:
    """The parameters of one vhost.

    Args:
        vhost: its name.
        recorder: writes them down.

    Attributes:
        values: by component and name.
    """

    def __init__(self, vhost: str, recorder: Recorder) -> None:
        self._vhost = vhost
        self._recorder = recorder
        self.values: dict[Key, Any] = {}

    def put(self, component: str, name: str, value: Any, *, strict: bool = True) -> None:
        """Take a value in, or another one under the same name.

        Args:
            component: what the parameter is for.
            name: its name.
            value: its value.
            strict: whether unknown limits are refused; otherwise they are kept.

        Raises:
            Refusal: PRECONDITION_FAILED for one that means nothing.
        """
        check_parameter(component, name, value, strict=strict)
        self.values[component, name] = value
        self._recorder.put(ROWS, (self._vhost, component, name), {"value": {_VALUE: value}})

    def delete(self, component: str, name: str) -> bool:
        """Forget a value; False when there is none."""
        if (component, name) not in self.values:
            return False
        del self.values[component, name]
        self._recorder.drop(ROWS, (self._vhost, component, name))
        return True

    def clear(self) -> None:
        """Forget all."""
        for component, name in list(self.values):
            self.delete(component, name)

    @property
    def limits(self) -> Mapping[str, Any]:
        """The limits of the vhost."""
        limits: Mapping[str, Any] = self.values.get((vhost_limits.COMPONENT, vhost_limits.NAME), {})
        return limits


def check_parameter(component: str, name: str, value: Any, *, strict: bool = True) -> None:
    """Refuse a parameter that means nothing; unknown limits only if asked to.

    Raises:
        Refusal: PRECONDITION_FAILED, in a sentence.
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
    """Bring back what was written down.

    Args:
        of: the parameters of a vhost by its name.
        store: has the definitions.
    """
    for (vhost, component, name), fields in store.definitions.load(ROWS):
        if component not in _ELSEWHERE:
            of(vhost).values[component, name] = fields["value"][_VALUE]
