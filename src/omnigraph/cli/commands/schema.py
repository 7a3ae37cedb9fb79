"""`omnigraph schema`."""

from __future__ import annotations

from typing import Annotated, Any

from typer import Option

from omnigraph.cli import consent
from omnigraph.cli.app import Group, Verb
from omnigraph.cli.commits import coloured, short, step_line
from omnigraph.cli.context import actor_of, branch_of, named, open_graph, point_of, read_text
from omnigraph.cli.exits import FAILURE, OK, UsageMistake
from omnigraph.cli.options import At, Branch, Message, Show, Where, Writer, Yes
from omnigraph.cli.output import answer, note
from omnigraph.cli.progress import working

SchemaFile = Annotated[str, Option("--schema", help="The schema wanted.", metavar="S.pg")]
Loss = Annotated[
    bool,
    Option("--allow-data-loss", help="Remove what is dropped from earlier commits, too, for good."),
]

DROPS = ("drop_type", "drop_property")
LEAVES = "What is dropped leaves the branch; earlier commits keep it until a cleanup. Go on?"
LOST = "What is dropped is lost for good, with the earlier commits of the branch. Go on?"


def show_(
    where: Where,
    show: Show,
    branch: Branch = None,
    at: At = None,
    draw: Annotated[
        str | None, Option("--draw", help="mermaid or svg, instead.", metavar="KIND")
    ] = None,
) -> None:
    """Print the schema in force, or draw it."""
    graph, branch = open_graph(where), branch_of(branch)
    text = graph.schema(branch, point_of(graph, at, branch))
    if draw is None:
        answer(show, text.rstrip("\n"), {"schema": text})
        return
    print(_drawn(text, draw))


def _drawn(text: str, kind: str) -> str:
    from omnigraph.drawing import schema_mermaid, schema_svg
    from omnigraph.lang.schema import catalog_of, compile_schema

    drawings = {"mermaid": schema_mermaid, "svg": schema_svg}
    if kind not in drawings:
        raise UsageMistake(f"--draw makes mermaid or svg, not {kind!r}")
    return drawings[kind](catalog_of(compile_schema(text)))


def plan(
    where: Where,
    show: Show,
    schema: SchemaFile,
    branch: Branch = None,
    allow_data_loss: Loss = False,
) -> int:
    """Say what a new schema would change; nothing is changed."""
    graph, branch = open_graph(where), branch_of(branch)
    made = _planned(graph, schema, branch, allow_data_loss)
    answer(show, plan_text(made), made.to_json())
    note(show, "nothing was changed")
    return OK if made.supported else FAILURE


def apply(
    where: Where,
    show: Show,
    writer: Writer,
    schema: SchemaFile,
    branch: Branch = None,
    allow_data_loss: Loss = False,
    message: Message = None,
    yes: Yes = False,
) -> int:
    """Change the schema as planned, as one commit.

    The plan is shown first, and dropping a type or a property wants consent: --yes, or an answer on a terminal.
    Earlier commits keep what was dropped until a cleanup; with --allow-data-loss it is removed from them at once.
    """
    graph, branch = open_graph(where), branch_of(branch)
    made = _planned(graph, schema, branch, allow_data_loss)
    note(show, plan_text(made))
    if made.supported and any(step.kind in DROPS for step in made.steps):
        consent.ask(LOST if allow_data_loss else LEAVES, yes=yes)
    with working(graph, branch, "schema apply", writer, show):
        done = graph.apply_schema(
            read_text(schema),
            branch,
            allow_data_loss,
            message=message,
            actor=actor_of(writer.actor),
        )
    commit = getattr(done, "commit", None)
    said = (
        f"applied: commit {short(commit.id)} on {branch}"
        if commit
        else "the schema is in force already"
    )
    answer(show, said, done.to_json())
    return OK


def _planned(graph: Any, file: str, branch: str, allow_data_loss: bool) -> Any:
    from omnigraph.lang.diagnostics import LanguageError
    from omnigraph.lang.source import Source

    text = read_text(file)
    try:
        return graph.plan_schema(text, branch, allow_data_loss=allow_data_loss)
    except LanguageError as error:
        raise named(error, Source(text, file)) from error


def plan_text(plan: Any) -> str:
    """The steps, one per line with its sign, and their number."""
    lines = [step_line(step.to_json()) for step in plan.steps]
    if not lines:
        return "no difference"
    unsupported = "" if plan.supported else "; not supported as a whole"
    return "\n".join([*map(coloured, lines), f"{len(lines)} steps{unsupported}"])


COMMAND = Group(
    "Show, plan and apply schemas.",
    (
        Verb(
            show_,
            (
                "omnigraph schema show --store people",
                "omnigraph schema show --store people --draw mermaid",
            ),
        ),
        Verb(
            plan,
            (
                "omnigraph schema plan --store people --schema next.pg",
                "omnigraph schema plan --store people --schema next.pg --json",
            ),
        ),
        Verb(
            apply,
            (
                "omnigraph schema apply --store people --schema next.pg",
                "omnigraph schema apply --store people --schema next.pg --branch draft --yes --json",
            ),
        ),
    ),
)
