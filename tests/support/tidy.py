"""The house rules that a program can check, each a function from a file to what it finds there.

`FILE_RULES` looks at one file at a time, `TREE_RULES` at all of them together.
"""

from __future__ import annotations

import ast
import re
import statistics
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parents[2]
FILE_LINES_MAX = 600
TEST_FILE_LINES_MAX = 800
FUNCTION_LINES_MAX = 70
MEDIAN_FUNCTION_LINES_MAX = 10
GUIDE_CHARACTERS_MIN = 80

# Letters in brackets keep this file from matching its own patterns.
POSTPONED = re.compile(r"\b(TO[D]O|FIX[M]E|X[X]X)\b")
MACHINE = re.compile(
    r"(?<![\w.])/(wor[k]|roo[t])/|inde[x]-url|://[^\s\"']*/simpl[e]\b|pythonhoste[d]|artifactor[y]"
)
NAMELESS = frozenset({"utils", "util", "helpers", "misc"})
UNSAFE_MODULES = frozenset({"pickle", "marshal", "shelve", "dill", "cloudpickle"})
DOORS = {
    "lance": "src/omnigraph/storage/lance",
    "obstore": "src/omnigraph/storage/objects",
    "pyspark": "src/omnigraph/pipeline",
}


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A text file of the repository; Python files come with their tree."""

    path: PurePosixPath
    text: str
    siblings: tuple[str, ...] = ()  # the modules and packages beside it

    @property
    def room(self) -> str:
        """The top folder: src, tests, benchmarks, docs or another."""
        return self.path.parts[0]

    @property
    def is_python(self) -> bool:
        return self.path.suffix == ".py" and self.room in ("src", "tests", "benchmarks", "docs")

    def nodes(self) -> Iterator[ast.AST]:
        return ast.walk(ast.parse(self.text, str(self.path))) if self.is_python else iter(())

    def functions(self) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
        for node in self.nodes():
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield node


@dataclass(frozen=True, slots=True)
class Finding:
    path: PurePosixPath
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"


def repository_files() -> list[SourceFile]:
    """Everything that is or could be committed, as text."""
    return [file for path in _paths() if (file := _load(path)) is not None]


def _paths() -> list[PurePosixPath]:
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    if listing.returncode == 0:
        return [PurePosixPath(name) for name in listing.stdout.decode().split("\0") if name]
    # An unpacked source archive has no index: take the folders that hold sources.
    rooms = [ROOT / room for room in ("src", "tests", "benchmarks", "docs")]
    found = [path for room in rooms for path in room.rglob("*") if "__pycache__" not in path.parts]
    return [PurePosixPath(path.relative_to(ROOT)) for path in found]


def _load(path: PurePosixPath) -> SourceFile | None:
    place = ROOT / path
    if not place.is_file() or place.is_symlink():
        return None
    try:
        text = place.read_bytes().decode()
    except UnicodeDecodeError:
        return None
    return SourceFile(path, text, tuple(sorted(_modules_beside(place))))


def _modules_beside(place: Path) -> Iterator[str]:
    for neighbour in place.parent.iterdir():
        is_package = (neighbour / "__init__.py").exists()
        if (neighbour.suffix == ".py" or is_package) and not neighbour.name.startswith("_"):
            yield neighbour.stem


# --- sizes


def file_length(file: SourceFile) -> Iterator[Finding]:
    limit = TEST_FILE_LINES_MAX if file.room == "tests" else FILE_LINES_MAX
    lines = file.text.count("\n")
    if file.is_python and lines > limit:
        yield Finding(file.path, lines, f"{lines} lines, at most {limit} allowed")


def function_length(file: SourceFile) -> Iterator[Finding]:
    for function in file.functions():
        lines = _lines(function)
        if lines > FUNCTION_LINES_MAX:
            text = f"{function.name} has {lines} lines, at most {FUNCTION_LINES_MAX} allowed"
            yield Finding(file.path, function.lineno, text)


def median_function(files: Sequence[SourceFile]) -> Iterator[Finding]:
    lengths = [_lines(f) for file in files if file.room == "src" for f in file.functions()]
    median = statistics.median(lengths or [0])
    if median >= MEDIAN_FUNCTION_LINES_MAX:
        text = f"half of the functions have {median:g} lines or more, under {MEDIAN_FUNCTION_LINES_MAX} wanted"
        yield Finding(PurePosixPath("src"), 0, text)


def _lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Without decorators and docstring."""
    end = function.end_lineno or function.lineno
    lines = end - function.lineno + 1
    if ast.get_docstring(function) is not None:
        docstring = function.body[0]
        lines -= (docstring.end_lineno or docstring.lineno) - docstring.lineno + 1
    return lines


# --- words


def file_name(file: SourceFile) -> Iterator[Finding]:
    if file.is_python and file.path.stem in NAMELESS:
        yield Finding(file.path, 1, "name the file by what it does")


def nothing_postponed(file: SourceFile) -> Iterator[Finding]:
    yield from _matches(file, POSTPONED, "finish it or leave it out")


def nothing_of_this_machine(file: SourceFile) -> Iterator[Finding]:
    yield from _matches(file, MACHINE, "a path or package registry of one machine")


