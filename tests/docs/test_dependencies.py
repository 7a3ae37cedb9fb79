"""What is installed is listed, pinned, and of a licence we accept."""

from __future__ import annotations

from tests.support.dependencies import PAGE, packages, page, pinned

REMAKE = "run `python -m tests.support.dependencies`"


def test_the_page_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), REMAKE


def test_every_package_is_pinned_to_what_is_installed() -> None:
    locked = pinned()
    loose = [p.name for p in packages() if locked.get(p.name) != p.version]
    assert not loose, f"not as constraints.txt says: {loose}"


def test_every_licence_is_accepted() -> None:
    refused = [f"{p.name}: {p.licence or 'none is told'}" for p in packages() if not p.is_allowed]
    assert not refused, refused
