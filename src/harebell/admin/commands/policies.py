"""Commands for policies: `harebell policies`, `harebell operator-policies`."""

from __future__ import annotations

from typing import Any

from harebell.admin.context import AdminContext, Command, Fields, Refused, checked_name
from harebell.base.limits import POLICY_NAME_BYTES
from harebell.model.policy import Policy

_NUMBER_END = 2**63
"""Numbers of this size and above do not fit a definition."""


class Filter(Fields):
    """Policies of one vhost, or of all."""

    vhost: str | None = None
    operator: bool = False


class Named(Fields):
    """Which policy, and where."""

    name: str
    vhost: str
    operator: bool = False


class Given(Named, kw_only=True):
    """A policy."""

    pattern: str
    definition: dict[str, Any]
    apply_to: str = "all"
    priority: int = 0


def _shown(vhost: str, policy: Policy) -> dict[str, Any]:
    return {
        "vhost": vhost,
        "name": policy.name,
        "pattern": policy.pattern,
        "apply-to": policy.apply_to,
        "priority": policy.priority,
        "definition": dict(policy.definition),
    }


def _word(*, operator: bool) -> str:
    return "operator policy" if operator else "policy"


def list_policies(context: AdminContext, asked: Filter) -> list[dict[str, Any]]:
    """Policies by vhost and name."""
    wanted = context.broker.vhosts if asked.vhost is None else [context.vhost(asked.vhost).name]
    rows = []
    for name in sorted(wanted):
        known = context.broker.vhosts[name].policies
        held = known.operator_policies if asked.operator else known.policies
        rows += [_shown(name, policy) for _, policy in sorted(held.items())]
    return rows


def set_policy(context: AdminContext, asked: Given) -> dict[str, Any]:
    """This policy from now on, also for what is declared already."""
    vhost = context.vhost(asked.vhost)
    word = _word(operator=asked.operator)
    name = checked_name(asked.name, word, POLICY_NAME_BYTES)
    for key, value in (*asked.definition.items(), ("priority", asked.priority)):
        if isinstance(value, int) and not -_NUMBER_END <= value < _NUMBER_END:
            raise Refused(f"{key} is {value}, which is too large: give a number below 2^63")
    policy = Policy(name, asked.pattern, asked.apply_to, asked.priority, asked.definition)
    vhost.policies.put(policy, operator=asked.operator)
    context.log("info", f"{word} '{name}' in vhost '{vhost.name}' was set")
    return _shown(vhost.name, policy)


def clear_policy(context: AdminContext, asked: Named) -> dict[str, Any]:
    """Forget a policy; what it applied to goes on without."""
    vhost = context.vhost(asked.vhost)
    word = _word(operator=asked.operator)
    if not vhost.policies.delete(asked.name, operator=asked.operator):
        verb = "operator-policies" if asked.operator else "policies"
        raise Refused(
            f"no {word} '{asked.name}' in vhost '{vhost.name}': `harebell {verb} list` shows all"
        )
    context.log("info", f"{word} '{asked.name}' in vhost '{vhost.name}' was cleared")
    return {"vhost": vhost.name, "name": asked.name}


COMMANDS = {
    "policies.list": Command(Filter, list_policies),
    "policies.set": Command(Given, set_policy),
    "policies.clear": Command(Named, clear_policy),
}
