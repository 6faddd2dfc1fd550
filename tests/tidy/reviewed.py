"""Exceptions to the rules of tests/tidy, each with its reason.

An entry that is no longer needed fails its test.
"""

from __future__ import annotations

FUNNELS: dict[str, str] = {
    "src/harebell/cli/dump_proxy.py": "what looks on at a connection must not get in its way: "
    "without it the octets still pass",
    "src/harebell/front/amqp_0_10_transitional/dtx_errors.py": "an error in a branch ends the "
    "channel with 541, as the specification has it, and leaves the connection alone",
    "src/harebell/front/common/login.py": "an error after a slow password comparison "
    "closes the connection with a reply code",
    "src/harebell/front/amqp_0_9_1/connection.py": "an error of one connection closes it with a "
    "reply code and leaves the others alone",
    "src/harebell/front/common/framed_connection.py": "an error of one connection closes it with a "
    "reply code and leaves the others alone",
    **dict.fromkeys(
        (
            f"src/harebell/front/amqp_0_10/{name}.py"
            for name in ("intake", "session_attach", "session_layer", "execution")
        ),
        "an error in one command ends its session and leaves the others alone",
    ),
    "src/harebell/server/control/dispatcher.py": "whatever a command raises in a later turn is "
    "raised to who waits for its answer",
    "src/harebell/pipeline/run/running.py": "steps are users' code and may raise anything when "
    "they are made; it becomes the pipeline's error, in one sentence",
    "src/harebell/store/commit.py": "a batch runs in a thread, which has nobody to raise to: the "
    "error is told by the batch, and the shell ends the process",
}
"""Files that may catch every exception, so that an error of one peer or user stops no other."""
