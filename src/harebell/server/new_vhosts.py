"""What the configuration gives new vhosts: users, limits and operator policies.

These are RabbitMQ's `default_users`, `default_limits.vhosts` and `default_policies.operator`: each
has a pattern for the names of the vhosts that it is for. What was given to a vhost stays with it
when the configuration changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harebell.admin.accounts import changing, save_permissions
from harebell.auth.permissions import Permissions
from harebell.auth.users import Secrets, User, Users
from harebell.base.patterns import found_by
from harebell.model.settings.policy import Policy
from harebell.model.settings.vhost_limits import COMPONENT, MAX_CONNECTIONS, MAX_QUEUES, NAME

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harebell.base.ports import Definitions
    from harebell.config import Config
    from harebell.model.vhost import VHost

_EVERYTHING = ".*"
_LIMITS = {"max_connections": MAX_CONNECTIONS, "max_queues": MAX_QUEUES}
_POLICY_WORDS = ("vhost_pattern", "queue_pattern", "apply_to")


class NewVHosts:
    """Gives new vhosts what the configuration has for them.

    Args:
        config: the configuration.
        users: the users of the broker.
        definitions: where users are stored.
    """

    def __init__(self, config: Config, users: Users, definitions: Definitions) -> None:
        self.config = config
        self._users = users
        self._definitions = definitions
        # Deriving is slow, and a vhost may be added while clients are served.
        self._secrets: dict[str, Secrets] = {
            name: users.derived(row["password"])
            for name, row in config.default_users.items()
            if users.get(name) is None and "password" in row
        }

    def added(self, vhost: VHost) -> None:
        """Give a new vhost its limits, operator policies and users, where it has none yet."""
        self._limit(vhost)
        for name, row in self.config.default_policies_operator.items():
            policies = vhost.policies.operator_policies
            if name not in policies and _matches(row.get("vhost_pattern", _EVERYTHING), vhost.name):
                vhost.policies.put(_policy(name, row), operator=True)
        for name, row in self.config.default_users.items():
            if _matches(row.get("vhost_pattern", _EVERYTHING), vhost.name):
                self._give_user(vhost, name, row)

    def _limit(self, vhost: VHost) -> None:
        if vhost.limits:
            return
        for row in self.config.default_limits_vhosts.values():
            limits = {limit: row[key] for key, limit in _LIMITS.items() if key in row}
            if limits and _matches(row.get("pattern", _EVERYTHING), vhost.name):
                vhost.parameters.put(COMPONENT, NAME, limits)
                return

    def _give_user(self, vhost: VHost, name: str, row: Mapping[str, Any]) -> None:
        user = self._users.get(name)
        if user is None:
            user = User(name, "", tags=row.get("tags", ()))
            with changing(user, self._users, self._definitions):
                if name in self._secrets:
                    self._users.give(user, self._secrets.pop(name))
        if vhost.name in user.permissions:
            return
        permissions = Permissions(
            row.get("configure", _EVERYTHING),
            row.get("write", _EVERYTHING),
            row.get("read", _EVERYTHING),
        )
        save_permissions(vhost.name, user, permissions, self._definitions)
        user.permissions[vhost.name] = permissions


def _policy(name: str, row: Mapping[str, Any]) -> Policy:
    definition = {
        key.replace("_", "-"): value for key, value in row.items() if key not in _POLICY_WORDS
    }
    return Policy(
        name, row.get("queue_pattern", _EVERYTHING), row.get("apply_to", "queues"), 0, definition
    )


def _matches(pattern: str, name: str) -> bool:
    return found_by(pattern)(name)


def complaint_of(config: Config, name: str, password: str) -> str:
    """Return what is wrong with a new password (`credential_validator`); "" if nothing is."""
    del name  # RabbitMQ's validators get it, and those that Harebell has do not use it
    if config.credential_validator == "min_length":
        minimum = config.credential_validator_min_length
        if len(password) < minimum:
            return f"password length should be at least {minimum} characters"
    # Not by `re`: it may take for ever for a password that its user has chosen.
    if config.credential_validator == "regexp" and not _matches(
        config.credential_validator_regexp, password
    ):
        return "provided password does not match the validator regular expression"
    return ""
