"""Every house rule finds what it forbids, where it is, and leaves the rest alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import PurePosixPath

import pytest

from tests.support import tidy
from tests.support.tidy import FILE_RULES, Finding, SourceFile

Rule = Callable[[SourceFile], Iterator[Finding]]
POSTPONED = "TO" + "DO"
HOME = "/".join(["", "root", ""])
REGISTRY = "https://mirror.example/" + "simple/"
GUIDE = '"""' + "How to read this package, in the order of control flow: `parser` comes first. " * 2


def long_function(lines: int) -> str:
    return "def f():\n" + "    pass\n" * (lines - 1)


BAD: tuple[tuple[Rule, str, str, int], ...] = (
    (tidy.file_length, "src/omnigraph/a.py", "x = 1\n" * 601, 601),
    (tidy.file_length, "tests/unit/test_a.py", "x = 1\n" * 801, 801),
    (tidy.function_length, "src/omnigraph/a.py", "\n" + long_function(71), 2),
    (tidy.file_name, "src/omnigraph/core/utils.py", "", 1),
    (tidy.nothing_postponed, "docs/guide.md", f"one\ntwo {POSTPONED}: three\n", 2),
    (tidy.nothing_of_this_machine, "README.md", f"see {HOME}graph\n", 1),
    (tidy.nothing_of_this_machine, "constraints.txt", f"\n{REGISTRY}x\n", 2),
    (tidy.package_guide, "src/omnigraph/core/__init__.py", '""""""\n', 1),
    (tidy.no_print, "src/omnigraph/core/a.py", "\nprint(1)\n", 2),
    (tidy.doors, "src/omnigraph/core/a.py", "def f():\n    import lance.fragment\n", 2),
    (tidy.doors, "src/omnigraph/storage/tables.py", "from obstore.store import S3Store\n", 1),
    (tidy.doors, "src/omnigraph/read/a.py", "import pyspark\n", 1),
    (tidy.no_unsafe_code, "src/omnigraph/a.py", "import pickle\n", 1),
    (tidy.no_unsafe_code, "src/omnigraph/a.py", "x = eval('1')\n", 1),
    (tidy.no_unsafe_code, "tests/unit/a.py", "import yaml\nyaml.load(x)\n", 2),
    (tidy.no_blind_sleep, "tests/unit/test_a.py", "import time\ntime.sleep(1)\n", 2),
    (tidy.tests_can_fail, "tests/unit/test_a.py", "def test_a() -> None:\n    f()\n", 1),
)

GOOD: tuple[tuple[Rule, str, str], ...] = (
    (tidy.file_length, "src/omnigraph/a.py", "x = 1\n" * 600),
    (tidy.file_length, "tests/unit/test_a.py", "x = 1\n" * 800),
    (tidy.function_length, "src/omnigraph/a.py", long_function(70)),
    (
        tidy.nothing_of_this_machine,
        "README.md",
        "the frame/work/flow of https://pypi.org/project/x\n",
    ),
    (tidy.package_guide, "src/omnigraph/core/__init__.py", GUIDE + '"""\n'),
    (tidy.no_print, "src/omnigraph/cli/main.py", "print(1)\n"),
    (tidy.doors, "src/omnigraph/storage/lance/handles.py", "import lance\n"),
    (tidy.doors, "src/omnigraph/a.py", "import balance\n"),
    (tidy.doors, "tests/unit/a.py", "import lance\n"),
    (tidy.no_unsafe_code, "src/omnigraph/a.py", "pattern = re.compile('exec')\n"),
    (tidy.no_blind_sleep, "tests/support/waiting.py", "import time\ntime.sleep(1)\n"),
    (tidy.tests_can_fail, "tests/unit/test_a.py", "def test_a() -> None:\n    assert f()\n"),
    (
        tidy.tests_can_fail,
        "tests/test_a.py",
        "def test_a():\n    with pytest.raises(E):\n        f()\n",
    ),
    (tidy.tests_can_fail, "tests/test_a.py", "def f():\n    assert x\ndef test_a():\n    f()\n"),
)


@pytest.mark.parametrize(("rule", "path", "text", "line"), BAD)
def test_a_breach_is_found_at_its_line(rule: Rule, path: str, text: str, line: int) -> None:
    (finding,) = rule(SourceFile(PurePosixPath(path), text))
    assert str(finding).startswith(f"{path}:{line}: ")


@pytest.mark.parametrize(("rule", "path", "text"), GOOD)
def test_what_keeps_the_rule_passes(rule: Rule, path: str, text: str) -> None:
    assert list(rule(SourceFile(PurePosixPath(path), text))) == []


def test_every_rule_is_shown_to_find_something() -> None:
    assert {rule for rule, *_ in BAD} == set(FILE_RULES)


def test_the_guide_of_a_package_names_its_modules() -> None:
    file = SourceFile(
        PurePosixPath("src/omnigraph/core/__init__.py"), GUIDE + '"""\n', ("chain", "parser")
    )
    (finding,) = tidy.package_guide(file)
    assert finding.message == "the docstring does not name chain"


def test_the_median_counts_all_functions_of_the_source() -> None:
    def files(*lengths: int) -> list[SourceFile]:
        path = PurePosixPath("src/omnigraph/a.py")
        return [SourceFile(path, long_function(length)) for length in lengths]

    assert list(tidy.median_function(files(9, 9, 60))) == []
    assert len(list(tidy.median_function(files(9, 10, 10)))) == 1


def test_docstrings_do_not_count_as_code() -> None:
    text = 'def f():\n    """' + "\n".join(["words"] * 80) + '"""\n    return 1\n'
    assert list(tidy.function_length(SourceFile(PurePosixPath("src/a.py"), text))) == []


def test_a_class_name_stands_for_one_thing() -> None:
    def files(*names: str) -> list[tidy.SourceFile]:
        paths = (PurePosixPath(f"src/omnigraph/m{place}.py") for place in range(len(names)))
        return [
            tidy.SourceFile(path, f"class {name}:\n    pass\n")
            for path, name in zip(paths, names, strict=True)
        ]

    assert list(tidy.class_names(files("Step", "Column", "Query", "Query"))) == []
    (found,) = tidy.class_names(files("Step", "Column", "Step"))
    assert "Step is also in" in str(found)
