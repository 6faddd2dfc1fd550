"""Every command and every Python example of the documentation does what it says there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harebell.config import load
from harebell.pipeline.checking import check
from tests.docs import shell
from tests.docs.markdown import ROOT, Document, documents
from tests.docs.reviewed import ON_SPARK, REASONS, UNRUN_FILES
from tests.running import RunningBroker, running_broker
from tests.warming import warm_once

DOCUMENTS = documents()
RUN = ("console", "sh", "python")
KNOWN = (*RUN, "toml", "yaml", "")
# For the others a broker would start, and nothing would be done with it.
WITH_EXAMPLES = [each for each in DOCUMENTS if any(block.language in RUN for block in each.blocks)]


@pytest.fixture
def broker() -> Iterator[RunningBroker]:
    """A fresh broker for each document: a page has to work without the others."""
    with running_broker() as started:
        yield started


def reviewed(command: str) -> bool:
    return any(re.fullmatch(pattern, command) for pattern in REASONS)


def on_spark(document: Document) -> list[pytest.MarkDecorator]:
    """The marks of a document whose examples are run."""
    return [pytest.mark.spark] if document.name in ON_SPARK else []


@pytest.mark.timeout(1_800)
@pytest.mark.parametrize(
    "document",
    [pytest.param(each, id=each.name, marks=on_spark(each)) for each in WITH_EXAMPLES],
)
def test_the_examples_of_a_document_work_in_their_order(
    document: Document, broker: RunningBroker, tmp_path_factory: pytest.TempPathFactory
) -> None:
    if document.name in ON_SPARK:
        warm_once()
    files = tmp_path_factory.mktemp("files")
    namespace: dict[str, Any] = {"__name__": "__example__"}
    for block in document.blocks:
        if block.language == "python" and document.name not in UNRUN_FILES:
            text = block.text.replace(":5672", f":{broker.port}")
            # Empty lines in front make the traceback's line the document's.
            lines = "\n" * (block.line - 1) + text
            code = compile(lines, str(document.path), "exec", dont_inherit=True)
            exec(code, namespace)
        elif block.language in ("console", "sh"):
            for step in shell.steps(block):
                if not reviewed(step.command):
                    shell.check(step, broker, files)
        elif block.language == "yaml":
            shell.keep_file(block, files)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.name)
def test_every_block_says_what_it_is(document: Document) -> None:
    for block in document.blocks:
        assert block.language in KNOWN, f"{document.name}, line {block.line}: {block.language}"
        first = block.text.lstrip().split("\n", 1)[0]
        if block.language == "" and document.name not in UNRUN_FILES:
            assert not re.match(r"\$ |harebell |make |import |from \w+ import ", first), (
                f"{document.name}, line {block.line}: give the block its language"
            )


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.name)
def test_configuration_files_in_documents_are_accepted(
    document: Document, tmp_path_factory: pytest.TempPathFactory
) -> None:
    for block in document.blocks:
        if block.language == "toml":
            directory = tmp_path_factory.mktemp("toml")
            for name in set(re.findall(r"/etc/harebell/([\w.-]+)", block.text)):
                (directory / name).touch()
            file = directory / "harebell.toml"
            file.write_text(block.text.replace("/etc/harebell", str(directory)))
            load(environ={}, config_file=file)


def test_pipelines_in_documents_have_nothing_wrong_with_them(tmp_path: Path) -> None:
    found = 0
    for document in DOCUMENTS:
        for block in document.blocks:
            if block.language == "yaml":
                file = shell.keep_file(block, tmp_path)
                assert file is not None, f"{document.name}, line {block.line}: name the file"
                if file.name == "prometheus.yaml":
                    continue  # test_metrics.py checks it
                check(file, {"HAREBELL_URL": "amqp://"})
                found += 1
    assert found


def test_every_make_target_that_is_shown_exists() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.M))
    for document in DOCUMENTS:
        text = "\n".join([*document.prose, *(block.text for block in document.blocks)])
        for words in re.findall(r"(?:`|^)make((?: [a-z-]+)+)", text, re.M):
            assert set(words.split()) <= targets, f"{document.name}: make{words}"


def test_the_list_of_what_is_not_run_is_used_and_short() -> None:
    commands = [
        step.command
        for document in DOCUMENTS
        for block in document.blocks
        if block.language in ("console", "sh")
        for step in shell.steps(block)
    ]
    assert any(reviewed(command) for command in commands)
    assert len(REASONS) + len(UNRUN_FILES) <= 8
    assert set(UNRUN_FILES) <= {document.name for document in DOCUMENTS}


def test_the_list_of_what_starts_spark_is_true() -> None:
    starts = re.compile(
        r"build_session|SparkSession|harebell (sql |pipeline (run|archive|replay|mirror|stats))"
    )
    found = [
        document.name
        for document in DOCUMENTS
        if document.name not in UNRUN_FILES
        and any(starts.search(block.text) for block in document.blocks if block.language in RUN)
    ]
    assert tuple(found) == ON_SPARK
