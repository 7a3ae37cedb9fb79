"""Commands about pipeline files."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from omnigraph.cli.commits import conflict_lines, merge_code, published
from omnigraph.cli.context import actor_of, open_graph
from omnigraph.cli.data import load_counts, tell_check
from omnigraph.cli.exits import OK
from omnigraph.cli.options import (
    LoadId,
    Show,
    Violations,
    Where,
    WriterOptions,
    Yes,
    examples,
)
from omnigraph.cli.output import answer
from omnigraph.cli.progress import writing
from omnigraph.cli.removals import consent, replaced

if TYPE_CHECKING:
    from omnigraph.graph import Graph
    from omnigraph.outcomes import LoadResult, MergeResult
    from omnigraph.pipeline.lineage import PipelineRun
    from omnigraph.pipeline.spec import PipelineSpec


@examples("omnigraph pipeline run pipeline.yaml", "omnigraph pipeline run pipeline.yaml --check")
def run_pipeline(
    file: Annotated[str, Argument(help="Pipeline file.", metavar="FILE")],
    where: Where,
    show: Show,
    writer: WriterOptions,
    check: Annotated[bool, Option("--check", help="Only validate; load nothing.")] = False,
    yes: Yes = False,
    engine: Annotated[str, Option("--engine", help="spark, local, or auto by size.")] = "spark",
    load_id: LoadId = None,
    violations: Violations = None,
    lineage: Annotated[
        str | None,
        Option("--lineage", help="Append OpenLineage events to this file.", metavar="FILE"),
    ] = None,
) -> int:
    """Run a pipeline file: load its sources as one commit, then optimize and merge if the file says so.

    The file names the graph, the branch, the mode, the sources with their mappings to types, and the steps after the
    load. It works the same on Spark and in process. Overwriting asks for confirmation, as with `omnigraph load`.
    Conflicts of the merge are listed, and the exit code is 4; the load stays on its branch.
    """
    from dataclasses import replace

    import msgspec

    from omnigraph.pipeline import lineage as events
    from omnigraph.pipeline.spec import read_spec

    spec = read_spec(file)
    if violations is not None:
        spec = msgspec.structs.replace(spec, violations=violations)
    named = where.uri or where.store or where.server
    place = where if named else replace(where, store=spec.graph)
    graph = open_graph(place)
    if check:
        found = _pipeline_load(graph, spec, engine, dry_run=True)
        tell_check(show, found, spec.quarantine, valid=True)
        return OK
    if spec.mode == "overwrite":
        again = partial(_pipeline_load, graph, spec, engine, dry_run=True)
        consent(yes, replaced, graph, spec.branch, again)
    with (
        writing(graph, spec.branch, "load", writer, show),
        events.lineage(lineage, graph.uri, Path(file).stem, spec) as run,
    ):
        key, actor = load_id or spec.load_id, actor_of(writer.actor)
        text, document, merged = _run(graph, spec, engine, key, actor, run)
    answer(show, text, document)
    return OK if merged is None else merge_code(show, merged)


def _run(
    graph: Graph,
    spec: PipelineSpec,
    engine: str,
    load_id: str | None,
    actor: str | None,
    run: PipelineRun | None,
) -> tuple[str, dict[str, Any], MergeResult | None]:
    result = _pipeline_load(graph, spec, engine, actor=actor, idempotency_key=load_id)
    if run is not None:
        run.loaded = result
    text = f"loaded {load_counts(result)}: {published(result.commit, spec.branch)}"
    document: dict[str, Any] = {"load": result.to_json()}
    if spec.then.optimize:
        graph.optimize(spec.branch, engine=result.engine)
        document["optimized"] = True
    if spec.then.merge_into is None:
        return text, document, None
    merged = graph.merge(spec.branch, into=spec.then.merge_into, actor=actor)
    document["merge"] = merged.to_json()
    text += f"; merge into {spec.then.merge_into}: {merged.outcome}"
    if merged.conflicts:
        text += f"\n{conflict_lines(merged)}"
        if run is not None:
            run.failure = f"the merge into {spec.then.merge_into} has conflicts"
    return text, document, merged


def _pipeline_load(graph: Graph, spec: PipelineSpec, engine: str, **options: Any) -> LoadResult:
    from omnigraph.pipeline.spec import sources_of

    return graph.load(
        sources_of(spec),
        mode=spec.mode,
        branch=spec.branch,
        create_from=spec.create_from,
        engine=engine,
        message=spec.message,
        options=spec.options(),
        violations=spec.violations or True,
        **options,
    )
