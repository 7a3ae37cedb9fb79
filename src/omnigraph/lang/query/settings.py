"""The settings a file can make: their names, values and defaults.

Some control how a query runs. The others (`inert`) choose between plans of the omnigraph written in Rust, which give
the same answers; they are accepted and shown so that its files run unchanged, and have no effect here.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping

from omnigraph.errors import OptionInvalid
from omnigraph.lang.query import ast
from omnigraph.model.frozen import frozen

Value = str | int | None
HIGHEST = 2**63 - 1
REQUEST, PROCESS = "request", "process"


@frozen
class SettingRow:
    """A setting: its words or number range, who may set it, and the environment variable of its default."""

    name: str
    default: Value
    words: tuple[str, ...] = ()
    low: int = 0
    high: int = HIGHEST
    scope: str = REQUEST
    variable: str | None = None
    inert: bool = False  # read for compatibility

    def why_not(self, value: object) -> str | None:
        """Why a value is invalid."""
        if self.words:
            if value in self.words:
                return None
            return f"unknown value `{value}` for setting `{self.name}`; expected one of {', '.join(self.words)}"
        within = (
            f"in {self.low}..={self.high}" if self.high < HIGHEST else f"of at least {self.low}"
        )
        if isinstance(value, bool) or not isinstance(value, int):
            return f"setting `{self.name}` takes an integer {within}, got `{value}`"
        if not self.low <= value <= self.high:
            return f"setting `{self.name}` takes an integer {within}, got {value}"
        return None


# fmt: off
SETTINGS = {row.name: row for row in (
    SettingRow("engine", "local", ("local", "spark", "v2")),
    SettingRow("timeout_seconds", None, low=1),
    SettingRow("rows_max", None, low=1),
    SettingRow("memory_bytes_max", None, low=1 << 20),
    SettingRow("rrf_plan", "auto", ("auto", "force_prefilter", "force_postfilter"), scope=PROCESS,
               variable="OMNIGRAPH_RRF_PLAN", inert=True),
    SettingRow("merge_lineage", "on", ("off", "on", "verify"), variable="OMNIGRAPH_MERGE_LINEAGE", inert=True),
    SettingRow("ann_nprobes", 20, variable="OMNIGRAPH_ANN_NPROBES", inert=True),
    SettingRow("stage_write_concurrency", 8, low=1, high=64, scope=PROCESS,
               variable="OMNIGRAPH_LOAD_CONCURRENCY", inert=True),
    SettingRow("traversal_work_limit", 1_000_000, low=1, variable="OMNIGRAPH_TRAVERSAL_WORK_LIMIT", inert=True),
    SettingRow("history_release_bytes", 262_144, low=1_024, high=262_144,
               variable="OMNIGRAPH_HISTORY_RELEASE_BYTES", inert=True),
)}
# fmt: on


def why_not(name: str, value: Value = None) -> str | None:
    """Why a setting is invalid: its name, or its value if given."""
    row = SETTINGS.get(name)
    if row is None:
        return f"unknown setting `{name}`; expected one of {', '.join(SETTINGS)}"
    return None if value is None else row.why_not(value)


@frozen
class Effective:
    """The value of a setting for one run, and its source: `default`, `env`, `request` or `file`."""

    row: SettingRow
    value: Value
    default: Value
    source: str


def effective(
    settings: Iterable[ast.SettingLine],
    request: Mapping[str, Value] | None = None,
    environment: Mapping[str, str] = os.environ,
) -> dict[str, Effective]:
    """Every setting of one run: from the process, then the request, then the lines of the file in order."""
    start = {row.name: _of_process(row, environment) for row in SETTINGS.values()}
    found = dict(start)
    for name, value in (request or {}).items():
        found[name] = Effective(SETTINGS[name], value, start[name].default, "request")
    for line in settings:
        for name in _named(line):
            if line.value is None:
                found[name] = start[name]
            else:
                found[name] = Effective(SETTINGS[name], line.value, start[name].default, "file")
    return found


def _named(line: ast.SettingLine) -> Iterator[str]:
    yield from SETTINGS if line.name is None else (line.name,)


def _of_process(row: SettingRow, environment: Mapping[str, str]) -> Effective:
    text = environment.get(row.variable or "")
    if not text:
        return Effective(row, row.default, row.default, "default")
    value: Value = int(text) if not row.words and text.isdecimal() else text
    if (wrong := row.why_not(value)) is not None:
        raise OptionInvalid(f"{row.variable}: {wrong}")
    return Effective(row, value, value, "env")
