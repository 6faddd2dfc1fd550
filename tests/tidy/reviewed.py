"""Exceptions to the rules of tests/tidy, each with its reason.

An entry that is no longer needed fails its test.
"""

from __future__ import annotations

FUNNELS: dict[str, str] = {
    **dict.fromkeys(
        (f"src/harebell/client/{api}/driver.py" for api in ("aio", "blocking")),
        "an error of a wait is raised in the method that waits, which raises it again",
    ),
    **dict.fromkeys(
        (f"src/harebell/client/{name}.py" for name in ("aio/worker", "blocking/worker")),
        "whatever a handler raises is logged, and its message goes where the policy says",
    ),
    "src/harebell/client/protocol/shared_worker.py": "an error of the policy is raised by `run`, "
    "when the handlers have ended",
    "src/harebell/client/protocol/shared_connection.py": "an error of a function of `on_state` is "
    "logged, and recovery goes on",
    "src/harebell/spark/runtime/jvm_end.py": "whatever a call raises when its JVM has ended; other "
    "errors are raised again",
    "src/harebell/pipeline/sql/embedded/answering.py": "the process answers with its error",
    "src/harebell/pipeline/sinks/iceberg_catalog.py": "errors of every catalog and file system",
    "src/harebell/cli/dump_proxy.py": "what looks on at a connection must not get in its way: "
    "without it the octets still pass",
    "src/harebell/front/amqp_0_10_transitional/dtx_errors.py": "an error in a branch ends the "
    "channel with 541, as the specification has it, and leaves the connection alone",
    **dict.fromkeys(
        (
            f"src/harebell/front/amqp_1_0/{name}.py"
            for name in ("attaching", "dispatch", "intake", "receiving", "session")
        ),
        "an error of a link or a session ends that and leaves the others alone",
    ),
    "src/harebell/front/common/login.py": "an error after a slow password comparison "
    "closes the connection with a reply code",
    "src/harebell/front/amqp_0_9_1/connection.py": "an error of one connection closes it with a "
    "reply code and leaves the others alone",
    "src/harebell/front/operations/publishing_channel.py": "an error of a publish closes its "
    "channel or connection with a reply code, as that of any other method does",
    "src/harebell/front/common/base_connection.py": "an error of one connection closes it with a "
    "reply code and leaves the others alone",
    **dict.fromkeys(
        (
            f"src/harebell/front/amqp_0_10/{name}.py"
            for name in ("intake", "session_attach", "session_layer", "execution")
        ),
        "an error in one command ends its session and leaves the others alone",
    ),
    "src/harebell/server/event_turns.py": "the tick or the output of one connection that fails "
    "leaves the others alone; `Failures.guard` is a slower call for each of them",
    "src/harebell/server/backup/making.py": "an error ends that backup and nothing else",
    "src/harebell/management/backends/chain.py": "a login that a backend cannot handle is refused, "
    "and its client is answered",
    "src/harebell/management/control/dispatcher.py": "whatever a command raises in a later turn is "
    "raised to who waits for its answer",
    "src/harebell/management/control/row_reader.py": "whatever a stream of rows raises in a later "
    "turn is raised to the task that waits for its rows",
    "src/harebell/management/http/application.py": "an error of one request is answered with 500, "
    "and leaves the others alone",
    "src/harebell/pipeline/run/running.py": "steps are users' code and may raise anything when "
    "they are made; it becomes the pipeline's error, in one sentence",
    "src/harebell/store/commit.py": "a batch runs in a thread, which has nobody to raise to: the "
    "error is told by the batch, and the shell ends the process",
    "src/harebell/store/removal.py": "a removal runs in the same thread",
    "src/harebell/base/failures.py": "timers, ticks and ends of commits work for others; one that "
    "raises is counted and reported, and the others go on",
    "src/harebell/front/common/turns.py": "a long operation that raises is counted and reported, "
    "and those of others go on",
    "src/harebell/model/job_run.py": "a message that a job cannot handle ends it with the reason",
    **dict.fromkeys(
        (f"src/harebell/server/disk/{name}.py" for name in ("batch_thread", "sync_thread")),
        "a thread has nobody to raise to: what it raises is a failed commit",
    ),
    "src/harebell/server/disk/loop_commits.py": "a commit whose answer raises is a failed commit: "
    "one that never ended would keep all confirms back",
    "src/harebell/server/logs/logger.py": "the thread of the log goes on, and standard error says "
    "what is lost",
    "src/harebell/cluster/cluster_directory.py": "the thread that reads the tables of the "
    "cluster reads them again, whatever a row has in it",
}
"""Files that may catch every exception, so that an error of one peer or user stops no other."""

