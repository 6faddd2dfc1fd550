"""What may break a rule of the house, each with the reason why.

An entry that is no longer needed fails its test, so the lists stay short.
"""

from __future__ import annotations

LONG_FUNCTIONS: dict[str, str] = {}
"""Functions above 60 lines: "path:name" and why they are not cut into pieces."""

LONG_FILES: dict[str, str] = {}
"""Files above the limit of lines."""

FUNNELS: dict[str, str] = {
    "src/harebell/cli/dump_proxy.py": "what looks on at a connection must not get in its way: "
    "without it the octets still pass",
    "src/harebell/front/session010t/dtx_errors.py": "whatever goes wrong with a branch ends the "
    "channel with 541, as the document has it, and leaves the connection alone",
    "src/harebell/front/login.py": "what goes wrong with a login after a slow hash was compared "
    "closes the connection with a reply code",
    "src/harebell/front/session09/connection.py": "whatever goes wrong with one connection closes "
    "it with a reply code and leaves the others alone",
    "src/harebell/front/scanned.py": "whatever goes wrong with one connection closes it with a "
    "reply code and leaves the others alone",
    **dict.fromkeys(
        (
            *("src/harebell/front/session010/intake.py", "src/harebell/front/session010/attach.py"),
            *(
                "src/harebell/front/session010/layer.py",
                "src/harebell/front/session010/execution.py",
            ),
        ),
        "whatever goes wrong with one command ends its session and leaves the others alone",
    ),
    "src/harebell/server/manage/desk.py": "whatever a command raises in a later turn is raised to "
    "who waits for its answer",
    "src/harebell/pipeline/running.py": "steps are users' code, and may raise anything when they "
    "are made: it becomes the pipeline's error, in one sentence",
    "src/harebell/store/commit.py": "a batch runs in a thread, which has nobody to raise to: the "
    "error is told by the batch, and the shell ends the process",
}
"""Files that may catch every exception, because something of others must not stop the broker."""

