"""Which fragments are worth rewriting: few, and a second look finds nothing more."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from omnigraph.storage.tables import (
    CHEAP_ROWS,
    FRAGMENT_ROWS_MAX,
    FragmentInfo,
    rewrite_groups,
)


def fragment(number: int, rows: int, deleted: int = 0) -> FragmentInfo:
    return FragmentInfo(number, rows, deleted, f"{number}+{deleted}", str(number))


def rewritten(fragments: list[FragmentInfo]) -> list[FragmentInfo]:
    """What a table consists of after its groups were rewritten, the new fragments last."""
    groups = rewrite_groups(fragments)
    gone = {i for group in groups for i in group}
    live = {f.fragment_id: f.live_rows for f in fragments}
    after = [f for f in fragments if f.fragment_id not in gone]
    free = max((f.fragment_id for f in fragments), default=-1) + 1
    new = [sum(live[i] for i in group) for group in groups]
    return after + [fragment(free + place, rows) for place, rows in enumerate(new) if rows]


SIZES = st.tuples(st.integers(1, FRAGMENT_ROWS_MAX), st.floats(0, 1))


@given(st.lists(SIZES, max_size=40))
def test_a_second_look_finds_nothing(sizes: list[tuple[int, float]]) -> None:
    before = [fragment(n, rows, int(rows * part)) for n, (rows, part) in enumerate(sizes)]
    after = rewritten(before)
    assert rewrite_groups(after) == ()
    assert sum(f.live_rows for f in after) == sum(f.live_rows for f in before)
    assert sum(f.live_rows <= CHEAP_ROWS // 2 for f in after) <= 1
    assert all(f.live_rows <= FRAGMENT_ROWS_MAX for f in after)


def test_a_large_fragment_is_left_alone_until_as_much_has_come() -> None:
    large = fragment(0, 500_000)
    assert rewrite_groups([large, fragment(1, 3), fragment(2, 5)]) == ((1, 2),)
    assert rewrite_groups([large, fragment(1, 400_000), fragment(2, 100_000)]) == ()
    assert rewrite_groups([large, fragment(1, 400_000), fragment(2, 400_000)]) == ((1, 2),)


def test_deleted_rows_are_a_reason_by_themselves() -> None:
    full = fragment(0, FRAGMENT_ROWS_MAX, FRAGMENT_ROWS_MAX // 2)
    assert rewrite_groups([full]) == ((0,),)
    assert rewrite_groups([fragment(0, FRAGMENT_ROWS_MAX, 10)]) == ()
