"""The conformance cases about schemas, as far as no data is involved."""

from __future__ import annotations

from typing import Any

import pytest

from omnigraph.errors import OmnigraphError
from omnigraph.lang.schema import (
    MigrationPlan,
    compile_schema,
    plan_migration,
)

from .casefile import CASES, conformance


def schema_text(source: str) -> str:
    return (CASES / source).read_text() if source.endswith(".pg") else source


def desired(step: dict[str, Any], text: str) -> str:
    if "text" in step:
        return str(step["text"])
    for old, new in step["edit"]:
        assert old in text, f"{old!r} is not in the schema"
        text = text.replace(old, new)
    return text


def run(step: dict[str, Any], text: str) -> MigrationPlan | None:
    if step["op"] == "init":
        compile_schema(step.get("schema", text))
        return None
    plan = plan_migration(compile_schema(text), desired(step, text))
    if step["op"] == "apply_schema":
        plan.raise_unsupported()
    return plan


def check_error(wanted: dict[str, Any], error: OmnigraphError) -> None:
    assert not wanted["codes"] or error.code in wanted["codes"]
    text = f"{error.message} {error.help} {error.details}".lower()
    for choice in wanted["words"]:
        options = [choice] if isinstance(choice, str) else choice
        assert any(option.lower() in text for option in options), text
    assert not wanted.get("span") or error.span is not None


def check_plan(wanted: dict[str, Any], plan: MigrationPlan) -> None:
    kinds = sorted(step.kind for step in plan.steps)
    assert plan.supported == wanted.get("supported", plan.supported)
    assert kinds == sorted(wanted.get("kinds", kinds))
    assert set(wanted.get("include", ())) <= set(kinds)
    assert set(wanted.get("codes", ())) <= {step.code for step in plan.steps}
    if "applied" in wanted:
        assert bool(plan.steps) == wanted["applied"]


@pytest.mark.parametrize("case", conformance(), ids=lambda case: str(case["id"]))
def test_conformance(case: dict[str, Any]) -> None:
    text = schema_text(case["schema"])
    for step in case["steps"]:
        wanted = step["expect"]
        # Whether stored rows allow a constraint is found out when the plan is run.
        needs_data = case["id"] == "J14" and step["op"] == "apply_schema"
        if wanted != "ok" and "error" in wanted and not needs_data:
            with pytest.raises(OmnigraphError) as caught:
                run(step, text)
            check_error(wanted["error"], caught.value)
        else:
            plan = run(step, text)
            if plan is not None and wanted != "ok" and not needs_data:
                check_plan(wanted, plan)
