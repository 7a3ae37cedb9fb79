"""Reading chains: what is remembered, what is asked for, and what an object must say of itself."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from omnigraph.core import layout
from omnigraph.core.chain import Chains
from omnigraph.core.records import Commit, Seal, encode
from omnigraph.core.repository import Repository
from omnigraph.errors import Corrupt, FormatUnsupported
from omnigraph.storage.objects import numbered
from tests.support.dict_objects import DictObjects
from tests.support.worlds import add_person, disturbed, memory_repository, submit


@pytest.fixture
def repo() -> Repository:
    """A chain with the numbers 0 to 4."""
    made = memory_repository()
    for name in ("ann", "bob", "cy", "dee"):
        submit(made, add_person(name))
    return made


def asked(repo: Repository, cached: int = 4096) -> tuple[Chains, list[str]]:
    """The chains as a process sees them that has read nothing yet, and the requests it makes."""
    requests: list[str] = []
    fresh = disturbed(repo, lambda verb, key: requests.append(f"{verb} {key}"))
    limits = replace(repo.limits, commits_cached_max=cached)
    return Chains(fresh.objects, repo.stamp.graph_id, limits), requests


def numbers(things: list[object]) -> list[int]:
    return [thing.number for thing in things if isinstance(thing, Commit)]


def test_a_commit_is_read_once(repo: Repository) -> None:
    chains, requests = asked(repo)
    main = repo.stamp.main_chain
    first = chains.get(main, 2)
    assert isinstance(first, Commit)
    assert first.number == 2
    assert chains.get(main, 2) is first
    assert len(requests) == 1
    assert chains.read(main, 2) == first
    assert len(requests) == 2, "reading asks the store, whatever is remembered"
    chains.forget(main, 2)
    chains.get(main, 2)
    assert len(requests) == 3


def test_as_many_commits_are_remembered_as_the_limit_says(repo: Repository) -> None:
    chains, requests = asked(repo, cached=2)
    main = repo.stamp.main_chain
    for number in (0, 1, 0, 2):
        chains.read(main, number)
    requests.clear()
    chains.get(main, 0)
    chains.get(main, 2)
    assert requests == [], "the two used last are remembered"
    chains.get(main, 1)
    assert len(requests) == 1


def test_a_range_has_both_its_ends(repo: Repository) -> None:
    chains, requests = asked(repo)
    main = repo.stamp.main_chain
    assert numbers(list(chains.range(main, 1, 3))) == [1, 2, 3]
    assert len(requests) == 3
    assert numbers(list(chains.range(main, 2, 3))) == [2, 3]
    assert len(requests) == 3, "all of them were known"
    assert numbers(list(chains.range(main, 0, 4))) == [0, 1, 2, 3, 4]


def test_what_came_since_a_number(repo: Repository) -> None:
    chains, _ = asked(repo)
    main = repo.stamp.main_chain
    assert numbers(list(chains.since(main, 2))) == [3, 4]
    assert numbers(list(chains.since(main, 3))) == [4]
    assert chains.since(main, 4) == []
    assert chains.since("nothing", 0) == []
    assert chains.newest(main) == 4
    assert chains.newest("nothing") is None


def test_what_must_be_there_and_is_not_is_damage(repo: Repository) -> None:
    chains, _ = asked(repo)
    main = repo.stamp.main_chain
    assert chains.get(main, 5) is None
    with pytest.raises(Corrupt) as caught:
        chains.expect(main, 5)
    assert caught.value.details["object"] == numbered(layout.chain_folder(main), 5)


def put(repo: Repository, number: int, thing: Commit | Seal) -> None:
    objects = repo.objects
    assert isinstance(objects, DictObjects)
    objects.put(numbered(layout.chain_folder(repo.stamp.main_chain), number), encode(thing))


def test_an_object_says_where_it_belongs(repo: Repository) -> None:
    main = repo.stamp.main_chain
    head = repo.head("main").commit
    for field, value, error in (
        ("number", 7, Corrupt),
        ("chain", "elsewhere", Corrupt),
        ("graph_id", "another", Corrupt),
        ("format", 99, FormatUnsupported),
    ):
        put(repo, 4, msgspec.structs.replace(head, **{field: value}))
        chains, _ = asked(repo)
        with pytest.raises(error):
            chains.read(main, 4)
    put(repo, 4, msgspec.structs.replace(head, graph_id="another"))
    chains, _ = asked(repo)
    assert chains.read(main, 4, of_any_graph=True) is not None
    with pytest.raises(Corrupt):
        chains.get(main, 4)
