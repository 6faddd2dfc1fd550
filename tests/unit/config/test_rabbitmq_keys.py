"""Each key of RabbitMQ is honoured, or a warning says why it has no effect."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from harebell.admin.sampling_plan import SamplingPlan
from harebell.config import Config, ConfigError, read_configuration
from harebell.config.errors import Problems
from harebell.config.rabbitmq_conf import Line
from harebell.config.rabbitmq_keys import SAME, SATISFIED, Translation, rabbitmq_names
from harebell.config.rabbitmq_known import PLUGINS, fits, known_keys
from harebell.config.rabbitmq_reasons import REASONS, reason_of
from harebell.management.statistics.planning import plan_of

HONOURED: list[tuple[str, str, Any]] = [
    ("listeners.tcp.1 = 127.0.0.1:5673", "port", 5673),
    ("listeners.tcp.1 = [::1]:5673", "host", "::1"),
    ("loopback_users.ann = true", "loopback_users", ("guest", "ann")),
    ("loopback_users = none", "loopback_users", ()),
    ("default_user = ann", "default_user", "ann"),
    ("default_pass = sesame", "default_pass", "sesame"),
    ("default_vhost = v", "default_vhost", "v"),
    ("default_user_tags.monitoring = true", "default_user_tags", ("monitoring",)),
    ("default_permissions.read = ^r", "default_permissions_read", "^r"),
    ("default_users.b.password = x", "default_users", {"b": {"password": "x"}}),
    ("heartbeat = 7", "heartbeat", 7),
    ("frame_max = 8192", "frame_max", 8192),
    ("frame_max = 128KB", "frame_max", 131_072),
    ("channel_max = 9", "channel_max", 9),
    ("max_channels_per_connection = 9", "channel_max", 9),
    ("handshake_timeout = 2500", "handshake_timeout_seconds", 2.5),
    ("max_message_size = 1000", "message_max_bytes", 1000),
    ("consumer_timeout = 60000", "consumer_timeout", 60_000),
    ("vm_memory_high_watermark.relative = 0.25", "memory_high_watermark", 0.25),
    ("vm_memory_high_watermark.relative = 0", "memory_high_watermark", 0),
    ("vm_memory_high_watermark.absolute = 1GB", "memory_high_watermark", 10**9),
    ("disk_free_limit.absolute = 2GiB", "disk_free_limit", 2 << 30),
    ("cluster_name = c", "cluster_name", "c"),
    ("cluster_tags.region = eu", "cluster_tags", {"region": "eu"}),
    ("node_tags.zone = a", "node_tags", {"zone": "a"}),
    ("log.dir = /tmp", "log_dir", Path("/tmp")),
    ("log.file = rabbit.log", "log_file", "rabbit.log"),
    ("log.file = false", "log_file", None),
    ("log.file.level = debug", "log_file_level", "debug"),
    ("log.console = false", "log_console", False),
    ("log.console.level = error", "log_console_level", "error"),
    ("log.console.formatter = json", "log_console_formatter", "json"),
    ("log.console.formatter.time_format = epoch_secs", "log_console_time_format", "epoch_secs"),
    ("log.console.formatter.level_format = uc", "log_console_level_format", "uc"),
    ("log.exchange = true", "log_exchange", True),
    ("log.queue.level = error", "log_levels", {"queue": "error"}),
    ("auth_mechanisms.1 = PLAIN", "auth_mechanisms", ("PLAIN",)),
    (
        "password_hashing_module = rabbit_password_hashing_sha512",
        "password_hashing_module",
        "rabbit_password_hashing_sha512",
    ),
    ("credential_validator.min_length = 9", "credential_validator_min_length", 9),
    ("default_queue_type = quorum", "default_queue_type", "quorum"),
    (
        "default_limits.vhosts.1.max_queues = 3",
        "default_limits_vhosts",
        {"1": {"max_queues": 3}},
    ),
    (
        "default_policies.operator.p.max_length = 3",
        "default_policies_operator",
        {"p": {"max_length": 3}},
    ),
    ("connection_max = 11", "connection_max", 11),
    ("max_connections = 11", "connection_max", 11),
    ("tcp_listen_options.backlog = 7", "tcp_backlog", 7),
    ("tcp_listen_options.nodelay = false", "tcp_nodelay", False),
    ("tcp_listen_options.keepalive = true", "tcp_keepalive", True),
    ("tcp_listen_options.sndbuf = 65536", "tcp_send_buffer_bytes", 65_536),
    ("tcp_listen_options.recbuf = 65536", "tcp_receive_buffer_bytes", 65_536),
    ("tcp_listen_options.linger.timeout = 9", "tcp_linger_seconds", 9.0),
    ("management.listener.port = 1", "management_port", 1),
    ("max_connections = infinity", "connection_max", 0),
    ("vhost_max = 3", "vhost_max", 3),
    ("definitions.skip_if_unchanged = true", "definitions_skip_if_unchanged", True),
    ("management.tcp.port = 1", "management_port", 1),
    ("management.path_prefix = /m", "management_path_prefix", "/m"),
    ("management.cors.max_age = 5", "management_cors_max_age", 5),
    ("prometheus.tcp.port = 2", "metrics_port", 2),
    ("prometheus.ssl.ip = 127.0.0.2", "metrics_host", "127.0.0.2"),
    ("prometheus.return_per_object_metrics = true", "metrics_per_object", True),
]


def read(directory: Path, text: str) -> Any:
    path = directory / "rabbitmq.conf"
    path.write_text(text)
    return read_configuration({}, {}, path)


@pytest.mark.parametrize(("line", "name", "value"), HONOURED)
def test_a_key_that_users_have_sets_its_setting(
    tmp_path: Path, line: str, name: str, value: Any
) -> None:
    found = read(tmp_path, line + "\n")
    assert getattr(found.config, name) == value
    assert found.warnings == []


def test_every_other_key_of_rabbitmq_has_a_reason() -> None:
    honoured = {key for keys in rabbitmq_names().values() for key in keys}
    honoured |= {key for key, name in SAME.items() if not name} | {"listeners.ssl"}
    for key in known_keys():
        segments = tuple(key.split("."))
        if any(fits(pattern, segments) for pattern in honoured):
            continue
        if any(fits(pattern, segments) for pattern in SATISFIED):
            continue
        assert reason_of(segments), key


def test_every_reason_is_about_a_key_that_rabbitmq_has() -> None:
    keys = [tuple(key.split(".")) for key in known_keys()]
    for prefix in REASONS:
        parts = tuple(prefix.split("."))
        assert parts[0] in (*PLUGINS, "tcp_listen_options") or any(
            key[: len(parts)] == parts or reason_of(key) == REASONS[prefix] for key in keys
        ), prefix


def test_a_warning_has_the_line_the_key_and_the_reason(tmp_path: Path) -> None:
    found = read(tmp_path, "mqtt.prefetch = 10\ncluster_formation.node_type = disc\n")
    path = tmp_path / "rabbitmq.conf"
    assert found.warnings == [
        f"{path}, line 1: mqtt.prefetch has no effect in Harebell: Harebell serves AMQP 0-8 to "
        "0-10, no other protocol",
        f"{path}, line 2: cluster_formation.node_type has no effect in Harebell: a Harebell broker "
        "is a cluster of one node",
    ]
    assert found.config == Config()


def test_a_value_that_is_there_anyway_is_no_warning(tmp_path: Path) -> None:
    text = "definitions.hashing.algorithm = sha256\nauth_backends.1 = internal\n"
    assert read(tmp_path, text).warnings == []
    (sentence,) = read(tmp_path, "definitions.hashing.algorithm = md5\n").warnings
    assert sentence.endswith("no effect in Harebell: definitions are compared by their SHA-256")


def test_statistics_are_collected_as_the_file_says(tmp_path: Path) -> None:
    text = (
        "collect_statistics = coarse\ncollect_statistics_interval = 30000\n"
        "management.rates_mode = detailed\n"
        "management.sample_retention_policies.global.minute = 5\n"
        "management.sample_retention_policies.global.3600 = 60\n"
        "management.sample_retention_policies.basic.minute = 5\n"
    )
    found = read(tmp_path, text)
    assert found.warnings == []
    plan = plan_of(found.config)
    assert (plan.collect, plan.rates_mode, plan.seconds) == ("coarse", "detailed", 30.0)
    assert plan.totals == ((60, 5), (3_600, 60))
    assert plan.objects == ((60, 5),)
    assert plan.details == SamplingPlan().details


SCHEMAS = Path("/usr/lib/rabbitmq/lib").glob("rabbitmq_server-*/plugins/*/priv/**/*.schema")


def schema_keys() -> list[str]:
    """Return the keys in the schema files of the RabbitMQ that is installed."""
    found = []
    for path in SCHEMAS:
        text = re.sub(r"(?m)^\s*%.*$", "", path.read_text())
        found += re.findall(r'\{\s*mapping\s*,\s*"([^"]+)"', text)
    return sorted(set(found))


def test_no_key_in_the_schemas_of_the_installed_rabbitmq_is_unknown(tmp_path: Path) -> None:
    keys = schema_keys()
    assert len(keys) > 800
    for key in keys:
        segments = tuple(key.split("."))
        if segments[0] == "auth_backends":
            continue  # any other backend ends the start: see test_auth_backends.py
        problems = Problems()
        translation = Translation([Line(tmp_path, 1, segments, "x")], problems)
        assert translation.values or translation.warnings or problems, key
        for sentence in translation.warnings:
            assert "unknown" not in sentence, key
            assert ": " in sentence.partition("has no effect")[2], (key, sentence)


def test_linger_is_not_set_where_it_is_off(tmp_path: Path) -> None:
    text = "tcp_listen_options.linger.on = false\ntcp_listen_options.linger.timeout = 9\n"
    found = read(tmp_path, text)
    assert (found.config, found.warnings) == (Config(), [])


def test_the_old_listener_of_the_management_plugin_is_tls_where_it_says_so(tmp_path: Path) -> None:
    text = "management.listener.port = 7\nmanagement.listener.ssl = true\n"
    path = tmp_path / "rabbitmq.conf"
    path.write_text(text)
    with pytest.raises(ConfigError, match="management_tls_port is set but tls_cert is not"):
        read_configuration({}, {}, path)


@pytest.mark.parametrize(
    ("key", "near"),
    [
        ("conection_max", "connection_max"),
        ("tcp_listen_options.nodely", "tcp_listen_options.nodelay"),
        ("listeners.tpc.default", "listeners.tcp.default"),
        ("tcp_listen_options.unheard_of", None),
        ("my_own.key", None),
        ("orders", None),
    ],
)
def test_a_suggestion_has_the_same_segments_nearly(
    tmp_path: Path, key: str, near: str | None
) -> None:
    (sentence,) = read(tmp_path, f"{key} = 3\n").warnings
    ending = "" if near is None else f": did you mean {near}?"
    assert sentence.endswith(f"{key} is unknown and has no effect{ending}")


@pytest.mark.parametrize("unit", ["", *"kmgtp"])
def test_every_unit_of_rabbitmq_is_read(tmp_path: Path, unit: str) -> None:
    power = " kmgtp".index(unit or " ")
    for ending in ["", "i", "ib", "b"] if unit else [""]:
        base = 1_000 if ending == "b" else 1_024
        for written in (unit + ending, (unit + ending).upper()):
            found = read(tmp_path, f"disk_free_limit.absolute = 2{written}\n")
            assert found.config.disk_free_limit == 2 * base**power, written


def test_keys_that_belong_together_are_joined_although_others_are_wrong(tmp_path: Path) -> None:
    path = tmp_path / "rabbitmq.conf"
    path.write_text(
        "auth_backends.1.authz = unheard\n"
        "auth_oauth2.scope_aliases.1.alias = reader\n"
        "auth_oauth2.scope_aliases.1.scope = rabbit.read:*/*\n"
        "auth_oauth2.scope_aliases.2.alias = writer\n"
        "auth_cache.cached_backend.authn = unheard\n"
        "total_memory_available_override_value = 1GB\n"
    )
    with pytest.raises(ConfigError) as caught:
        read_configuration({}, {}, path)
    problems = caught.value.problems
    assert len(problems) == 3, problems
    for part, problem in zip(
        ("auth_backends.1.authz", "needs both .alias and .scope", "auth_cache.cached_backend"),
        problems,
        strict=True,
    ):
        assert part in problem
