"""What people see on a terminal: prompts, progress, Ctrl-C, colours, widths."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import omnigraph
from omnigraph.cli.exits import Interrupted
from omnigraph.cli.progress import explaining_interrupts
from omnigraph.progress import Estimate, Moment
from tests.unit.cli import world
from tests.unit.cli.terminal import Terminal


def many_people(folder: Path, count: int) -> str:
    lines = (f'{{"type":"Person","data":{{"name":"p{i}","age":{i % 90}}}}}\n' for i in range(count))
    (folder / "many.jsonl").write_text("".join(lines))
    return "many.jsonl"


def a_pipe_of_people(folder: Path) -> Path:
    """A source that a load has to wait for."""
    path = folder / "slow.jsonl"
    os.mkfifo(path)
    return path


def test_a_schema_change_that_loses_data_is_asked_about(folder: Path) -> None:
    (folder / "less.pg").write_text(world.SCHEMA.replace("  age: I32?\n", ""))
    words = ["schema", "apply", "-s", "people", "--schema", "less.pg", "--allow-data-loss"]
    with Terminal(folder, words) as asked:
        asked.wait_for("Continue? [y/N]")
        asked.type("n\n")
        assert asked.finish() != 0
        assert "nothing was changed" in asked.shown
    with Terminal(folder, words) as asked:
        asked.wait_for("Continue? [y/N]")
        asked.type("y\n")
        assert asked.finish() == 0
        assert "applied" in asked.shown


def test_without_a_terminal_nobody_is_asked(folder: Path) -> None:
    (folder / "less.pg").write_text(world.SCHEMA.replace("  age: I32?\n", ""))
    words = ["schema", "apply", "-s", "people", "--schema", "less.pg", "--allow-data-loss"]
    done = world.run(folder, *words)
    assert done.code == 2
    assert "--yes" in done.err
    assert world.run(folder, *words, "--yes").code == 0


def test_a_drop_that_history_keeps_is_asked_about_in_other_words(folder: Path) -> None:
    (folder / "less.pg").write_text(world.SCHEMA.replace("  age: I32?\n", ""))
    words = ["schema", "apply", "-s", "people", "--schema", "less.pg"]
    refused = world.run(folder, *words)
    assert refused.code == 2
    assert "earlier commits keep it" in refused.err
    assert world.run(folder, *words, "--yes").code == 0
    age = 'match { $p: Person { name: "Ada" } } return { $p.age as age }'
    graph = omnigraph.open(folder / "people")
    assert graph.query(age, at="main~1").scalar() == 36


def test_a_cleanup_says_what_would_go_and_asks(folder: Path) -> None:
    words = ["cleanup", "people", "--keep", "1"]
    graph = omnigraph.open(folder / "people")
    before = [commit.id for commit in graph.log(maintenance=True)]
    refused = world.run(folder, *words)
    assert refused.code == 2
    assert "would remove 2 commits" in refused.err
    assert "--yes" in refused.err
    with Terminal(folder, words) as asked:
        asked.wait_for("Continue? [y/N]")
        asked.type("n\n")
        assert asked.finish() != 0
        assert "nothing was changed" in asked.shown
    assert [commit.id for commit in graph.log(maintenance=True)] == before
    for agreed in ("--yes", "--confirm"):
        done = world.run(folder, *words, agreed)
        assert done.code == 0
        assert done.out.startswith("removed")
    assert graph.log()[-1].changes == {}


def test_progress_and_an_interrupt_before_anything_is_published(folder: Path) -> None:
    pipe = a_pipe_of_people(folder)
    words = ["load", "-s", "people", "--data", str(pipe)]
    with Terminal(folder, words) as loading:
        loading.wait_for(" request")
        loading.interrupt()
        assert loading.finish() == 130
        assert "nothing was published; main is as it was" in loading.shown
    count = world.run(folder, "log", "-s", "people", "--json")
    assert len(count.json) == 2


def test_progress_tells_phase_rows_rate_and_what_is_left(folder: Path) -> None:
    file, pipe = many_people(folder, 20_000), a_pipe_of_people(folder)
    words = ["load", "-s", "people", "--engine", "local", "--data", file, "--data", str(pipe)]
    with Terminal(folder, words) as loading:  # the file is read, then the pipe is waited for
        loading.wait_for("load, reading: ")
        assert "s left" in loading.wait_for("20,000 rows (")
        loading.wait_for("/s)")
        loading.interrupt()
        assert loading.finish() == 130
        assert "nothing was published; main is as it was" in loading.shown


@pytest.mark.parametrize(
    ("seconds", "part", "left"), [(2.0, 0.25, 6.0), (5.0, 0.25, 3.0), (9.0, 0.25, 0.0)]
)
def test_an_estimate_runs_down_until_more_is_known(
    seconds: float, part: float, left: float
) -> None:
    estimate = Estimate()
    assert estimate.left(None, 0.5) is None
    assert estimate.left(0.25, 2.0) == 6.0
    assert estimate.left(part, seconds) == left
    assert estimate.left(0.5, 10.0) == 10.0


@pytest.mark.parametrize("width", [20, 40, 60, 79, 200])
def test_a_line_of_progress_fits_its_terminal(width: int) -> None:
    moment = Moment(
        "load, checking", 123.0, 1_234_567, 1_000, 0, 9 << 30, 0.4, 185.0, 5 << 30, 9 << 30, 0.4
    )
    line = moment.line(width)
    assert len(line) <= width
    assert "load, checking" in line
    assert ("40%" in line) is (width > 50)
    assert ("9.0 GiB" in line) is (width == 200)


def test_one_row_is_a_row() -> None:
    assert "1 row (" in Moment("load", 1.0, 1, 1, 0, 0).line(80)


def test_progress_never_goes_back() -> None:
    """The estimate may grow, and a second attempt begins at the beginning: the bar stays where it was."""
    estimate, shown = Estimate(), []
    for part, seconds in ((0.1, 1.0), (0.5, 2.0), (0.5, 3.7), (0.6, 6.0), (0.1, 6.5), (0.9, 7.0)):
        shown.append(estimate.over(part, seconds))
    assert shown == sorted(filter(None, shown))
    assert len(shown) == 6


def test_progress_stays_on_one_line_of_a_narrow_terminal(folder: Path) -> None:
    file, pipe = many_people(folder, 20_000), a_pipe_of_people(folder)
    words = ["load", "people", "--engine", "local", "--data", file, "--data", str(pipe)]
    with Terminal(folder, words, COLUMNS="44") as loading:
        loading.wait_for("s left")
        loading.interrupt()
        assert loading.finish() == 130
    lines = loading.raw.split("interrupted")[0].split("\x1b[K")
    assert max(len(line.rstrip("\r\n")) for line in lines) < 44


def test_an_interrupt_names_what_was_published(memory_root: str) -> None:
    graph = omnigraph.init(memory_root, schema=world.SCHEMA)
    with pytest.raises(Interrupted) as left:
        interrupted_load(graph)
    head = graph.log(limit=1)[0]
    assert head.kind == "load"
    assert str(left.value).startswith(f"main moved meanwhile: {head.id} published")


def interrupted_load(graph: omnigraph.Graph) -> None:
    with explaining_interrupts(graph, "main"):
        graph.load(world.PEOPLE)
        raise KeyboardInterrupt


def test_progress_as_json(folder: Path) -> None:
    words = ("load", "-s", "people", "--data", many_people(folder, 1_000), "--progress", "json")
    done = world.run(folder, *words, "--json")
    told = [json.loads(line) for line in done.err.splitlines()]
    assert told[-1]["done"] is True
    assert {"phase", "seconds", "rows", "requests", "bytes_written"} <= set(told[-1])
    size = (folder / "many.jsonl").stat().st_size
    assert (told[-1]["input_read"], told[-1]["input_bytes"]) == (size, size)
    assert 0 < told[-1]["part"] < 1
    assert told[-1]["seconds_left"] >= 0
    assert (told[-1]["phase"], told[-1]["rows"]) == ("load, writing", 1_000)
    assert done.json["nodes"] == {"Person": 1_000}


@pytest.mark.parametrize(("variables", "colourful"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_colours(folder: Path, variables: dict[str, str], colourful: bool) -> None:
    raw: list[bytes] = []
    read = os.read

    def keeping(descriptor: int, size: int) -> bytes:
        data = read(descriptor, size)
        raw.append(data)
        return data

    with (
        pytest.MonkeyPatch.context() as patch,
        Terminal(folder, ["log", "people"], **variables) as log,
    ):
        patch.setattr(os, "read", keeping)
        assert log.finish() == 0
    assert (b"\x1b[33m" in b"".join(raw)) is colourful


def test_no_colours_in_a_pipe(folder: Path) -> None:
    assert "\x1b" not in world.run(folder, "log", "people").out


def test_a_table_fits_the_terminal(folder: Path) -> None:
    text = "match { $p: Person } return { $p.name as a_rather_long_name, $p.name as another_very_long_name }"
    done = world.run(folder, "query", "-s", "people", "-e", text, COLUMNS="40")
    assert all(len(line) <= 40 for line in done.out.splitlines())
    assert "String" in done.out.splitlines()[2]


def test_a_long_table_leaves_out_its_middle(folder: Path) -> None:
    world.run(folder, "load", "-s", "people", "--data", many_people(folder, 500))
    text = "match { $p: Person } return { $p.name as n } order { $p.name asc }"
    done = world.run(folder, "query", "-s", "people", "-e", text)
    assert "⋮ 463 rows not shown" in done.out
    assert len(done.out.splitlines()) == 40 + 6
