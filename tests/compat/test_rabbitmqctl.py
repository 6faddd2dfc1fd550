"""rabbitmqctl, rabbitmq-diagnostics and rabbitmq-plugins: output, flags and exit codes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pika
import pytest

from harebell.client.blocking import connect
from harebell.client.errors import AMQPError
from tests.compat.conftest import Tool, with_package
from tests.patience import SECONDS
from tests.running import RunningBroker, command, running_broker

Done = Callable[..., str]
VERBS = (Path(__file__).parent / "verbs-4.3.txt").read_text().split("\n")


@pytest.fixture(scope="module", autouse=True)
def declared(broker: RunningBroker) -> None:
    """Queues that the tests list."""
    with connect(broker.address()) as connection:
        channel = connection.channel()
        channel.declare_queue("jobs", durable=True)
        channel.declare_queue("short", durable=True, arguments={"x-max-length": 10})
        channel.publish(b"one", routing_key="jobs")


def test_a_list_is_printed_with_tabs_after_a_sentence(done: Done) -> None:
    assert done("rabbitmqctl", "list_queues") == (
        "Timeout: 60.0 seconds ...\n"
        "Listing queues for vhost / ...\n"
        "name\tmessages\n"
        "jobs\t1\n"
        "short\t0\n"
    )


def test_quiet_leaves_the_sentence_out_and_silent_the_header_too(done: Done) -> None:
    assert done("rabbitmqctl", "-q", "list_queues") == "name\tmessages\njobs\t1\nshort\t0\n"
    assert done("rabbitmqctl", "list_queues", "-s", "name") == "jobs\nshort\n"
    assert done("rabbitmqctl", "-q", "list_queues", "--no-table-headers", "name") == "jobs\nshort\n"


def test_arguments_of_queues_are_printed_as_erlang_terms(done: Done) -> None:
    shown = done("rabbitmqctl", "-s", "list_queues", "name", "durable", "arguments")
    assert shown == 'jobs\ttrue\t[]\nshort\ttrue\t[{"x-max-length",10}]\n'


def test_a_report_names_the_vhost_of_each_list(done: Done) -> None:
    report = done("rabbitmqctl", "report")
    assert "Listing queues for vhost / ...\n\nname\tmessages\njobs\t1\n" in report
    assert 'Listing permissions for vhost "/" ...' in report
    assert "{vhost}" not in report


def test_json_and_csv_are_what_scripts_parse(done: Done) -> None:
    rows = json.loads(done("rabbitmqctl", "list_queues", "--formatter=json", "name", "arguments"))
    assert rows == [
        {"name": "jobs", "arguments": []},
        {"name": "short", "arguments": [["x-max-length", "signedint", 10]]},
    ]
    csv = done("rabbitmqctl", "list_queues", "--formatter", "csv", "name", "messages")
    assert csv == '"name","messages"\n"jobs","1"\n"short","0"\n'


def test_a_pretty_table_has_boxes_of_equal_width(done: Done) -> None:
    shown = done(
        "rabbitmqctl", "-q", "list_queues", "--formatter=pretty_table", PYTHONUTF8="1"
    ).splitlines()
    assert (shown[0][0], shown[-1][0]) == ("┌", "└")
    assert len({len(line) for line in shown}) == 1


def test_a_missing_vhost_lists_nothing_for_queues_and_fails_for_policies(tool: Tool) -> None:
    queues = tool("rabbitmqctl", "-q", "list_queues", "-p", "none")
    assert (queues.returncode, queues.stdout) == (0, "")
    policies = tool("rabbitmqctl", "list_policies", "-p", "none")
    assert (policies.returncode, policies.stderr) == (65, "Virtual host 'none' does not exist\n")


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (["list_queues", "colour"], 64, "Info key(s) colour are not supported"),
        (["list_queues", "--colour"], 64, "Invalid options for this command:\n--colour : "),
        (["add_user"], 64, "not enough arguments."),
        (["list_quees"], 64, "Did you mean 'list_queues'?"),
        (["delete_user", "nobody"], 67, 'User "nobody" does not exist'),
        (["set_permissions", "nobody", ".*", ".*", ".*"], 67, "User nobody does not exist"),
        (["purge_queue", "none"], 69, "not_found"),
        (["delete_queue", "none"], 64, "Queue not found"),
        (["delete_vhost", "none"], 65, "Virtual host 'none' does not exist"),
        (["clear_policy", "none"], 69, "Parameter does not exist"),
        (["set_policy", "p", "^p", "nojson"], 69, "JSON decoding error"),
        (["export_definitions", "/nowhere/x.json"], 65, "Directory /nowhere does not exist"),
        (["eval", "1+1."], 69, "eval is not supported"),
        (["join_cluster", "rabbit@other"], 69, "cluster of one node"),
        (["wait", "/nowhere.pid", "-t", "0.2"], 75, "timed out. Timeout value used: 200"),
        (["-n", "other@elsewhere", "list_queues"], 69, "node 'other@elsewhere'"),
    ],
)
def test_failures_have_the_exit_codes_of_rabbitmqctl(
    tool: Tool, words: list[str], code: int, text: str
) -> None:
    result = tool("rabbitmqctl", *words)
    assert result.returncode == code, result
    assert text in result.stderr
    assert "Traceback" not in result.stderr


def test_the_usual_names_of_the_local_node_are_accepted(done: Done) -> None:
    for name in ("rabbit", "rabbit@localhost", "harebell"):
        assert "jobs" in done("rabbitmqctl", "-n", name, "list_queues")


def test_no_broker_is_exit_code_69(tool: Tool, tmp_path: Path) -> None:
    result = tool("rabbitmqctl", "list_users", HAREBELL_DATA_DIR=str(tmp_path))
    assert result.returncode == 69
    assert "Target node is not running" in result.stderr


def test_a_user_is_added_changed_listed_and_deleted(tool: Tool, done: Done) -> None:
    assert 'Adding user "ann" ...' in done("rabbitmqctl", "add_user", "ann", stdin="secret\n")
    again = tool("rabbitmqctl", "add_user", "ann", "secret")
    assert (again.returncode, again.stderr) == (70, 'Error:\nUser "ann" already exists\n')
    done("rabbitmqctl", "set_user_tags", "ann", "monitoring", "policymaker")
    assert "ann\t[monitoring, policymaker]\n" in done("rabbitmqctl", "list_users")
    assert "Success" in done("rabbitmqctl", "authenticate_user", "ann", "secret")
    assert tool("rabbitmqctl", "authenticate_user", "ann", "wrong").returncode == 65
    done("rabbitmqctl", "set_permissions", "-p", "/", "ann", "^a", ".*", "")
    assert "/\t^a\t.*\t\n" in done("rabbitmqctl", "list_user_permissions", "ann")
    done("rabbitmqctl", "clear_password", "ann")
    assert tool("rabbitmqctl", "authenticate_user", "ann", "secret").returncode == 65
    done("rabbitmqctl", "delete_user", "ann")
    assert "ann" not in done("rabbitmqctl", "list_users")


def test_a_vhost_with_limits_and_policies_comes_and_goes(done: Done) -> None:
    done("rabbitmqctl", "add_vhost", "blue", "--description", "a b", "--tags", "x,y")
    shown = done("rabbitmqctl", "-s", "list_vhosts", "name", "description", "tags")
    assert "blue\ta b\t[x, y]\n" in shown
    done("rabbitmqctl", "set_vhost_limits", "-p", "blue", '{"max-queues": 7}')
    assert '{"max-queues":7}' in done("rabbitmqctl", "list_vhost_limits", "-p", "blue")
    done(
        *("rabbitmqctl", "set_policy", "-p", "blue", "--priority", "3", "--apply-to", "queues"),
        *("short", "^s", '{"max-length":5}'),
    )
    assert done("rabbitmqctl", "-q", "list_policies", "-p", "blue") == (
        "vhost\tname\tpattern\tapply-to\tdefinition\tpriority\n"
        'blue\tshort\t^s\tqueues\t{"max-length":5}\t3\n'
    )
    done("rabbitmqctl", "delete_vhost", "blue")
    assert "blue" not in done("rabbitmqctl", "list_vhosts")


def test_a_protected_vhost_stays(tool: Tool, done: Done) -> None:
    done("rabbitmqctl", "add_vhost", "kept")
    done("rabbitmqctl", "enable_vhost_deletion_protection", "kept")
    refused = tool("rabbitmqctl", "delete_vhost", "kept")
    assert refused.returncode != 0
    assert "protected from deletion" in refused.stderr
    assert "kept" in done("rabbitmqctl", "-q", "list_vhosts").split()
    done("rabbitmqctl", "disable_vhost_deletion_protection", "kept")
    done("rabbitmqctl", "delete_vhost", "kept")
    assert "kept" not in done("rabbitmqctl", "-q", "list_vhosts").split()


def test_names_that_are_hard_to_quote_come_back(done: Done) -> None:
    name = "a/b%2F..\u202e ünïcode"
    done("rabbitmqctl", "add_vhost", name)
    assert name in done("rabbitmqctl", "-s", "list_vhosts")
    done("rabbitmqctl", "delete_vhost", name)


def test_definitions_go_out_and_come_back(done: Done, tmp_path: Path) -> None:
    file = tmp_path / "definitions.json"
    done("rabbitmqctl", "export_definitions", str(file))
    assert {queue["name"] for queue in json.loads(file.read_text())["queues"]} == {"jobs", "short"}
    assert file.stat().st_mode & 0o077 == 0
    assert "Definitions were imported" in done("rabbitmqctl", "import_definitions", str(file))


def test_a_connection_is_closed_by_the_pid_that_is_listed(
    done: Done, broker: RunningBroker
) -> None:
    with connect(broker.address()) as connection:
        pid = done("rabbitmqctl", "-s", "list_connections", "pid").strip()
        done("rabbitmqctl", "close_connection", pid, "maintenance")
        with pytest.raises(AMQPError, match="maintenance"):
            connection.channel()


def test_probes_succeed_while_the_broker_runs(done: Done, broker: RunningBroker) -> None:
    assert done("rabbitmq-diagnostics", "-q", "ping") == "Ping succeeded\n"
    for verb in ("check_running", "check_local_alarms", "check_alarms", "check_virtual_hosts"):
        done("rabbitmq-diagnostics", "-q", verb)
    done("rabbitmq-diagnostics", "check_port_connectivity")
    done("rabbitmq-diagnostics", "check_port_listener", str(broker.port))
    done("rabbitmq-diagnostics", "check_protocol_listener", "amqp091")
    done("rabbitmqctl", "await_startup")


def test_probes_fail_with_69_for_what_is_not_there(tool: Tool) -> None:
    assert tool("rabbitmq-diagnostics", "check_port_listener", "1").returncode == 69
    assert tool("rabbitmq-diagnostics", "check_protocol_listener", "mqtt").returncode == 69
    assert tool("rabbitmq-diagnostics", "check_port_listener", "abc").returncode == 65


def test_status_is_json_for_scripts(done: Done, broker: RunningBroker) -> None:
    status = json.loads(done("rabbitmqctl", "status", "--formatter", "json"))
    assert status["pid"] == broker.pid
    assert status["totals"]["queue_count"] == 2
    assert status["listeners"][0]["protocol"] == "amqp"
    cluster = json.loads(done("rabbitmqctl", "cluster_status", "--formatter", "json"))
    assert cluster["running_nodes"] == cluster["disk_nodes"]


def test_every_verb_that_rabbitmq_has_is_made_or_refused_with_a_reason(tool: Tool) -> None:
    known = subprocess.run(
        [sys.executable, "-c", _WHAT_IS_KNOWN],
        timeout=SECONDS,
        env=with_package(),
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    words = [line.split()[1] for line in VERBS if line]
    assert len(words) == 190
    assert [word for word in words if word not in known] == []


_WHAT_IS_KNOWN = """
from harebell_rabbitmq_compat import main, refused
from harebell_rabbitmq_compat.verb import VERBS
main._load_verbs()
print(*VERBS, "help", "autocomplete", *refused.REASONS)
"""


@pytest.mark.parametrize("words", [(), ("",), ("-n", "rabbit@host")])
def test_without_a_command_the_commands_are_listed_among_the_errors(
    words: tuple[str, ...], tool: Tool, done: Done
) -> None:
    result = tool("rabbitmqctl", *words)
    assert (result.returncode, result.stdout) == (64, "")
    assert "   set_topic_permissions " in result.stderr
    assert result.stderr == done("rabbitmqctl", "help") == done("rabbitmqctl", "--help")


def test_plugins_that_are_built_in_are_enabled(tool: Tool, done: Done) -> None:
    assert "[E*] rabbitmq_management " in done("rabbitmq-plugins", "list")
    done("rabbitmq-plugins", "enable", "rabbitmq_management", "rabbitmq_prometheus")
    done("rabbitmq-plugins", "is_enabled", "rabbitmq_management")
    assert tool("rabbitmq-plugins", "is_enabled", "rabbitmq_mqtt").returncode == 69
    missing = tool("rabbitmq-plugins", "enable", "nosuch")
    assert (missing.returncode, missing.stderr) == (
        70,
        "Error:\n{:plugins_not_found, [:nosuch]}\n",
    )


def test_shutdown_ends_the_broker_and_waits_for_it(tool: Tool) -> None:
    with running_broker() as own:
        result = tool("rabbitmqctl", "shutdown", HAREBELL_DATA_DIR=str(own.data_dir))
        assert result.returncode == 0, result.stderr
        assert own.process.wait(60) == 0


def test_shims_do_not_replace_other_tools(tmp_path: Path) -> None:
    other = tmp_path / "rabbitmqctl"
    other.write_text("#!/bin/sh\n")
    refused = subprocess.run(
        [command(), "compat", "install-shims", str(tmp_path)],
        timeout=SECONDS,
        env=with_package(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert refused.returncode == 1
    assert "would be replaced" in refused.stderr
    assert other.read_text() == "#!/bin/sh\n"


def test_listeners_are_suspended_and_the_node_is_drained_and_revived(
    done: Done, tool: Tool, broker: RunningBroker
) -> None:
    with pika.BlockingConnection(pika.URLParameters(broker.address())) as connection:
        done("rabbitmqctl", "suspend_listeners")
        connection.channel().close()
        assert (
            tool("rabbitmq-diagnostics", "check_port_listener", str(broker.port)).returncode == 69
        )
        status = json.loads(done("rabbitmqctl", "status", "--formatter", "json"))
        assert status["is_under_maintenance"] is True
        done("rabbitmqctl", "resume_listeners")
    connection = pika.BlockingConnection(pika.URLParameters(broker.address()))
    done("rabbitmq-upgrade", "drain")
    with pytest.raises(pika.exceptions.AMQPError):
        connection.process_data_events(60)
    done("rabbitmq-upgrade", "revive")
    done("rabbitmq-diagnostics", "check_port_listener", str(broker.port))


def test_limits_are_set_and_the_configured_one_of_the_disk_comes_back(done: Done) -> None:
    def limits() -> tuple[int, int]:
        status = json.loads(done("rabbitmqctl", "status", "--formatter", "json"))
        return status["vm_memory_high_watermark_limit"], status["disk_free_limit"]

    _, configured = limits()
    done("rabbitmqctl", "set_vm_memory_high_watermark", "absolute", "1GB")
    done("rabbitmqctl", "set_disk_free_limit", "10MB")
    assert limits() == (1_000_000_000, 10_000_000)
    done("rabbitmqctl", "deactivate_free_disk_space_monitoring")
    assert limits()[1] == 0
    done("rabbitmqctl", "activate_free_disk_space_monitoring")
    assert limits()[1] == configured


def test_a_watermark_of_zero_raises_the_alarm_until_it_is_set_back(done: Done) -> None:
    def status() -> dict[str, Any]:
        found: dict[str, Any] = json.loads(done("rabbitmqctl", "status", "--formatter", "json"))
        return found

    done("rabbitmqctl", "set_vm_memory_high_watermark", "0")
    assert status()["vm_memory_high_watermark_limit"] == 0
    assert "memory" in str(status()["alarms"])
    done("rabbitmqctl", "set_vm_memory_high_watermark", "0.9")
    assert status()["alarms"] == []


def test_the_log_of_a_broker_without_a_log_file_is_shown(done: Done) -> None:
    done("rabbitmqctl", "add_vhost", "seen")
    (last,) = done("rabbitmq-diagnostics", "-q", "log_tail", "-N", "1").splitlines()
    assert re.fullmatch(r"\d{4}-\S+ \[info\] \S+ .*seen.*", last)
    assert done("rabbitmq-diagnostics", "-q", "log_tail", "-N", "0") == ""
    assert "started TCP listener" in done("rabbitmq-diagnostics", "-q", "log_tail", "-N", "5000")
    stream = ("rabbitmq-diagnostics", "-q", "log_tail_stream", "--duration", "10")
    with ThreadPoolExecutor(1) as pool:
        following = pool.submit(done, *stream)
        count = 0
        while not following.done():
            done("rabbitmqctl", "add_vhost", f"followed{count}")
            count += 1
    printed = following.result()
    assert "followed" in printed
    assert "'seen'" not in printed


def test_the_log_is_followed_over_a_rotation(tool: Tool, done: Done, tmp_path: Path) -> None:
    with running_broker("--log-file", str(tmp_path / "h.log")) as own:
        where = {"HAREBELL_DATA_DIR": str(own.data_dir)}
        stream = ("rabbitmq-diagnostics", "-q", "log_tail_stream", "--duration", "10")
        with ThreadPoolExecutor(1) as pool:
            following = pool.submit(tool, *stream, **where)
            count = 0
            while not following.done():
                done("rabbitmqctl", "add_vhost", f"v{count}", **where)
                count += 1
                if count == 3:
                    (tmp_path / "h.log").rename(tmp_path / "h.log.1")
                    done("rabbitmqctl", "rotate_logs", **where)
        printed = following.result().stdout
        after = (tmp_path / "h.log").read_text()
        assert any(line in after.splitlines() for line in printed.splitlines())
        last = done("rabbitmq-diagnostics", "-q", "log_tail", "-N", "1", **where)
        assert last.strip() == after.splitlines()[-1]


def test_secrets_are_not_in_the_environment_that_is_printed(tool: Tool) -> None:
    with running_broker(env={"HAREBELL_DEFAULT_PASS": "s3same-open"}) as own:
        result = tool("rabbitmq-diagnostics", "os_env", HAREBELL_DATA_DIR=str(own.data_dir))
        assert "HAREBELL_DEFAULT_PASS=********" in result.stdout
        assert "s3same" not in result.stdout + result.stderr


def test_policies_that_match_a_queue_are_listed_and_mirrors_are_taken_out(
    done: Done, tmp_path: Path
) -> None:
    mirrored = {"ha-mode": "all", "max-length": 9}
    policy = {"vhost": "/", "name": "mirrored", "pattern": "^jobs", "definition": mirrored}
    file = tmp_path / "definitions.json"
    file.write_text(json.dumps({"policies": [policy]}))
    done("rabbitmqctl", "import_definitions", str(file))
    done("rabbitmqctl", "set_policy", "other", "^other", '{"max-length":9}')
    matching = json.loads(
        done("rabbitmq-diagnostics", "list_policies_that_match", "jobs", "--formatter", "json")
    )
    assert [row["name"] for row in matching] == ["mirrored"]
    listed = done("rabbitmq-queues", "-q", "list_policies_with_classic_queue_mirroring")
    assert "mirrored" in listed
    done("rabbitmqctl", "remove_classic_queue_mirroring_from_policies")
    done("rabbitmq-diagnostics", "check_if_cluster_has_classic_queue_mirroring_policy")
    policies = json.loads(done("rabbitmqctl", "list_policies", "--formatter", "json"))
    assert "max-length" in str(policies)
    assert "ha-mode" not in str(policies)
    for name in ("mirrored", "other"):
        done("rabbitmqctl", "clear_policy", name)


@pytest.mark.parametrize(
    "words",
    [
        ("rabbitmq-diagnostics", "certificates"),
        ("rabbitmq-diagnostics", "check_for_quorum_queues_without_an_elected_leader"),
        ("rabbitmq-diagnostics", "check_if_any_deprecated_features_are_used"),
        ("rabbitmq-diagnostics", "check_if_metadata_store_is_initialized"),
        ("rabbitmq-diagnostics", "check_if_metadata_store_is_initialized_with_data"),
        ("rabbitmq-diagnostics", "cipher_suites", "--all"),
        ("rabbitmq-diagnostics", "command_line_arguments"),
        ("rabbitmq-diagnostics", "enable_auth_attempt_source_tracking"),
        ("rabbitmq-diagnostics", "list_network_interfaces", "--formatter", "json"),
        ("rabbitmq-diagnostics", "list_node_auth_attempt_stats", "--by-source"),
        ("rabbitmq-diagnostics", "metadata_store_status"),
        ("rabbitmq-diagnostics", "tls_versions"),
        ("rabbitmq-queues", "rebalance", "all"),
        ("rabbitmq-upgrade", "has_reached_target_cluster_size"),
        ("rabbitmq-upgrade", "post_upgrade"),
        ("rabbitmqctl", "list_channel_interceptors"),
        ("rabbitmqctl", "list_deprecated_features", "--used"),
        ("rabbitmqctl", "reconcile_vhosts"),
    ],
)
def test_verbs_of_later_versions_answer(done: Done, words: tuple[str, ...]) -> None:
    done(*words)
