"""The house rules hold in every file of the repository; each finding names its file and line."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pytest

from tests.support.tidy import FILE_RULES, TREE_RULES, Finding, SourceFile, repository_files


@pytest.fixture(scope="module")
def files() -> list[SourceFile]:
    return repository_files()


def test_the_repository_is_found(files: list[SourceFile]) -> None:
    paths = {str(file.path) for file in files}
    assert {"pyproject.toml", "src/omnigraph/errors.py", "tests/test_tidy.py"} <= paths


@pytest.mark.parametrize("rule", FILE_RULES, ids=lambda rule: rule.__name__)
def test_every_file(
    rule: Callable[[SourceFile], Iterator[Finding]], files: list[SourceFile]
) -> None:
    findings = [str(finding) for file in files for finding in rule(file)]
    assert not findings, "\n" + "\n".join(findings)


@pytest.mark.parametrize("rule", TREE_RULES, ids=lambda rule: rule.__name__)
def test_all_files_together(
    rule: Callable[[Sequence[SourceFile]], Iterator[Finding]], files: list[SourceFile]
) -> None:
    findings = [str(finding) for finding in rule(files)]
    assert not findings, "\n" + "\n".join(findings)
