"""Files of violations: everything is counted, and what one finder lists is bounded."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest

from omnigraph.errors import OmnigraphError, OptionInvalid, Violation
from omnigraph.validate import ValidationFailed
from omnigraph.validate.listing import Destination, Packed, listed_in, listing, named, packed


def violations(count: int) -> Iterator[Violation]:
    for number in range(count):
        rule = "enum" if number % 3 else "range"
        yield Violation(rule, "Person", f"p{number}", "wrong", value=date(2024, 5, 1))


def test_lines_beyond_the_bound_are_counted(tmp_path: Path) -> None:
    made = listed_in(tmp_path, packed(violations(30_000), listed_max=12_345))
    assert made.counts == {"range": 10_000, "enum": 20_000}
    assert made.listed == len(made.file.read_text().splitlines()) == 12_345
    error = made.annotated(ValidationFailed("wrong", details={"violations": [1]}))
    assert error.message == "wrong; in total: 20,000 enum, 10,000 range"
    assert f"12,345 of 30,000 are listed in {made.file}" in (error.help or "")


def test_a_line_is_an_object(tmp_path: Path) -> None:
    (line,) = listed_in(tmp_path, packed(violations(1))).file.read_text().splitlines()
    found = json.loads(line)
    assert (found["rule"], found["type"], found["id"]) == ("range", "Person", "p0")
    assert found["value"] == "2024-05-01"


@pytest.mark.parametrize(
    ("to", "shown", "more", "written"),
    [
        (False, 100, True, False),
        (True, 3, False, False),
        (True, 100, False, True),
        (True, 100, True, True),
    ],
)
def test_a_list_is_written_when_a_report_has_no_room(
    to: bool, shown: int, more: bool, written: bool, tmp_path: Path
) -> None:
    details = {"violations": [v.to_json() for v in violations(shown)], "more": more}
    with (
        pytest.raises(ValidationFailed) as caught,
        listing(Destination(tmp_path) if to else None, lambda: packed(violations(200))),
    ):
        raise ValidationFailed("wrong", details=details)
    assert ("violations_file" in caught.value.details) == written
    assert bool(list(tmp_path.iterdir())) == written


def test_a_folder_somebody_named_always_gets_a_list(tmp_path: Path) -> None:
    with (
        pytest.raises(ValidationFailed) as caught,
        listing(named(tmp_path / "new" / "folder"), lambda: packed(violations(1))),
    ):
        raise ValidationFailed("wrong", details={"violations": [1]})
    assert Path(caught.value.details["violations_file"]).parent == tmp_path / "new" / "folder"


def test_other_errors_pass(tmp_path: Path) -> None:
    with pytest.raises(OptionInvalid, match="other"), listing(named(tmp_path), lambda: []):
        raise OptionInvalid("other")
    assert not list(tmp_path.iterdir())


def test_a_list_that_fails_leaves_no_file_and_does_not_hide_the_error(tmp_path: Path) -> None:
    def failing() -> Iterator[Packed]:
        yield from packed(violations(1))
        raise RuntimeError("no more")

    with pytest.raises(OmnigraphError, match="wrong"), listing(named(tmp_path), failing):
        raise ValidationFailed("wrong", details={"violations": [1]})
    assert not list(tmp_path.iterdir())