_CLIENT = ("channel", "connection", "requests")
CIRCLES: dict[tuple[str, ...], str] = {
    ("harebell.admin.catalog", "harebell.admin.command"): "the catalog has the commands in their "
    "order, and a noun that is imported alone finds its place there",
    (
        "harebell.cli.nouns",
        "harebell.cli.verbs.audit",
        "harebell.cli.verbs.dead_letters",
        "harebell.cli.verbs.definitions",
    ): "export and import are actions of a noun, and written by hand because they read and write "
    "files, or ask for pages",
    **{
        tuple(
            f"harebell.client.{api}.{name}" for name in ("channel", "connection", "requests")
        ): "a connection makes channels and requesters, which wait on it"
        for api in ("aio", "blocking")
    },
    (
        "harebell.front.amqp_0_10.file_stage",
        "harebell.front.amqp_0_10.file_stream_adapter",
    ): "the adapter keeps the file.stage that is arriving, which reports to it",
    (
        "harebell.front.amqp_0_10.publishing",
        "harebell.front.amqp_0_10.session",
        "harebell.front.amqp_0_10.subscription",
    ): "a session publishes and has subscriptions, which deliver through it",
    tuple(
        f"harebell.front.amqp_0_10_transitional.{name}"
        for name in ("channel", "deliveries", "refused", "sessions")
    ): "a channel has a session, whose deliveries and refused transfers go through the channel",
    (
        "harebell.front.common.base_connection",
        "harebell.front.common.channel_like",
        "harebell.front.common.connection_registry",
        "harebell.front.common.totals",
    ): "the registry holds connections and adds up their counters, and each reports to it",
    (
        "harebell.front.file_stream.file_consumer",
        "harebell.front.file_stream.file_lane",
    ): "a consumer of files sends through its lane, which knows the consumer",
    ("harebell.model.binding", "harebell.model.exchange.kind"): "an exchange has bindings, and a "
    "binding leads from an exchange",
    (
        "harebell.model.consumer",
        "harebell.model.queue.contract",
        "harebell.model.queue.features.consumers",
    ): "a queue has consumers, and a consumer knows its queue",
    (
        "harebell.model.dead_letter",
        "harebell.model.dead_letter_scheduler",
    ): "dead letters wait in the scheduler, which publishes them",
    ("harebell.model.firehose", "harebell.model.router"): "the firehose publishes copies through "
    "the router, which asks it whether it is on",
    (
        "harebell.model.job_run",
        "harebell.model.jobs",
    ): "a run reports to the jobs, which import its file with the first one",
    (
        "harebell.model.lease.group",
        "harebell.model.lease.leases",
    ): "leases have groups, and a group reports its end",
    (
        "harebell.model.queue.features.byte_accounting",
        "harebell.model.queue.features.limits",
    ): "a limit in bytes has an account, which counts for that limit",
    (
        "harebell.model.queue.features.expiry",
        "harebell.model.queue.features.queue_internals",
    ): "a queue has an expiry, whose timer expires messages of that queue",
    (
        "harebell.model.queue.order.contract",
        "harebell.model.queue.order.fifo",
        "harebell.model.queue.position_range",
    ): "every order is made of first-in-first-out orders, and ranges are read through them",
    (
        "harebell.management.statistics.node",
        "harebell.server.app",
        "harebell.server.net.connection",
        "harebell.server.net.listener",
    ): "the app opens listeners, which accept connections, which use what the app shares",
    (
        "harebell.store.log.spill",
        "harebell.store.log.transient_log",
    ): "a transient log has large messages spilled, and is told when one is on disk",
}
"""Files that import each other, imports for types included, and why they are not one file."""
