"""Run conformance cases against the public Python interface of omnigraph.

    python -m tests.conformance.run [--cases FILE] [--only ID] [--engine local|spark]

A case is one JSON object per line: a schema, optional data and a list of steps. README.md describes the format.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import omnigraph
from tests.conformance import checks
from tests.conformance.checks import Mismatch

# The public names are looked up when a case runs, so that the reader of a broken build sees the failing case.
api: Any = omnigraph
Step = dict[str, Any]


class Runner:
    def __init__(self, folder: Path, work: Path, engine: str) -> None:
        self.folder, self.work, self.engine = folder, work, engine
        self.bases: dict[tuple[str, str | None], Path] = {}
        self.fresh = 0
        self.case: dict[str, Any] = {}
        self.saved: dict[str, str] = {}
        self.graph: Any = None

    def text(self, source: str, suffix: str) -> str:
        is_name = source.endswith(suffix) and "\n" not in source and " " not in source
        return (self.folder / source).read_text() if is_name else source

    def new_path(self, suffix: str = "") -> Path:
        self.fresh += 1
        return self.work / f"{self.fresh:05d}{suffix}"

    def file(self, text: str, suffix: str) -> str:
        path = self.new_path(suffix)
        path.write_bytes(text.encode())
        return str(path)

    def base(self, schema: str, data: str | None) -> Any:
        """A private copy of the graph holding this schema and data, which is built once."""
        if (schema, data) not in self.bases:
            path = self.new_path()
            graph = api.init(str(path), schema=self.text(schema, ".pg"))
            if data is not None:
                graph.load(
                    self.file(self.text(data, ".jsonl"), ".jsonl"),
                    mode="overwrite",
                    engine=self.engine,
                )
            self.bases[schema, data] = path
        copy = self.new_path()
        shutil.copytree(self.bases[schema, data], copy)
        return api.open(str(copy))

    def run(self, case: dict[str, Any]) -> None:
        started = case["steps"][0]["op"] == "init"
        self.case, self.saved = case, {}
        self.graph = None if started else self.base(case["schema"], case["data"])
        for number, step in enumerate(case["steps"], 1):
            try:
                self.step(step)
            except Mismatch as miss:
                raise Mismatch(f"step {number} ({step['op']}): {miss}") from None

    def step(self, step: Step) -> None:
        wanted = step.get("expect", "ok")
        verb, check = STEPS[step["op"]]
        try:
            result = verb(self, step)
        except api.OmnigraphError as error:
            if "error" not in wanted:
                raise Mismatch(f"expected {wanted!r}, got error {error.code}: {error}") from None
            checks.error(wanted["error"], error)
            return
        checks.expect("error" not in wanted, wanted, "success")
        if wanted != "ok":
            check(wanted, result)
        if "save" in step:
            self.saved["$" + step["save"]] = checks.field(result.commit, "id") or result.commit

    def options(self, step: Step, *names: str) -> dict[str, Any]:
        chosen = {n: step[n] for n in names if n in step}
        return {n: self.saved.get(v, v) if isinstance(v, str) else v for n, v in chosen.items()}

    def schema_text(self, step: Step) -> str:
        text = self.text(step.get("text", self.case["schema"]), ".pg")
        for old, new in step.get("edit", []):
            assert text.count(old) == 1, f"edit {old!r} must occur once"
            text = text.replace(old, new)
        return text

    def init(self, step: Step) -> None:
        schema = self.text(step.get("schema", self.case["schema"]), ".pg")
        self.graph = api.init(str(self.new_path()), schema=schema)

    def load(self, step: Step) -> Any:
        source: Any
        if "data" in step:
            source = self.file(self.text(step["data"], ".jsonl"), ".jsonl")
        elif "generate" in step:
            made, record = range(step["generate"]["count"]), json.dumps(step["generate"]["record"])
            source = [json.loads(record.replace("{i}", str(i))) for i in made]
        else:
            source = step["records"]
        return self.graph.load(
            source, engine=self.engine, **self.options(step, "mode", "branch", "create_from")
        )

    def query(self, step: Step) -> Any:
        chosen = self.options(step, "params", "name", "branch", "at")
        return self.graph.query(step["text"], engine=self.engine, **chosen)

    def mutate(self, step: Step) -> Any:
        return self.graph.mutate(
            step["text"], **self.options(step, "params", "name", "branch", "if_commit")
        )

    def plan_schema(self, step: Step) -> Any:
        return self.graph.plan_schema(self.schema_text(step))

    def apply_schema(self, step: Step) -> Any:
        return self.graph.apply_schema(
            self.schema_text(step), **self.options(step, "allow_data_loss")
        )

    def branch(self, step: Step) -> None:
        self.graph.create_branch(step["name"], from_=step.get("from", "main"))

    def delete_branch(self, step: Step) -> None:
        self.graph.delete_branch(step["name"])

    def merge(self, step: Step) -> Any:
        return self.graph.merge(step["source"], **self.options(step, "into", "dry_run"))

    def tag(self, step: Step) -> None:
        self.graph.tag(step["name"], **self.options(step, "at"))

    def optimize(self, step: Step) -> None:
        self.graph.optimize()

    def lint(self, step: Step) -> Any:
        schema = self.file(self.text(self.case["schema"], ".pg"), ".pg")
        beside = Path(sys.executable).with_name("omnigraph")
        program = str(beside) if beside.exists() else "omnigraph"
        command = [
            program,
            "lint",
            "--query",
            self.file(step["text"], ".gq"),
            "--schema",
            schema,
            "--json",
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return json.loads(done.stdout)


STEPS: dict[str, tuple[Callable[[Runner, Step], Any], Callable[[Any, Any], None]]] = {
    "init": (Runner.init, checks.nothing),
    "load": (Runner.load, checks.load),
    "query": (Runner.query, checks.rows),
    "mutate": (Runner.mutate, checks.mutate),
    "plan_schema": (Runner.plan_schema, checks.plan),
    "apply_schema": (Runner.apply_schema, checks.plan),
    "branch": (Runner.branch, checks.nothing),
    "delete_branch": (Runner.delete_branch, checks.nothing),
    "merge": (Runner.merge, checks.merge),
    "tag": (Runner.tag, checks.nothing),
    "optimize": (Runner.optimize, checks.nothing),
    "lint": (Runner.lint, checks.lint),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=Path, default=Path(__file__).with_name("cases.jsonl"))
    parser.add_argument("--only", help="run the case with this id")
    parser.add_argument("--engine", choices=["local", "spark"], default="local")
    args = parser.parse_args()
    cases = [json.loads(line) for line in args.cases.read_text().splitlines() if line.strip()]
    passed = failed = 0
    with tempfile.TemporaryDirectory() as work:
        runner = Runner(args.cases.parent, Path(work), args.engine)
        for case in cases:
            if args.only not in (None, case["id"]):
                continue
            try:
                runner.run(case)
                passed += 1
            except (KeyboardInterrupt, SystemExit):
                raise
            except (
                BaseException
            ) as error:  # a broken case, even a native panic, must not end the run
                failed += 1
                what = error if isinstance(error, Mismatch) else f"{type(error).__name__}: {error}"
                print(f"FAIL {case['id']} {case['title']}: {' '.join(str(what).split())}")
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed or not passed else 0)


if __name__ == "__main__":
    main()
