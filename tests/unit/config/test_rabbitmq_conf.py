"""RabbitMQ's files and variables are read as they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harebell.config import Config, ConfigError, default_password, read_configuration
from harebell.config.errors import Problems
from harebell.config.rabbitmq_conf import read_file, segments_of
from harebell.config.rabbitmq_keys import rabbitmq_names
from harebell.config.rabbitmq_known import fits, known_keys
from harebell.config.settings import BY_NAME
from harebell.config.shown import toml_document
from harebell.config.values import machine_memory_bytes

EXAMPLE = """\
# what a user of RabbitMQ has
listeners.tcp.default = 5673
listeners.tcp.local = 127.0.0.1:5674
loopback_users.guest = false
default_user = $(SEED_USER)
default_pass = 'a#b \\' c'   # quotes keep it
default_vhost = /orders
default_user_tags.administrator = true
default_user_tags.monitoring = true
default_permissions.configure = ^orders
heartbeat = 30
handshake_timeout = 5000
max_message_size = 1000000
vm_memory_high_watermark.absolute = 512MiB
disk_free_limit.absolute = 50MB
default_users.one.vhost_pattern = ^/
default_users.one.password = sesame
default_users.one.tags = a, b
default_limits.vhosts.1.pattern = ^t
default_limits.vhosts.1.max_queues = 7
default_policies.operator.p.queue_pattern = ^q
default_policies.operator.p.expires = 1h
cluster_name = warehouse
node_tags.zone = a
credential_validator.validation_backend = rabbit_credential_validator_min_password_length
credential_validator.min_length = 12
log.console = true
log.console.level = debug
log.console.formatter = json
log.console.formatter.time_format = epoch_usecs
log.connection.level = warning
log.file = rabbit.log
log.dir = /tmp
log.file.rotation.date = $D0
log.file.rotation.size = 10485760
"""


def read(directory: Path, text: str, environ: dict[str, str] | None = None) -> Any:
    path = directory / "rabbitmq.conf"
    path.write_text(text)
    return read_configuration({}, environ or {}, path)


def refusal(directory: Path, text: str, environ: dict[str, str] | None = None) -> str:
    with pytest.raises(ConfigError) as caught:
        read(directory, text, environ)
    return str(caught.value)


def test_a_file_as_users_have_it_is_honoured(tmp_path: Path) -> None:
    found = read(tmp_path, EXAMPLE, {"SEED_USER": "ann"})
    config = found.config
    assert found.warnings == []
    assert (config.host, config.port) == ("::", 5673)
    assert config.listen == (("amqp", "127.0.0.1", 5674),)
    assert config.loopback_users == ()
    assert (config.default_user, config.default_pass) == ("ann", "a#b ' c")
    assert config.default_vhost == "/orders"
    assert config.default_user_tags == ("administrator", "monitoring")
    assert config.default_permissions_configure == "^orders"
    assert (config.heartbeat, config.handshake_timeout_seconds) == (30, 5.0)
    assert config.message_max_bytes == 1_000_000
    assert (config.memory_high_watermark, config.disk_free_limit) == (512 << 20, 50_000_000)
    assert config.default_users == {
        "one": {"vhost_pattern": "^/", "password": "sesame", "tags": ("a", "b")}
    }
    assert config.default_limits_vhosts == {"1": {"pattern": "^t", "max_queues": 7}}
    assert config.default_policies_operator == {"p": {"queue_pattern": "^q", "expires": 3_600_000}}
    assert (config.cluster_name, config.node_tags) == ("warehouse", {"zone": "a"})
    assert config.credential_validator == "min_length"
    assert config.credential_validator_min_length == 12
    assert (config.log_console_level, config.log_console_formatter) == ("debug", "json")
    assert config.log_levels == {"connection": "warning"}
    assert (config.log_file, config.log_dir) == ("rabbit.log", Path("/tmp"))
    assert (config.log_file_rotation_date, config.log_file_rotation_size) == ("$D0", 10 << 20)


def test_every_key_of_rabbitmq_is_accepted_and_named_where_it_has_no_effect(
    tmp_path: Path,
) -> None:
    honoured = {key for keys in rabbitmq_names().values() for key in keys}
    assert len(known_keys()) > 390
    for key in known_keys():
        written = key.replace("$", "")
        if key == "listeners.ssl" or any(
            fits(pattern, segments_of(written)) for pattern in honoured
        ):
            continue
        if key.startswith("auth_backends."):
            # Any other backend ends the start: see test_auth_backends.py.
            continue
        found = read(tmp_path, f"{written} = x\n")
        if key != "anonymous_login_pass":
            assert len(found.warnings) == 1, key
            assert f"line 1: {written} has no effect" in found.warnings[0], key
        assert found.config == Config()


def test_every_key_that_is_honoured_sets_a_setting_that_exists() -> None:
    assert set(rabbitmq_names()) <= set(BY_NAME)


def test_an_unknown_key_is_a_warning_with_the_nearest_one(tmp_path: Path) -> None:
    found = read(tmp_path, "heartbeet = 3\nlisteners.tpc.default = 1\nwarehouses = 3\n")
    path = tmp_path / "rabbitmq.conf"
    assert found.warnings == [
        f"{path}, line 1: heartbeet is unknown and has no effect: did you mean heartbeat?",
        f"{path}, line 2: listeners.tpc.default is unknown and has no effect: "
        "did you mean listeners.tcp.default?",
        f"{path}, line 3: warehouses is unknown and has no effect",
    ]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("heartbeat = soon", "line 1: heartbeat must be a whole number from 0 to 65535"),
        ("listeners.tcp.default = x", "listeners.tcp.default must be a port, or an address"),
        ("listeners.tcp.default = 70000", "must be a port"),
        ("vm_memory_high_watermark.relative = 2", "must be a number from 0 up to 1"),
        ("disk_free_limit.absolute = much", "must be a size such as 2GB"),
        ("loopback_users.guest = maybe", "must be true or false"),
        ("log.console.level = loud", "log.console.level must be one of debug"),
        ("handshake_timeout = 1s", "must be a whole number"),
        ("default_user = $(MISSING)", "names the environment variable MISSING, which is not set"),
        ("default_pass = 'open", "default_pass has a quote without its end"),
        ("heartbeat 3", "line 1: this line is not a setting"),
        ("= 3", "this line is not a setting"),
        ("heartbeat =", "heartbeat has no value"),
        ("a..b = 3", "this line is not a setting"),
        ("default_pass = encrypted:Zm9v", "default_pass is an encrypted value"),
    ],
)
def test_a_wrong_value_is_named_with_file_line_and_key(
    tmp_path: Path, line: str, said: str
) -> None:
    text = refusal(tmp_path, line + "\n")
    assert text.startswith(f"{tmp_path / 'rabbitmq.conf'}, line 1: ")
    assert said in text


def test_a_secret_is_in_no_error(tmp_path: Path) -> None:
    for line in (
        f"default_pass = {'sesame' * 50}",
        f"default_users.a.password = {'sesame' * 50}",
        "default_pass = 'sesame",
    ):
        assert "sesame" not in refusal(tmp_path, line + "\n")


def test_files_of_conf_d_follow_in_lexical_order(tmp_path: Path) -> None:
    (tmp_path / "conf.d").mkdir()
    (tmp_path / "rabbitmq.conf").write_text("heartbeat = 1\nframe_max = 8192\nchannel_max = 7\n")
    (tmp_path / "conf.d" / "20-b.conf").write_text("heartbeat = 3\n")
    (tmp_path / "conf.d" / "10-a.conf").write_text("heartbeat = 2\nframe_max = 4096\n")
    (tmp_path / "conf.d" / "30-c.txt").write_text("heartbeat = 4\n")
    found = read_configuration({}, {}, tmp_path)
    config = found.config
    assert (config.heartbeat, config.frame_max, config.channel_max) == (3, 4096, 7)
    assert [file.name for file in found.files] == ["rabbitmq.conf", "10-a.conf", "20-b.conf"]
    assert found.places["heartbeat"].shown.endswith("20-b.conf, line 1: heartbeat")


def test_each_source_wins_over_the_one_before(tmp_path: Path) -> None:
    conf = tmp_path / "rabbitmq.conf"
    conf.write_text("listeners.tcp.default = 1001\nheartbeat = 1\nframe_max = 8192\n")
    toml = tmp_path / "harebell.toml"
    toml.write_text("port = 1002\nheartbeat = 2\n")
    environ = {"RABBITMQ_CONFIG_FILE": str(conf)}
    assert read_configuration({}, environ, toml).config.port == 1002
    assert read_configuration({}, environ, toml).config.frame_max == 8192
    environ["RABBITMQ_NODE_PORT"] = "1003"
    assert read_configuration({}, environ, toml).config.port == 1003
    environ["HAREBELL_PORT"] = "1004"
    assert read_configuration({}, environ, toml).config.port == 1004
    found = read_configuration({"port": "1005"}, environ, toml)
    assert found.config.port == 1005
    assert found.places["port"].shown == "--port"
    assert found.places["heartbeat"].shown == f"{toml}, line 2: heartbeat"


def test_variables_of_rabbitmq_are_read(tmp_path: Path) -> None:
    environ = {
        "RABBITMQ_NODENAME": "rabbit@here",
        "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.9",
        "RABBITMQ_DEFAULT_USER": "ann",
        "RABBITMQ_DEFAULT_PASS": "sesame",
        "RABBITMQ_DEFAULT_VHOST": "v",
        "RABBITMQ_MNESIA_BASE": str(tmp_path / "data"),
        "RABBITMQ_LOG_BASE": str(tmp_path),
        "RABBITMQ_LOG": "debug,connection=error,+color",
        "RABBITMQ_DIST_PORT": "25672",
        "RABBITMQ_URL": "amqp://elsewhere",
    }
    found = read_configuration({}, environ)
    config = found.config
    assert (config.node_name, config.host) == ("rabbit@here", "127.0.0.9")
    assert (config.default_user, config.default_pass) == ("ann", "sesame")
    assert (config.default_vhost, config.data_dir) == ("v", tmp_path / "data")
    assert (config.log_dir, config.log_file) == (tmp_path, "harebell.log")
    assert (config.log_level, config.log_levels) == ("debug", {"connection": "error"})
    assert found.warnings == [
        "the environment variable RABBITMQ_DIST_PORT has no effect in Harebell"
    ]


def test_the_extension_of_the_file_may_be_left_out(tmp_path: Path) -> None:
    (tmp_path / "my.conf").write_text("heartbeat = 5\n")
    environ = {"RABBITMQ_CONFIG_FILE": str(tmp_path / "my")}
    assert read_configuration({}, environ).config.heartbeat == 5
    environ = {"RABBITMQ_CONFIG_FILES": str(tmp_path / "*.conf")}
    assert read_configuration({}, environ).config.heartbeat == 5


def test_a_password_comes_from_a_file_or_a_credential(tmp_path: Path) -> None:
    secret = tmp_path / "default_pass"
    secret.write_text("sesame\n")
    environ = {"HAREBELL_DEFAULT_PASS_FILE": str(secret)}
    assert default_password(read_configuration({}, environ).config) == "sesame"
    environ = {"CREDENTIALS_DIRECTORY": str(tmp_path)}
    found = read_configuration({}, environ)
    assert found.config.default_pass == "sesame"
    assert found.places["default_pass"].shown == "the credential default_pass"
    environ["HAREBELL_DEFAULT_PASS"] = "stronger"
    assert read_configuration({}, environ).config.default_pass == "stronger"
    environ["HAREBELL_DEFAULT_PASS_FILE"] = str(secret)
    with pytest.raises(ConfigError, match="both set"):
        read_configuration({}, environ)


def test_a_share_of_the_memory_is_one_of_the_machine(tmp_path: Path) -> None:
    config = read(tmp_path, "disk_free_limit.relative = 2.0\n").config
    assert config.disk_free_limit == 2 * machine_memory_bytes()
    text = "total_memory_available_override_value = 1GB\nvm_memory_high_watermark.relative = 0.5\n"
    assert read(tmp_path, text).config.memory_high_watermark == 500_000_000


def test_an_escaped_dot_belongs_to_its_segment(tmp_path: Path) -> None:
    path = tmp_path / "rabbitmq.conf"
    path.write_text("loopback_users.a\\.b = true\r\n\ufeff# x\n".replace("\ufeff", ""))
    problems = Problems()
    (line,) = read_file(path, {}, problems)
    problems.end()
    assert line.segments == ("loopback_users", "a.b")


LINES = st.one_of(
    st.builds("listeners.tcp.default = {}".format, st.integers(1, 65_535)),
    st.builds("listeners.tcp.b = 127.0.0.1:{}".format, st.integers(1, 65_535)),
    st.builds("heartbeat = {}".format, st.integers(0, 65_535)),
    st.builds("handshake_timeout = {}".format, st.integers(100, 3_600_000)),
    st.builds("vm_memory_high_watermark.relative = {}".format, st.floats(0.01, 1)),
    st.builds("vm_memory_high_watermark.absolute = {}MiB".format, st.integers(1, 10**6)),
    st.builds("disk_free_limit.relative = {}".format, st.sampled_from([0.5, 1.0, 2.5])),
    st.builds(
        "loopback_users.{} = {}".format, st.sampled_from("abc"), st.sampled_from(["true", "false"])
    ),
    st.builds(
        "cluster_tags.{} = '{}'".format,
        st.sampled_from("abc"),
        st.sampled_from(["é€", 'a"b', "x\\\\y"]),
    ),
    st.builds(
        "default_users.{}.password = '{}'".format,
        st.sampled_from("ab"),
        st.sampled_from(["p#1", "a b"]),
    ),
    st.builds("default_users.{}.tags = x,y".format, st.sampled_from("ab")),
    st.builds(
        "default_limits.vhosts.{}.max_queues = {}".format, st.integers(1, 3), st.integers(0, 9)
    ),
    st.builds(
        "default_policies.operator.{}.message_ttl = {}s".format,
        st.sampled_from("ab"),
        st.integers(0, 9),
    ),
    st.builds(
        "log.{}.level = {}".format,
        st.sampled_from(["console", "file", "connection", "default"]),
        st.sampled_from(["debug", "info", "notice", "warning", "error", "critical", "none"]),
    ),
    st.builds("log.file = {}".format, st.sampled_from(["true", "false", "a.log"])),
    st.builds(
        "auth_mechanisms.{} = {}".format, st.integers(1, 3), st.sampled_from(["PLAIN", "AMQPLAIN"])
    ),
    st.builds("default_pass = '{}'".format, st.sampled_from(["secret", "s#1"])),
    st.just("no_such_key = 1"),
)


@settings(max_examples=200, deadline=None)
@given(lines=st.lists(LINES, max_size=12))
def test_a_converted_file_gives_the_same_configuration(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str]
) -> None:
    directory = tmp_path_factory.mktemp("convert")
    found = read(directory, "\n".join(lines) + "\n")
    values = {name: getattr(found.config, name) for name in BY_NAME if name in found.places}
    toml = directory / "harebell.toml"
    toml.write_text(toml_document(values, secrets=True))
    assert read_configuration({}, {}, toml).config == found.config
    shown = toml_document(values)
    assert "secret" not in shown.replace("is a secret", "")
    assert "p#1" not in shown
