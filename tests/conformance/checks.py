"""What a conformance step may expect, and whether a result meets it. Each check raises Mismatch when it does not."""

from __future__ import annotations

import datetime as dt
import json
import math
from typing import Any

JS_SAFE_INT = 2**53 - 1


class Mismatch(Exception):
    """What a step gave is not what the case expects."""


def expect(ok: bool, wanted: Any, got: Any) -> None:
    if not ok:
        raise Mismatch(f"expected {wanted!r}, got {got!r}")


# --- values and rows ---------------------------------------------------------------------------------------------


def plain(value: Any) -> Any:
    """A result value in its JSON shape, so that native and wire representations compare alike."""
    if isinstance(value, dt.datetime):
        if value.tzinfo is not None:
            value = value.astimezone(dt.UTC)
        return value.strftime("%Y-%m-%dT%H:%M:%S.") + f"{value.microsecond // 1000:03d}Z"
    if isinstance(value, dt.date):
        return value.isoformat()
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > JS_SAFE_INT:
        return str(value)
    return value


def same(wanted: Any, got: Any) -> bool:
    """Ints, strings and booleans exactly; floats within a tolerance; {"$any"} and {"$gt"} are wildcards."""
    if isinstance(wanted, dict) and "@id" in wanted:
        return isinstance(got, dict) and same_row(wanted, got)
    if isinstance(wanted, dict):
        return "$any" in wanted or (isinstance(got, (int, float)) and got > wanted["$gt"])
    if isinstance(wanted, list):
        return isinstance(got, list) and len(wanted) == len(got) and all(map(same, wanted, got))
    if isinstance(wanted, float):
        is_number = isinstance(got, (int, float)) and not isinstance(got, bool)
        return is_number and math.isclose(wanted, got, rel_tol=1e-6, abs_tol=1e-9)
    return type(wanted) is type(got) and wanted == got


def same_row(wanted: Any, got: Any) -> bool:
    return wanted.keys() == got.keys() and all(same(wanted[k], got[k]) for k in wanted)


def same_rows(wanted: Any, got: Any, ordered: bool) -> bool:
    if len(wanted) != len(got):
        return False
    if ordered:
        return all(map(same_row, wanted, got))
    left = list(got)
    for row in wanted:
        hit = next((i for i, other in enumerate(left) if same_row(row, other)), None)
        if hit is None:
            return False
        del left[hit]
    return True


def rows(wanted: Any, result: Any) -> None:
    rows = [{k: plain(v) for k, v in row.items()} for row in result.rows]
    ordered = wanted.get("ordered", False)
    if "rows" in wanted:
        expect(same_rows(wanted["rows"], rows, ordered), wanted["rows"], rows)
    if "any_of" in wanted:
        expect(any(same_rows(w, rows, ordered) for w in wanted["any_of"]), wanted["any_of"], rows)
    for row in wanted.get("among", []):
        expect(any(same_rows([row], [r], ordered=True) for r in rows), row, rows)
    if "count" in wanted:
        expect(len(rows) == wanted["count"], f"{wanted['count']} rows", rows)
    if "columns" in wanted:
        expect(list(result.columns) == wanted["columns"], wanted["columns"], list(result.columns))
    for column in wanted.get("constant", []):
        expect(len({str(row[column]) for row in rows}) == 1, f"one value of {column}", rows)
    for column in wanted.get("distinct", []):
        expect(len({str(row[column]) for row in rows}) == len(rows), f"distinct {column}", rows)


# --- other outcomes ----------------------------------------------------------------------------------------------


def field(thing: Any, name: str) -> Any:
    return thing.get(name) if isinstance(thing, dict) else getattr(thing, name, None)


def word(value: Any) -> str:
    """A kind or outcome as its text, whether it is a string or an enum member."""
    return str(getattr(value, "value", value))


def error(wanted: Any, error: Any) -> None:
    codes = wanted.get("codes")
    expect(not codes or word(error.code) in codes, f"code {codes}", f"{error.code}: {error}")
    text = (
        " ".join(str(field(error, name)) for name in ("message", "help", "details")) + f" {error}"
    )
    for choice in wanted.get("words", []):
        options = [choice] if isinstance(choice, str) else choice
        expect(any(o.lower() in text.lower() for o in options), f"a message naming {choice}", text)
    if wanted.get("span"):
        expect(error.span is not None, "an error with a span", text)


def load(wanted: Any, result: Any) -> None:
    for name in ("nodes", "edges"):
        if name in wanted:
            got = {k: n for k, n in getattr(result, name).items() if n}
            expect(got == wanted[name], wanted[name], got)
    if "branch_created" in wanted:
        expect(
            bool(result.branch_created) == wanted["branch_created"], wanted, result.branch_created
        )


def mutate(wanted: Any, result: Any) -> None:
    for name in ("affected_nodes", "affected_edges"):
        if name in wanted:
            expect(
                getattr(result, name) == wanted[name],
                f"{name} {wanted[name]}",
                getattr(result, name),
            )
    if "commit" in wanted:
        expect(
            (result.commit is not None) == wanted["commit"],
            f"commit {wanted['commit']}",
            result.commit,
        )
    if "outcome" in wanted:
        expect(result.outcome == wanted["outcome"], wanted["outcome"], result.outcome)


def plan(wanted: Any, plan: Any) -> None:
    steps = list(field(plan, "steps") or [])
    kinds = sorted(word(field(s, "kind")) for s in steps)
    for name in ("supported", "applied"):
        if name in wanted:
            expect(
                field(plan, name) == wanted[name],
                f"{name} {wanted[name]}",
                f"{field(plan, name)}: {kinds}",
            )
    if "kinds" in wanted:
        expect(kinds == sorted(wanted["kinds"]), sorted(wanted["kinds"]), kinds)
    for kind in wanted.get("include", []):
        expect(kind in kinds, f"a step {kind}", kinds)
    codes = {word(field(s, "code")) for s in steps}
    for code in wanted.get("codes", []):
        expect(code in codes, f"a step coded {code}", codes)


def merge(wanted: Any, result: Any) -> None:
    allowed = [wanted["outcome"]] if isinstance(wanted["outcome"], str) else wanted["outcome"]
    expect(word(result.outcome) in allowed, wanted["outcome"], word(result.outcome))
    if "conflicts" in wanted:
        kinds = sorted({word(field(c, "kind")) for c in result.conflicts or []})
        expect(kinds == sorted(wanted["conflicts"]), wanted["conflicts"], kinds)


def lint(wanted: Any, report: Any) -> None:
    codes = sorted(f["code"] for f in report["findings"] if f.get("code"))
    for name in ("status", "queries_processed"):
        if name in wanted:
            expect(report[name] == wanted[name], f"{name} {wanted[name]}", report[name])
    if "codes" in wanted:
        expect(codes == sorted(wanted["codes"]), wanted["codes"], codes)
    for text in wanted.get("words", []):
        expect(text.lower() in json.dumps(report["findings"]).lower(), text, report["findings"])
    first = report["results"][0] if report["results"] else {}
    if "warned" in wanted:
        expect(bool(first.get("warnings")) == wanted["warned"], f"warned {wanted['warned']}", first)
    for name in ("reads", "writes"):
        if name in wanted:
            got = [f"{e['kind']} {e['type_name']}" for e in first["operation"][name]]
            expect(got == wanted[name], f"{name} {wanted[name]}", got)


def nothing(wanted: Any, result: Any) -> None:
    """A step of which only success matters."""
