"""Exceptions to the rules of tests/tidy, each with its reason.

An entry that is no longer needed fails its test.
"""

from __future__ import annotations

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
    "src/harebell/server/control/dispatcher.py": "whatever a command raises in a later turn is "
    "raised to who waits for its answer",
    "src/harebell/pipeline/running.py": "steps are users' code, and may raise anything when they "
    "are made: it becomes the pipeline's error, in one sentence",
    "src/harebell/store/commit.py": "a batch runs in a thread, which has nobody to raise to: the "
    "error is told by the batch, and the shell ends the process",
}
"""Files that may catch every exception, so that an error of one peer or user stops no other."""
