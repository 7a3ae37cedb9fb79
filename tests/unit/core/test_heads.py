"""Where branches are: every look is the newest there is, whatever was pruned, sealed or damaged meanwhile."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from omnigraph.core import layout
from omnigraph.core.branches import create_tag, delete_branch
from omnigraph.core.chain import END_ATTEMPTS_MAX
from omnigraph.core.records import Tombstone, encode
from omnigraph.core.repository import Repository
from omnigraph.errors import BranchNotFound, Corrupt
from omnigraph.graph import Graph
from omnigraph.maintenance.collection import Retention, collect
from omnigraph.model.names import MAIN
from omnigraph.storage.objects import numbered
from tests.support.worlds import (
    add_person,
    another_process,
    disturbed,
    memory_repository,
    people,
    stored_schema,
    submit,
)


@pytest.fixture
def repo() -> Repository:
    repo = memory_repository()
    submit(repo, add_person("ann"))
    return repo


def requests(repo: Repository, step: Callable[[Repository], object]) -> list[str]:
    """What a step asks of the store, as a process that already knows the branch."""
    asked: list[str] = []
    warm = disturbed(repo, lambda verb, key: asked.append(verb))
    warm.head("main")
    asked.clear()
    step(warm)
    return asked


def test_a_warm_look_at_a_branch_that_has_not_moved_is_one_request(repo: Repository) -> None:
    assert requests(repo, lambda warm: warm.head("main")) == ["get"]


def test_a_warm_look_finds_the_newest_however_far_the_branch_has_moved(repo: Repository) -> None:
    warm = another_process(repo)
    warm.head("main")
    for number in range(3):
        submit(repo, add_person(f"p{number}"))
        submit(repo, add_person(f"q{number}"))
        assert warm.head("main").commit == repo.head("main").commit


def test_an_older_head_never_replaces_a_newer_one(repo: Repository) -> None:
    old = repo.head("main")
    submit(repo, add_person("bob"))
    new = repo.head("main")
    repo.moved(old)
    assert repo.known_head(MAIN) == new


def test_a_head_nobody_has_asked_for_is_looked_up(repo: Repository) -> None:
    fresh = another_process(repo)
    assert not fresh.knows("main")
    assert fresh.known_head(MAIN) == repo.head("main")
    assert fresh.knows("main")


def test_a_head_that_is_pruned_while_it_is_looked_up_is_looked_up_again(repo: Repository) -> None:
    """Between the listing and the read, others write and collect: what was listed is a tombstone."""
    done: list[str] = []

    def before(verb: str, key: str) -> None:
        if verb == "get" and key.startswith(layout.CHAINS) and not done:
            done.append(key)
            rival = another_process(repo)
            for name in ("bob", "cy"):
                submit(rival, add_person(name))
            collect(rival, Retention(keep=1))

    assert people(disturbed(repo, before)) == ["ann", "bob", "cy"]
    assert done


def test_a_chain_that_ends_in_a_tombstone_is_damage(repo: Repository) -> None:
    head = repo.head("main").commit
    tomb = Tombstone(head.chain, head.number + 1, "main", (), head.time + 1, "epoch", head.content)
    repo.objects.put(numbered(layout.chain_folder(head.chain), tomb.number), encode(tomb))
    asked: list[str] = []
    lost = disturbed(repo, lambda verb, key: asked.append(verb))
    with pytest.raises(Corrupt, match="tombstone"):
        lost.head("main")
    assert asked.count("list") <= END_ATTEMPTS_MAX


@pytest.mark.parametrize("folder", [layout.CHAINS, layout.REFS])
def test_an_object_that_is_listed_and_not_there_is_damage(repo: Repository, folder: str) -> None:
    Graph(repo).create_branch("dev")

    def before(verb: str, key: str) -> None:
        if verb == "get" and key.startswith(folder):
            repo.objects.delete([key])

    with pytest.raises(Corrupt, match="missing"):
        disturbed(repo, before).head("dev")


def test_a_name_leads_to_a_branch_only_while_it_is_one(repo: Repository) -> None:
    Graph(repo).create_branch("dev")
    warm = another_process(repo)
    warm.head("dev")
    delete_branch(repo, "dev")
    create_tag(repo, "dev", repo.head("main").commit)
    for someone in (warm, another_process(repo)):
        with pytest.raises(BranchNotFound):
            someone.head("dev")


def test_a_schema_under_the_name_of_another_is_damage(repo: Repository) -> None:
    hashed = repo.head("main").commit.schema
    other = stored_schema("node Town { name: String @key }")
    repo.objects.put(layout.schema_key(hashed), encode(other))
    assert repo.schema(hashed).stored == stored_schema(), "who has read it needs it no more"
    with pytest.raises(Corrupt, match="does not match its name"):
        another_process(repo).schema(hashed)
