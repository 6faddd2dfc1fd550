"""Commands for policies and for operator policies, which are alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from harebell.admin.arguments import OnlyVhost
from harebell.admin.catalog import OPERATOR_POLICIES, POLICIES, Noun
from harebell.admin.command import (
    ADMINISTRATOR,
    MANAGEMENT,
    POLICYMAKER,
    Argument,
    Form,
    Row,
)
from harebell.admin.context import (
    AdminContext,
    CommandRefused,
    checked_name,
    checked_value,
    missing,
)
from harebell.admin.limits import POLICY_NAME_BYTES, POLICY_PREVIEW_ROWS
from harebell.admin.rows.common import Columns, row_of
from harebell.base.slices import Slices, gathered

if TYPE_CHECKING:
    from harebell.model.settings.policy import Policy
    from harebell.model.vhost import VHost

_NUMBER_END = 2**63
"""Numbers of this size and above do not fit a definition."""
ForVhost = Annotated[str, Argument("The vhost it is for.", "NAME")]
Definition = Annotated[dict[str, Any], Argument(form=Form.JSON, example='{"max-length": 1000}')]
_COLUMNS: Columns = {
    "vhost": lambda vhost, _policy: vhost,
    "name": lambda _vhost, policy: policy.name,
    "pattern": lambda _vhost, policy: policy.pattern,
    "apply-to": lambda _vhost, policy: policy.apply_to,
    "priority": lambda _vhost, policy: policy.priority,
    "definition": lambda _vhost, policy: dict(policy.definition),
}


def _policy(
    word: str, name: str, pattern: str, apply_to: str, priority: int, definition: dict[str, Any]
) -> Policy:
    """Return a policy, whose name and numbers are checked.

    Raises:
        CommandRefused: one of them is too long or too large.
    """
    from harebell.model.settings.policy import Policy

    checked_name(name, word, POLICY_NAME_BYTES)
    for key, value in (*definition.items(), ("priority", priority)):
        if isinstance(value, int) and not -_NUMBER_END <= value < _NUMBER_END:
            raise CommandRefused(f"{key} is {value}, which is too large: give a number below 2^63")
    checked_value(name, definition, f"definition of {word}")
    return Policy(name, pattern, apply_to, priority, definition)


def _previewed(vhost: VHost, policy: Policy, *, operator: bool) -> Slices[Row]:
    from harebell.model.queue.contract import Queue

    changed = 0
    rows: list[Row] = []
    for resource, now, then in vhost.policies.changes(policy, operator=operator):
        yield
        before, after = (
            {"policy": "" if each is None else each.name, "definition": settings}
            for each, settings in (now, then)
        )
        if before == after:
            continue
        changed += 1
        if len(rows) < POLICY_PREVIEW_ROWS:
            kind = "queue" if isinstance(resource, Queue) else "exchange"
            rows.append({"kind": kind, "name": resource.name, "before": before, "after": after})
    return {"vhost": vhost.name, "name": policy.name, "changed": changed, "changes": rows}


def _held(vhost: VHost, *, operator: bool) -> dict[str, Policy]:
    return vhost.policies.operator_policies if operator else vhost.policies.policies


def _describe(noun: Noun, word: str, tag: str, *, operator: bool) -> None:
    """Describe the commands of one kind of policies.

    Args:
        noun: gets the commands.
        word: what it manages, in the singular.
        tag: which users may change them.
        operator: whether they are operator policies.
    """
    path = f"/api/{noun.name}/{{vhost}}"
    _describe_reading(noun, path, word, operator=operator)
    _describe_setting(noun, path, word, tag, operator=operator)
    _describe_clearing(noun, path, word, tag, operator=operator)


def _describe_reading(noun: Noun, path: str, word: str, *, operator: bool) -> None:
    @noun.listing(
        noun.name.replace("-", " "),
        f"GET /api/{noun.name}",
        f"GET {path}",
        tag=MANAGEMENT,
        row=_COLUMNS,
        summary=f"List every {word}.",
    )
    def list_policies(context: AdminContext, vhost: OnlyVhost = None) -> Slices[list[Row]]:
        vhosts = context.vhosts(vhost)
        return gathered(
            row_of(_COLUMNS, each.name, policy)
            for each in vhosts
            for _, policy in sorted(_held(each, operator=operator).items())
        )

    @noun.over_http(
        f"GET {path}/{{name}}", tag=MANAGEMENT, verb="show", summary=f"Return the {word} NAME."
    )
    def show_policy(context: AdminContext, vhost: str, name: str) -> Row:
        where = context.vhost(vhost)
        policy = _held(where, operator=operator).get(name)
        if policy is None:
            raise missing(f"no {word} '{name}' in vhost '{where.name}'")
        return row_of(_COLUMNS, where.name, policy)


def _describe_setting(noun: Noun, path: str, word: str, tag: str, *, operator: bool) -> None:
    @noun.command(
        f"PUT {path}/{{name}}",
        verb="set",
        tag=tag,
        summary=f"Set the {word} NAME. DEFINITION is a JSON object.",
        done=f"{word} '{{name}}' in vhost '{{vhost}}' was set",
    )
    def set_policy(
        context: AdminContext,
        name: str,
        pattern: str,
        definition: Definition,
        vhost: ForVhost = "/",
        apply_to: Annotated[str, Argument("What it applies to.", "KIND")] = "all",
        priority: Annotated[int, Argument("The highest one applies.")] = 0,
    ) -> Row:
        where = context.vhost(vhost)
        made = name not in _held(where, operator=operator)
        policy = _policy(word, name, pattern, apply_to, priority, definition)
        where.policies.put(policy, operator=operator)
        context.log(
            "info",
            f"Successfully set {word} '{name}' matching {apply_to} names in virtual host "
            f"'{where.name}' using pattern '{pattern}'",
        )
        return {**row_of(_COLUMNS, where.name, policy), "made": made}

    @noun.over_http(
        f"POST {path}/{{name}}/preview",
        verb="preview",
        tag=tag,
        summary=f"Say which queues and exchanges the {word} NAME would change, and set nothing.",
        status=200,
    )
    def preview_policy(
        context: AdminContext,
        name: str,
        pattern: str,
        definition: Definition,
        vhost: ForVhost = "/",
        apply_to: Annotated[str, Argument("What it applies to.", "KIND")] = "all",
        priority: Annotated[int, Argument("The highest one applies.")] = 0,
    ) -> Slices[Row]:
        policy = _policy(word, name, pattern, apply_to, priority, definition)
        return _previewed(context.vhost(vhost), policy, operator=operator)


def _describe_clearing(noun: Noun, path: str, word: str, tag: str, *, operator: bool) -> None:
    @noun.command(
        f"DELETE {path}/{{name}}",
        verb="clear",
        tag=tag,
        summary=f"Forget the {word} NAME.",
        done=f"{word} '{{name}}' in vhost '{{vhost}}' was cleared",
    )
    def clear_policy(context: AdminContext, name: str, vhost: ForVhost = "/") -> Row:
        where = context.vhost(vhost)
        if not where.policies.delete(name, operator=operator):
            raise missing(
                f"no {word} '{name}' in vhost '{where.name}': `harebell {noun.name} list` shows all"
            )
        context.log("info", f"{word} '{name}' in vhost '{where.name}' was cleared")
        return {"vhost": where.name, "name": name}


_describe(POLICIES, "policy", POLICYMAKER, operator=False)
_describe(OPERATOR_POLICIES, "operator policy", ADMINISTRATOR, operator=True)