def _matches(file: SourceFile, pattern: re.Pattern[str], message: str) -> Iterator[Finding]:
    for number, line in enumerate(file.text.splitlines(), 1):
        if found := pattern.search(line):
            yield Finding(file.path, number, f"{found.group().strip()!r}: {message}")


def package_guide(file: SourceFile) -> Iterator[Finding]:
    """A package's docstring is its reading guide: long enough to be one, and naming every module."""
    if file.room != "src" or file.path.name != "__init__.py":
        return
    guide = ast.get_docstring(ast.parse(file.text)) or ""
    if len(guide) < GUIDE_CHARACTERS_MIN:
        yield Finding(file.path, 1, "the docstring must say how to read this package")
    is_root = len(file.path.parts) == 3  # its docstring is for users, not for readers of the code
    missing = [name for name in file.siblings if not re.search(rf"\b{name}\b", guide)]
    if missing and not is_root:
        yield Finding(file.path, 1, f"the docstring does not name {', '.join(missing)}")


# --- calls and imports


def no_print(file: SourceFile) -> Iterator[Finding]:
    if file.room == "src" and "cli" not in file.path.parts:
        for call in _calls(file):
            if isinstance(call.func, ast.Name) and call.func.id == "print":
                yield Finding(file.path, call.lineno, "only the command line prints")


def doors(file: SourceFile) -> Iterator[Finding]:
    """What is imported in one place only, so that it can be changed in one place."""
    if file.room != "src":
        return
    for line, module in _imports(file):
        door = DOORS.get(module.partition(".")[0])
        if door is not None and not str(file.path).startswith(door):
            yield Finding(file.path, line, f"only {door} may import {module}")


def no_unsafe_code(file: SourceFile) -> Iterator[Finding]:
    for line, module in _imports(file):
        if module.partition(".")[0] in UNSAFE_MODULES:
            yield Finding(file.path, line, f"{module} runs what it reads")
    for call in _calls(file):
        name = ast.unparse(call.func)
        if name in ("eval", "exec", "yaml.load", "yaml.unsafe_load"):
            yield Finding(file.path, call.lineno, f"{name} runs what it reads")


def _calls(file: SourceFile) -> Iterator[ast.Call]:
    return (node for node in file.nodes() if isinstance(node, ast.Call))


def _imports(file: SourceFile) -> Iterator[tuple[int, str]]:
    for node in file.nodes():
        match node:
            case ast.Import(names=names):
                yield from ((node.lineno, alias.name) for alias in names)
            case ast.ImportFrom(module=str(module), level=0):
                yield node.lineno, module


# --- tests


def no_blind_sleep(file: SourceFile) -> Iterator[Finding]:
    """Waiting belongs into tests/support, where it polls and gives up."""
    if file.room != "tests" or "support" in file.path.parts:
        return
    for call in _calls(file):
        if ast.unparse(call.func) in ("time.sleep", "sleep"):
            yield Finding(file.path, call.lineno, "wait for the event, not for the time")


def tests_can_fail(file: SourceFile) -> Iterator[Finding]:
    if file.room != "tests" or not file.path.name.startswith("test_"):
        return
    judges = _judging_functions(file)
    for function in file.functions():
        if function.name.startswith("test") and function.name not in judges:
            yield Finding(file.path, function.lineno, f"{function.name} asserts nothing")


def _judging_functions(file: SourceFile) -> set[str]:
    """Functions that assert something, themselves or through another function of the file."""
    bodies = {function.name: list(ast.walk(function)) for function in file.functions()}
    judges = {name for name, body in bodies.items() if any(map(_judges, body))}
    while more := {
        name
        for name, body in bodies.items()
        if name not in judges and any(_called_name(node) in judges for node in body)
    }:
        judges |= more
    return judges


def _judges(node: ast.AST) -> bool:
    name = _called_name(node)
    if name.startswith(("to_be_", "to_have_", "to_contain_")):  # what a browser is expected to show
        return True
    return isinstance(node, ast.Assert) or name in ("raises", "warns", "fail") or "assert" in name


def _called_name(node: ast.AST) -> str:
    match node:
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return name
    return ""


# One thing in the forms it has on its way: as written in either language, as checked, as planned; stored and shown.
SAME_THING = {
    "Binary", "Call", "Cast", "Commit", "Connective", "Delete", "Filter", "Insert", "IsNull", "ListLiteral", "Literal",
    "Mutation", "Name", "Ordering", "Param", "Projection", "PropertyAccess", "Query", "Read", "Unwind", "Update",
    "Variable",
}  # fmt: skip


def class_names(files: Sequence[SourceFile]) -> Iterator[Finding]:
    """A class name stands for one thing in the whole of the source."""
    seen: dict[str, PurePosixPath] = {}
    for file in (file for file in files if file.room == "src" and file.is_python):
        for node in ast.walk(ast.parse(file.text)):
            if isinstance(node, ast.ClassDef) and node.name not in SAME_THING:
                if node.name in seen:
                    yield Finding(
                        file.path, node.lineno, f"{node.name} is also in {seen[node.name]}"
                    )
                seen[node.name] = file.path


FILE_RULES = (
    file_length,
    function_length,
    file_name,
    nothing_postponed,
    nothing_of_this_machine,
    package_guide,
    no_print,
    doors,
    no_unsafe_code,
    no_blind_sleep,
    tests_can_fail,
)
TREE_RULES = (class_names, median_function)