UNMIRRORED: dict[str, tuple[str, str]] = {
    "cli/consume": ("tests/cli/test_consume.py", "is run as a command against a real broker"),
    "client/channel010t": (
        "tests/interop/client/test_client_versions.py",
        "does what a real broker completes",
    ),
    "client/session010": (
        "tests/interop/client/test_client_versions.py",
        "does what a real broker answers",
    ),
    **dict.fromkeys(
        ("client/bulk", "client/blocking_bulk"),
        ("tests/interop/client/test_bulk_reads.py", "asks a real broker, which answers"),
    ),
    **dict.fromkeys(
        ("front/session09/bulk", "wire/v09/bulk"),
        ("tests/conformance/test_bulk.py", "is observed there frame by frame"),
    ),
    "front/long_operation": (
        "tests/unit/front/session09/test_lasting.py",
        "is what exchange.delete and queue.delete do there",
    ),
    "front/session09/staged": (
        "tests/unit/front/session09/test_stage.py",
        "is what stage.commit does there",
    ),
    "wire/v09/publisher": (
        "tests/unit/front/session09/test_publisher.py",
        "is a table, and what goes over the wire there",
    ),
    "wire/arrow/types": ("tests/unit/wire/arrow/test_encode.py", "is held against pyarrow there"),
    "cli/dump": ("tests/cli/test_dump.py", "is run as a command in front of a real broker"),
    "cli/dump_proxy": ("tests/cli/test_dump.py", "passes on what a real client and broker say"),
    "wire/dissect/event": ("tests/unit/wire/dissect/test_frames09.py", "is what these see"),
    "cli/get": ("tests/cli/test_consume.py", "is run as a command against a real broker"),
    "cli/store": ("tests/cli/test_store.py", "is run as a command on real data directories"),
    **dict.fromkeys(
        (
            *("cli/noun", "cli/users", "cli/permissions", "cli/vhosts"),
            *("cli/policies", "cli/operator_policies", "cli/trace"),
            *("server/manage/site", "server/manage/users", "server/manage/vhosts"),
            *("server/manage/policies", "server/manage/commands"),
        ),
        ("tests/cli/test_manage.py", "is run by the command against a real broker"),
    ),
    **dict.fromkeys(
        tuple(f"wire/v09/methods_{name}" for name in ("stream", "peers")),
        ("tests/unit/wire/v09/test_methods_file.py", "is what those tables name"),
    ),
    **dict.fromkeys(
        (
            *("front/session09/older", "front/session09/amqp_0_8", "front/session09/amqp_0_9"),
            *("front/session09/amqp_0_9_1", "front/versions"),
        ),
        ("tests/unit/front/session09/test_profile.py", "is a profile, or what makes one"),
    ),
    "front/session09/older_access": (
        "tests/conformance/v08/test_access.py",
        "is what the rules of that class say",
    ),
    "front/session09/older_exchange": (
        "tests/conformance/v08/test_exchange.py",
        "is what the rules of that class say",
    ),
    "front/session09/older_queue": (
        "tests/conformance/v08/test_queue.py",
        "is what the rules of that class say",
    ),
    "front/session09/older_flow": (
        "tests/conformance/v08/test_channel.py",
        "is what the rules of that class say",
    ),
    **dict.fromkeys(
        tuple(f"front/session09/older_{name}" for name in ("basic", "channel", "consumer")),
        ("tests/conformance/v08/test_basic.py", "is what the rules of that class say"),
    ),
    **dict.fromkeys(
        ("wire/v09/amqp_0_9", "wire/v09/methods_older"),
        ("tests/unit/wire/v09/test_amqp_0_8.py", "is held against its document there"),
    ),
    **dict.fromkeys(
        ("front/link", "front/peer"),
        ("tests/unit/front/test_arrival.py", "is what an arrival and its successor share"),
    ),
    "front/scanned": (
        "tests/unit/front/session09/test_connection.py",
        "is what the connections of all versions share; tests/conformance sees it in each",
    ),
    "auth/sasl/exchange": (
        "tests/unit/auth/sasl/test_exchanges.py",
        "is what mechanisms derive of",
    ),
    "front/login": (
        "tests/conformance/test_login.py",
        "is what peers of every version are offered there",
    ),
    "front/place": (
        "tests/conformance/v010/test_message.py",
        "names what permissions and events ask of channels and sessions; mypy checks it",
    ),
    "front/session010/": (
        "tests/conformance/v010/test_*.py",
        "speaks with peers, and is observed there frame by frame",
    ),
    **dict.fromkeys(
        tuple(f"wire/v010/{name}" for name in ("commands", "controls", "structs", "domains")),
        ("tests/unit/wire/v010/test_spec.py", "is what the table names"),
    ),
    "kernels/header_structs": (
        "tests/unit/kernels/test_transfers.py",
        "is what the twins of two kernels read with",
    ),
    **dict.fromkeys(
        tuple(
            f"front/session010t/{name}"
            for name in ("access", "basic", "binding", "channel", "connection", "consumer")
        )
        + tuple(f"front/session010t/{name}" for name in ("dispatch", "exchange", "execution"))
        + tuple(f"front/session010t/{name}" for name in ("flow", "frames", "handshake"))
        + tuple(f"front/session010t/{name}" for name in ("profile", "queue", "session"))
        + ("front/session010t/sessions", "front/session010t/refused")
        + tuple(f"front/session010t/{name}" for name in ("contents", "credit", "deliveries"))
        + tuple(f"front/session010t/{name}" for name in ("message", "transferring")),
        ("tests/conformance/v010t/test_*.py", "is what peers see there, frame by frame"),
    ),
    **dict.fromkeys(
        ("cli/transactions", "server/manage/transactions"),
        ("tests/cli/test_transactions.py", "is run by the command against a real broker"),
    ),
    **dict.fromkeys(
        (
            *(f"front/session010t/dtx_{each}" for each in ("demarcation", "coordination")),
            *("front/session010t/dtx_errors", "front/session09/branched"),
        ),
        ("tests/conformance/v010t/test_dtx_*.py", "is what peers see there, frame by frame"),
    ),
    "front/session09/dtx": (
        "tests/conformance/v08/test_dtx.py",
        "is what peers see there, frame by frame",
    ),
    "front/contents/": ("tests/conformance/v08/test_file.py", "shows in what peers are sent"),
    **dict.fromkeys(
        tuple(f"front/session09/{name}" for name in ("file", "stream", "test", "tunnel")),
        ("tests/conformance/v08/test_stream.py", "shows in what peers are sent, as the others do"),
    ),
    **dict.fromkeys(
        ("front/convert/file", "front/convert/stream"),
        ("tests/unit/front/convert/test_carried.py", "are what converts there"),
    ),
    "model/queue/sparing": ("tests/conformance/v08/test_overflow.py", "shows in what is left"),
    "wire/v09/property_values": (
        "tests/unit/wire/v09/test_property_list.py",
        "is what every list is written with",
    ),
    **dict.fromkeys(
        tuple(f"server/definitions/{name}" for name in ("people", "topology", "place")),
        ("tests/unit/server/definitions/test_inward.py", "is what the import works with"),
    ),
    **dict.fromkeys(
        ("cli/definitions", "server/definitions/boot", "server/manage/definitions"),
        ("tests/cli/test_definitions.py", "is run by the command against a real broker"),
    ),
    **dict.fromkeys(
        (
            *("cli/listing", "cli/queues", "cli/exchanges", "cli/bindings", "cli/connections"),
            *("cli/channels", "cli/consumers", "server/manage/queues"),
            *("server/manage/exchanges", "server/manage/connections"),
        ),
        ("tests/cli/test_listings.py", "is run by the command against a real broker"),
    ),
    **dict.fromkeys(
        (
            *("cli/topic_permissions", "cli/limits", "cli/parameters", "cli/global_parameters"),
            *("server/manage/topics", "server/manage/limits", "server/manage/parameters"),
        ),
        ("tests/cli/test_administer.py", "is run by the command against a real broker"),
    ),
    "model/log_exchange": (
        "tests/unit/server/test_told_log.py",
        "publishes lines, and is read there",
    ),
    "front/session09/intercept": (
        "tests/conformance/test_interceptors.py",
        "changes what is published, and is seen in what is delivered",
    ),
    **dict.fromkeys(
        ("model/events", "front/told"),
        ("tests/conformance/test_events.py", "tells frames, and is heard in frames"),
    ),
    **dict.fromkeys(
        ("model/firehose", "front/session09/traced"),
        ("tests/conformance/test_firehose.py", "shows frames, and is seen in frames"),
    ),
    "cli/link": ("tests/cli/test_publish.py", "is run by every verb, against a real broker"),
    **{
        f"client/{name}": ("tests/interop/client/test_client_*.py", "is I/O: runs against brokers")
        for name in (
            *("aio", "aio_channel", "aio_consumer", "aio_link", "aio_requests", "requests"),
            *("blocking", "blocking_channel", "blocking_consumer", "blocking_link"),
            "blocking_requests",
        )
    },
    "client/channel_parts": ("tests/unit/client/test_channel.py", "has types and nothing else"),
    "client/verbs": ("tests/unit/client/test_channel.py", "is half of the channel's class"),
    "base/limits": ("tests/unit/server/test_config.py", "has constants and nothing else"),
    "base/version": ("tests/docs/test_reference.py", "is compared with the project's version"),
    "wire/v09/frames": ("tests/unit/kernels/test_frames.py", "passes the kernel's names on"),
    **dict.fromkeys(
        ("cli/leases", "server/manage/leases"),
        ("tests/cli/test_leases.py", "is run by the command against a real broker"),
    ),
    **dict.fromkeys(
        ("cli/stages", "server/manage/stages"),
        ("tests/cli/test_stages.py", "is run by the command against a real broker"),
    ),
    "model/queue/leased": (
        "tests/unit/front/session09/test_lease.py",
        "is asked there as peers ask, of every kind",
    ),
    "wire/v09/rabbitmq": ("tests/unit/wire/v09/test_amqp_0_9_1.py", "is part of that table"),
    "kernels/arrays": ("tests/unit/kernels/test_columns.py", "is reached through columns only"),
    "spark/warming": ("tests/spark/test_warm.py", "runs a JVM, which has to start faster then"),
    "client/blocking_rows": ("tests/spark/test_writer.py", "is I/O: runs against brokers"),
    "spark/option_values": ("tests/unit/spark/test_sink_options.py", "is read there, wrong once"),
    "spark/sink": ("tests/spark/test_writer.py", "is called there as Spark calls it"),
    "spark/claims": ("tests/spark/test_leased.py", "needs a real broker, as what asks it does"),
    "spark/aim": ("tests/spark/test_writer.py", "is what a task there is given"),
    "spark/confirmed": ("tests/spark/test_writer.py", "needs a real broker, and does little alone"),
    "spark/staged": ("tests/spark/test_staged_writer.py", "needs a real broker"),
    "spark/reconnecting": ("tests/spark/test_lost_connections.py", "loses a real broker there"),
    "spark/intake": ("tests/spark/test_reader.py", "needs a real broker, and does little alone"),
    "spark/receiver": ("tests/spark/test_reader.py", "needs a real broker, and does little alone"),
    "spark/stream_source": ("tests/spark/test_reader.py", "is called there as Spark calls it"),
    **dict.fromkeys(
        ("pipeline/check_sinks", "pipeline/check_sources", "pipeline/description"),
        ("tests/unit/pipeline/test_checking.py", "is what a file is read with, or becomes"),
    ),
    **dict.fromkeys(
        (
            *("pipeline/hosting", "pipeline/running", "pipeline/sinks"),
            *("pipeline/staging", "pipeline/parquet_sink", "pipeline/delta_sink"),
            *("pipeline/exchange_sink", "pipeline/dead_letters"),
        ),
        ("tests/spark/test_pipeline.py", "needs Spark, and is run there as pipelines are"),
    ),
    **dict.fromkeys(
        (
            *("cli/sql", "cli/shipped", "pipeline/taking", "pipeline/queries", "pipeline/lakes"),
            *("pipeline/browsing", "pipeline/looking", "pipeline/replaying", "pipeline/shipped"),
        ),
        ("tests/spark/test_sql.py", "needs Spark and a broker, and is run there as people do"),
    ),
    **dict.fromkeys(
        ("cli/pipeline", "cli/piping"), ("tests/cli/test_pipeline.py", "is run as a command")
    ),
    "spark/batch_source": ("tests/spark/test_batch.py", "is called there as Spark calls it"),
    "spark/leased": ("tests/spark/test_leased.py", "needs a real broker's leases"),
    "spark/positions": ("tests/spark/test_positions.py", "needs a real broker's streams"),
    "spark/parts": ("tests/spark/test_leased.py", "asks a real broker what it can do"),
    "spark/rows": ("tests/spark/test_leased.py", "reads from a real broker"),
    "spark/link": ("tests/spark/test_leased.py", "is a connection to a real broker"),
    "spark/naming": ("tests/spark/test_leased.py", "asks a real broker for its queues"),
    "spark/spooled": ("tests/spark/test_reader.py", "needs a real broker, and does little alone"),
    "front/session09/bulk_names": ("tests/conformance/test_bulk.py", "is one method, asked there"),
    "base/clock": ("tests/unit/store/test_log.py", "is a value, stamped on records there"),
    "base/ports": ("tests/unit/base/test_*.py", "has interfaces and nothing else"),
}
"""Modules, or folders of them, without a test file of their own name: which tests they have,
and why those are better."""
