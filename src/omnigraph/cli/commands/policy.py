"""`omnigraph policy`."""

from __future__ import annotations

from typing import Annotated

from typer import Argument, Option

from omnigraph.cli.app import Group, Verb
from omnigraph.cli.context import read_text
from omnigraph.cli.exits import FAILURE, UsageMistake
from omnigraph.cli.options import Show
from omnigraph.cli.output import answer

File = Annotated[
    str, Argument(help="A policy: YAML, or Cedar when it ends in .cedar.", metavar="FILE")
]


def validate(show: Show, file: File) -> None:
    """Read a policy and say whether it can be used."""
    from omnigraph.policy.cedar import read_policy

    actors = read_policy(file).rules.actors
    count = "actors named in Cedar" if actors is None else f"{len(actors)} actors"
    answer(show, f"policy valid: {file} [{count}]", {"valid": True, "file": file})


def test(
    show: Show,
    file: File,
    tests: Annotated[str, Option("--tests", help="A file of cases.", metavar="YAML")],
) -> int:
    """Run a file of cases against a policy; exit code 1 if one is decided otherwise than expected."""
    from omnigraph.policy.cases import parse_cases, run_cases
    from omnigraph.policy.cedar import read_policy

    cases = parse_cases(read_text(tests), tests)
    wrong = run_cases(read_policy(file), cases)
    said = f"policy tests passed: {len(cases)} cases"
    if wrong:
        said = "\n".join([*(str(each) for each in wrong), f"{len(wrong)} of {len(cases)} failed"])
    document = {"cases": len(cases), "failed": [str(each) for each in wrong]}
    answer(show, said, document)
    return FAILURE if wrong else 0


def explain(
    show: Show,
    file: File,
    actor: Annotated[str, Option("--actor", help="Who.")],
    action: Annotated[str, Option("--action", help="What: read, change, branch_merge, …")],
    graph: Annotated[str, Option("--graph", help="On which graph.")] = "graph",
    branch: Annotated[str | None, Option("--branch", help="On which branch.")] = None,
    target: Annotated[str | None, Option("--target-branch", help="To which branch.")] = None,
    mode: Annotated[str | None, Option("--mode", help="Of a load.")] = None,
    type_name: Annotated[
        str | None, Option("--type", help="Whose rows: a node or edge type.")
    ] = None,
) -> None:
    """Say how a policy decides one question, and which rule decides it."""
    from omnigraph.policy.cedar import read_policy
    from omnigraph.policy.questions import ON_SERVER, Action, Question

    if action not in tuple(Action):
        raise UsageMistake(f"--action is one of {', '.join(Action)}, not {action!r}")
    asked = Action(action)
    where = None if asked in ON_SERVER else graph
    question = Question(actor, asked, where, branch, target, mode, type_name)
    decided = read_policy(file).decide(question)
    document = {
        "decision": "allow" if decided.allowed else "deny",
        "actor": actor,
        "action": action,
        "branch": branch,
        "target_branch": target,
        "type": type_name,
        "matched_rule": decided.rule,
        "message": decided.message,
    }
    lines = (f"{name}: {value}" for name, value in document.items() if value is not None)
    answer(show, "\n".join(lines), document)


COMMAND = Group(
    "Check and explain policies of a server.",
    (
        Verb(
            validate,
            (
                "omnigraph policy validate people.policy.yaml",
                "omnigraph policy validate people.cedar --json",
            ),
        ),
        Verb(
            test,
            (
                "omnigraph policy test people.policy.yaml --tests cases.yaml",
                "omnigraph policy test people.cedar --tests cases.yaml --json",
            ),
        ),
        Verb(
            explain,
            (
                "omnigraph policy explain people.policy.yaml --actor ada --action change --branch main",
                "omnigraph policy explain people.policy.yaml --actor ada --action graph_list --json",
            ),
        ),
    ),
)
