"""Verbs that pass their arguments to one command of the broker: a row of a table each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from harebell_rabbitmq_compat.exits import UNAVAILABLE, VerbFailed
from harebell_rabbitmq_compat.tables import Rows
from harebell_rabbitmq_compat.verb import (
    ANY,
    CTL,
    DIAGNOSTICS,
    QUEUES,
    RUNNING,
    STOPPED,
    UPGRADE,
    Call,
    Report,
    Result,
    parsed_json,
    verb,
)


class Passed(NamedTuple):
    """A verb that runs one command of the broker.

    Args:
        name: its name.
        command: the command; "" if the verb only checks that the broker answers.
        usage: its arguments and flags for the usage line.
        takes: what its arguments are for the command, in order.
        optional: how many more arguments it accepts, which change nothing.
        flags: its own flags, which change nothing.
        json: whether the last argument is JSON.
        needs: refuses the call, such as for a user that does not exist; called before the command.
        in_vhost: whether it is for the vhost of `-p`, which has to exist.
        listed: the command that lists what has to be there for the verb to succeed.
        given: more arguments of the command; texts are templates as `banner` is.
        banner: the sentence that is printed before it runs, a template as in `Verb`.
        summary: what it does, in a sentence.
        columns: the columns of the answer that are printed; () for none.
        answer: the text that is printed after it, a template; "" for none.
        message: for JSON, the same in other words, a template; "" for none.
        check: whether `answer` is the result of a check, which is an object in JSON.
        tools: the tools that have it.
        state: the state that the broker has to be in.
    """

    name: str
    command: str
    usage: str = ""
    takes: tuple[str, ...] = ()
    optional: int = 0
    flags: Mapping[str, type] = {}
    json: bool = False
    needs: Callable[[Call], None] | None = None
    in_vhost: bool = False
    listed: str = ""
    given: Mapping[str, str] = {}
    banner: Callable[[Call], str] | str = ""
    summary: str = ""
    columns: tuple[str, ...] = ()
    answer: str = ""
    message: str = ""
    check: bool = False
    tools: tuple[str, ...] = (CTL,)
    state: str = RUNNING

    def run(self, call: Call) -> Result:
        """Run the command.

        Raises:
            VerbFailed: the broker refuses it, or what it is about does not exist.
        """
        given: dict[str, Any] = dict(zip(self.takes, call.arguments, strict=False))
        if self.json:
            given[self.takes[-1]] = parsed_json(call.arguments[-1])
        if self.needs is not None:
            self.needs(call)
        where = {}
        if self.in_vhost:
            call.require_vhost()
            where = {"vhost": call.vhost}
        if self.listed:
            _require_listed(call, self.listed, where, given)
        for name, text in self.given.items():
            given[name] = call.filled(text)
        answer = self._answer(call, {**where, **given})
        if self.columns:
            return Rows(self.columns, answer)
        if not self.check:
            return call.filled(self.answer) or None
        message = {"message": call.filled(self.message)} if self.message else {}
        return Report(call.filled(self.answer), **message, result="ok")

    def _answer(self, call: Call, given: Mapping[str, Any]) -> Any:
        if not self.command:
            return call.node.overview()
        return call.ask(self.command, **given)


def _require_listed(
    call: Call, command: str, where: Mapping[str, Any], given: Mapping[str, Any]
) -> None:
    """Refuse a parameter or a policy that does not exist."""
    rows = call.ask(command, **where)
    if all(any(row[name] != value for name, value in given.items()) for row in rows):
        raise VerbFailed("Parameter does not exist", UNAVAILABLE)


def _user(call: Call) -> None:
    call.require_user(call.arguments[0])


def _listed_user(call: Call) -> None:
    name = call.arguments[0]
    if not call.has_user(name):
        raise VerbFailed(f'{{:no_such_user, "{name}"}}', UNAVAILABLE)


def _named_vhost(call: Call) -> None:
    call.require_vhost(call.arguments[0])


_OF_VHOST = "[--vhost <vhost>] [--no-table-headers]"
_OF_USER = "[--no-table-headers] <username>"
_ALONE = "seems to be the only one in a single node cluster, the check does not apply"
_ALONE_COMMAND = "seems to be the only one in a single node cluster, the command does not apply"
_INITIALIZED = "Checking if metadata store on node {node} has completed its initialization..."

# A verb takes a few lines: what it passes, and what it prints.
# fmt: off
PASSED = (
    # --- vhosts ---
    Passed("delete_vhost", "vhosts.delete", "<vhost>", ("name",), needs=_named_vhost,
        banner='Deleting vhost "{0}" ...', summary="Delete a vhost with everything in it."),
    Passed("enable_vhost_deletion_protection", "vhosts.protect", "<vhost>", ("name",),
        needs=_named_vhost, banner='Protecting vhost "{0}" from deletion ...',
        summary="Keep a vhost from being deleted."),
    Passed("disable_vhost_deletion_protection", "vhosts.unprotect", "<vhost>", ("name",),
        needs=_named_vhost, banner='Removing the protection of vhost "{0}" ...',
        summary="Let a vhost be deleted again."),
    Passed("trace_on", "trace.on", "[--vhost <vhost>]", in_vhost=True,
        banner='Starting tracing for vhost "{vhost}" ...',
        summary="Copy all messages of a vhost to its exchange amq.rabbitmq.trace.",
        answer="Trace enabled for vhost {vhost}"),
    Passed("trace_off", "trace.off", "[--vhost <vhost>]", in_vhost=True,
        banner='Stopping tracing for vhost "{vhost}" ...',
        summary="Stop copying messages of a vhost.",
        answer="Trace disabled for vhost {vhost}"),
    Passed("clear_vhost_limits", "limits.clear", "[--vhost <vhost>]", in_vhost=True,
        banner='Clearing vhost "{vhost}" limits ...', summary="Remove the limits of a vhost."),
    Passed("reconcile_vhosts", "",
        banner="Will try to initiate virtual host reconciliation on node {node} ...",
        summary="Do nothing: a vhost is on the only node from the moment it is added."),
    Passed("check_virtual_hosts", "vhosts.list", tools=(DIAGNOSTICS,), check=True,
        banner="Checking if all vhosts are running on node {node} ...",
        summary="Fail unless every vhost answers.",
        answer="Node {node} reported all vhosts as running"),

    # --- policies and parameters ---
    Passed("clear_policy", "policies.clear", "[--vhost <vhost>] <policy>", ("name",),
        in_vhost=True, listed="policies.list",
        banner='Clearing policy "{0}" on vhost "{vhost}" ...', summary="Remove a policy."),
    Passed("clear_operator_policy", "operator-policies.clear", "[--vhost <vhost>] <policy>",
        ("name",), in_vhost=True, listed="operator-policies.list",
        banner='Clearing operator policy "{0}" on vhost "{vhost}" ...',
        summary="Remove an operator policy."),
    Passed("set_parameter", "parameters.set", "[--vhost <vhost>] <component_name> <name> <value>",
        ("component", "name", "value"), json=True, in_vhost=True,
        banner='Setting runtime parameter "{1}" for component "{0}" to "{2}" in vhost "{vhost}" '
        "...",
        summary="Set a parameter of a vhost to a value in JSON."),
    Passed("clear_parameter", "parameters.clear", "[--vhost <vhost>] <component_name> <name>",
        ("component", "name"), in_vhost=True, listed="parameters.list",
        banner='Clearing runtime parameter "{1}" for component "{0}" on vhost "{vhost}" ...',
        summary="Remove a parameter of a vhost."),
    Passed("set_global_parameter", "global-parameters.set", "<name> <value>", ("name", "value"),
        json=True, banner='Setting global runtime parameter "{0}" to "{1}" ...',
        summary="Set a parameter of the whole broker to a value in JSON."),
    Passed("clear_global_parameter", "global-parameters.clear", "<name>", ("name",),
        listed="global-parameters.list", banner='Clearing global runtime parameter "{0}" ...',
        summary="Remove a parameter of the whole broker."),
    Passed("set_cluster_name", "global-parameters.set", "<name>", ("value",),
        given={"name": "cluster_name"}, banner="Setting cluster name to {0} ...",
        summary="Set the name of the cluster, which clients and tools show."),

    # --- users ---
    Passed("delete_user", "users.delete", "<username>", ("name",),
        banner='Deleting user "{0}" ...', summary="Delete a user and close its connections."),
    Passed("list_permissions", "permissions.list", _OF_VHOST, in_vhost=True,
        banner='Listing permissions for vhost "{vhost}" ...',
        summary="Print who may do what in a vhost.",
        columns=("user", "configure", "write", "read"), tools=(CTL, DIAGNOSTICS)),
    Passed("list_user_permissions", "permissions.list", _OF_USER, ("user",), needs=_listed_user,
        banner='Listing permissions for user "{0}" ...',
        summary="Print the permissions of a user in every vhost.",
        columns=("vhost", "configure", "write", "read"), tools=(CTL, DIAGNOSTICS)),
    Passed("list_topic_permissions", "topic-permissions.list", _OF_VHOST, in_vhost=True,
        banner='Listing topic permissions for vhost "{vhost}" ...',
        summary="Print topic permissions in a vhost.",
        columns=("user", "exchange", "write", "read"), tools=(CTL, DIAGNOSTICS)),
    Passed("set_topic_permissions", "topic-permissions.set",
        "[--vhost <vhost>] <username> <exchange> <write> <read>",
        ("user", "exchange", "write", "read"), needs=_user, in_vhost=True,
        banner='Setting topic permissions on "{1}" for user "{0}" in vhost "{vhost}" ...',
        summary="Set the routing keys that a user may use with an exchange."),
    Passed("reset_node_auth_attempt_metrics", "service.reset-login-attempts",
        given={"node": "{node}"}, tools=(DIAGNOSTICS,),
        banner="Reset auth attempt metrics on node {node} ...",
        summary="Set the counts of logins to 0."),
    Passed("enable_auth_attempt_source_tracking", "", tools=(DIAGNOSTICS,),
        banner="Enabling authentication attempt source tracking ...",
        summary="Do nothing: the addresses and users of the latest logins are always counted."),

    # --- connections and listeners ---
    # The column `pid` of list_connections has the name of the connection.
    Passed("close_connection", "connections.close", "<connection pid> <explanation>",
        ("name", "reason"), banner="Closing connection {0}, reason: {1}...",
        summary="Close a connection, given as list_connections prints its pid."),
    Passed("close_all_user_connections", "connections.close-all", "<username> <explanation>",
        ("user", "reason"), banner="Closing connections of user {0}, reason: {1}...",
        summary="Close the connections of a user."),
    Passed("suspend_listeners", "listeners.suspend",
        banner="Will suspend client connection listeners on node {node}. "
        "The node will no longer accept client connections!",
        summary="Close the ports for AMQP; connections stay."),
    Passed("resume_listeners", "listeners.resume",
        banner="Will resume client connection listeners on node {node}. "
        "The node will now accept client connections",
        summary="Open the ports for AMQP again."),
    Passed("revive", "listeners.resume", tools=(UPGRADE,),
        banner="Will put node {node} back into regular operating mode. "
        "The node will again serve client traffic and host primary queue replicas.",
        summary="Open the ports for AMQP again."),

    # --- the process, its log and its disk ---
    Passed("stop_app", "app.stop", state=ANY,
        banner="Stopping rabbit application on node {node} ...",
        summary="Close ports and connections; the process and what is stored stay."),
    Passed("start_app", "app.start", state=ANY, banner="Starting node {node} ...",
        summary="Open what stop_app has closed."),
    Passed("reset", "app.reset", state=STOPPED, banner="Resetting node {node} ...",
        summary="Remove everything that is stored; the broker has to be stopped with stop_app."),
    Passed("force_reset", "app.reset", state=STOPPED,
        banner="Forcefully resetting node {node} ...",
        summary="Do what reset does: there is no cluster to leave."),
    Passed("rotate_logs", "logs.reopen", state=ANY, banner="Rotating logs for node {node} ...",
        summary="Close the log files and open them again by their names."),
    Passed("deactivate_free_disk_space_monitoring", "config.set",
        given={"key": "disk_free_limit", "value": "0"},
        banner="Deactivating free disk space monitoring on node {node} ...",
        summary="Have no limit of free disk space until it is activated again, "
        "or a restart or a reload."),
    Passed("activate_free_disk_space_monitoring", "config.unset",
        given={"key": "disk_free_limit"},
        banner="Activating free disk space monitoring on node {node} ...",
        summary="Use the configured limit of free disk space again."),

    # --- checks that the only node of a cluster passes ---
    Passed("post_upgrade", "", tools=(UPGRADE,), banner="Executing post upgrade tasks...",
        summary="Do nothing: the only node has every queue."),
    Passed("await_online_quorum_plus_one", "", tools=(UPGRADE,), check=True,
        banner=lambda call: "Will wait for a quorum + 1 of nodes to be online for all quorum "
        f"queues for {call.flags.get('timeout') or 120:g} seconds...",
        summary="Do not wait: a cluster of one node has no majority to keep.",
        answer=f"Target node {_ALONE_COMMAND}", message=f"Target node {_ALONE_COMMAND}"),
    Passed("has_reached_target_cluster_size", "", "<size>", optional=1, tools=(UPGRADE,),
        check=True, banner="Checking the size of the cluster of {node} ...",
        summary="Succeed: one node is all that there is to be.",
        answer=f"Node {{node}} {_ALONE}", message=f"Target node {_ALONE}"),
    Passed("check_if_node_is_quorum_critical", "", tools=(QUEUES,), check=True,
        banner="Checking if node {node} is critical for quorum of any quorum queues ...",
        summary="Succeed: the check does not apply to a cluster of one node.",
        answer=f"Node {{node}} {_ALONE}", message=f"Target node {_ALONE}"),
    Passed("check_if_node_is_mirror_sync_critical", "", tools=(QUEUES,), check=True,
        banner="Checking if node {node} is critical for data safety of any classic mirrored "
        "queues ...",
        summary="Succeed: the check does not apply to a cluster of one node.",
        answer=f"Node {{node}} {_ALONE}", message=f"Target node {_ALONE}"),
    Passed("check_if_new_quorum_queue_replicas_have_finished_initial_sync", "", tools=(QUEUES,),
        check=True, banner="Checking if new quorum queue replicas of node {node} have finished "
        "their initial sync ...",
        summary="Succeed: the check does not apply to a cluster of one node.",
        answer=f"Node {{node}} {_ALONE}", message=f"Target node {_ALONE}"),
    Passed("check_for_quorum_queues_without_an_elected_leader", "",
        "[--across-all-vhosts] [--vhost <vhost>] [<pattern>]", optional=1,
        flags={"across-all-vhosts": bool},
        tools=(QUEUES, DIAGNOSTICS), check=True,
        banner="Checking leader health of quorum queues...",
        summary="Succeed: the only node leads every quorum queue.",
        answer="Node {node} reported all quorum queue as having responsive leader replicas"),
    Passed("check_if_any_deprecated_features_are_used", "", tools=(DIAGNOSTICS,), check=True,
        banner="Checking if any deprecated features are used in the cluster of {node} ...",
        summary="Succeed: there are no deprecated features.",
        answer="Cluster reported no deprecated features in use"),
    Passed("check_if_metadata_store_is_initialized", "", tools=(DIAGNOSTICS,), check=True,
        banner=_INITIALIZED, summary="Succeed: a broker that answers has read its database.",
        answer="Metadata store on node {node} has completed its initialization"),
)
# fmt: on

for _row in PASSED:
    verb(
        _row.usage,
        name=_row.name,
        summary=_row.summary,
        arguments=(len(_row.takes), len(_row.takes) + _row.optional),
        flags=_row.flags,
        tools=_row.tools,
        banner=_row.banner,
        state=_row.state,
    )(_row.run)
