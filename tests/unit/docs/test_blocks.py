"""Each block of the pages is of a language that there is a rule for, and can be read as that."""

import ast
import json
import re
import subprocess
import textwrap

import pytest

from manifests.monitoring import promql
from tests.docs import known, pages, running, shell, yamls

RULES = {
    "console": "shell commands after `$ `, and what they print",
    "diff": "what changes in an example",
    "dockerfile": "lines of a Dockerfile",
    "json": "JSON; … stands for what is left out",
    "mermaid": "a drawing",
    "promql": "expressions, each from the line's beginning",
    "python": "a program of the library, or a part of one",
    "sh": "shell commands",
    "text": "drawings, layouts, files of no language",
    "yaml": "objects, parts of a SpotTrainingJob, values of the chart, Prometheus' rules",
}
COMMAND = re.compile(r"^(\$ |sudo |kubectl |helm |spottrain |make |pip install )|^apiVersion: ", re.MULTILINE)

BY_TEAM = re.compile(r"(, )?\bteam\b")
"""A label that money's metrics have with the chart's value `teamLabel`."""


@pytest.mark.parametrize("block", pages.blocks(), ids=str)
def test_a_block_says_its_language_and_there_is_a_rule_for_it(block: pages.Block):
    offered = "\n".join(f"  {language}: {what}" for language, what in RULES.items())
    assert block.language in RULES, f"{block}: write one of these after the fence's ```:\n{offered}"


@pytest.mark.parametrize("block", pages.blocks("text"), ids=str)
def test_text_is_nothing_that_could_be_tried(block: pages.Block):
    found = COMMAND.search(block.text)
    assert not found, f"{block}: `{found[0]}` belongs in a block of its own language: sh, console or yaml"


@pytest.mark.parametrize("block", pages.blocks("yaml"), ids=str)
def test_yaml_is_of_a_kind_that_can_be_tried(block: pages.Block):
    kinds = "\n".join(f"  {kind.value}" for kind in yamls.Kind if kind is not yamls.Kind.UNKNOWN)
    for one in yamls.documents(block):
        assert one.kind is not yamls.Kind.UNKNOWN, (
            f"{block}: make it one of these, or name its group in tests/docs/yamls.py:\n{kinds}"
        )


@pytest.mark.parametrize("block", pages.blocks("json"), ids=str)
def test_json_can_be_read(block: pages.Block):
    json.loads(re.sub(r":\s*…", ": null", block.text))


@pytest.mark.parametrize("block", pages.blocks("python"), ids=str)
def test_python_is_python(block: pages.Block):
    ast.parse(textwrap.dedent(block.text), str(block), feature_version=(3, 11))


@pytest.mark.parametrize("block", pages.blocks("promql"), ids=str)
def test_an_expression_asks_for_series_that_there_are(block: pages.Block):
    for expression in re.split(r"\n(?=\S)", block.text.strip()):
        promql.checked(BY_TEAM.sub("", expression))


@pytest.mark.parametrize("block", pages.blocks("dockerfile"), ids=str)
def test_a_dockerfile_installs_what_there_is(block: pages.Block):
    for line in block.text.replace("\\\n", " ").splitlines():
        instruction, _, rest = line.partition(" ")
        assert instruction in {"ARG", "CMD", "COPY", "ENTRYPOINT", "ENV", "FROM", "RUN", "USER", "WORKDIR"}
        if instruction == "RUN":
            assert [known.complaint(words) for words in shell.simple(rest)] == [""]


@pytest.mark.parametrize("command", shell.every(), ids=str)
def test_a_command_is_one_that_bash_and_our_programs_take(command: shell.Command):
    done = subprocess.run(["bash", "-n", "-c", command.line], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    for words in shell.simple(command.line):
        assert known.complaint(words) == ""


@pytest.mark.parametrize("page", sorted({word.page for word in pages.words()}))
def test_commands_within_sentences_have_subcommands_and_flags_that_there_are(page: str):
    for word in pages.words():
        if word.page == page and known.split(word.text.split())[0]:
            for words in shell.simple(word.text.replace("…", "")):
                assert known.unknown(words) == [], word


@pytest.mark.parametrize("command", shell.every(), ids=str)
def test_a_command_is_run_or_it_is_said_why_not(command: shell.Command):
    without = running.programs(command) - running.NOWHERE.keys() - running.CLUSTER - running.ANYWHERE
    assert not without or running.nowhere(command), (
        f"{command}: in tests/docs/running.py, say where {', '.join(sorted(without))} runs or why it doesn't"
    )
