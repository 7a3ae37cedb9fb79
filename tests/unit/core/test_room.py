"""The last resort of a write that keeps losing: it asks, others wait for a moment, and nothing depends on it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from omnigraph.core.clock import Clock, Deadline
from omnigraph.core.publisher import Outcome, create
from omnigraph.core.records import Commit, operations_of
from omnigraph.core.repository import Repository
from omnigraph.core.room import ROOM, SECONDS, Contest, following, question
from omnigraph.errors import CommitUnknown, DeadlineExceeded, WriteConflict
from omnigraph.graph import Graph
from omnigraph.model.limits import DEFAULT
from tests.support.faults_by_count import Died, Disturbance, Fault
from tests.support.worlds import add_person, another_process, disturbed, memory_repository, submit
from tests.support.worlds import people as names

EAGER = replace(DEFAULT, room_after_losses=2, room_after_seconds=0.0)
BOUND = DEFAULT.room_seconds_max


class Hand:
    """A clock that moves when somebody waits."""

    def __init__(self) -> None:
        self.time = 1_800_000_000_000_000
        self.waited: list[float] = []
        self.meanwhile: Callable[[], object] = lambda: None

    def now(self) -> int:
        return self.time

    def pause(self, seconds: float) -> None:
        self.waited.append(seconds)
        self.time += round(seconds * 1_000_000)
        self.meanwhile()

    def clock(self) -> Clock:
        return Clock(now=self.now, pause=self.pause, chance=lambda: 0.0)


@pytest.fixture
def hand() -> Hand:
    return Hand()


@pytest.fixture
def repo(hand: Hand) -> Repository:
    made = memory_repository(clock=hand.clock(), limits=EAGER)
    submit(made, add_person("ann"))
    return made


def rivals(repo: Repository, number: int) -> Callable[[str, str], None]:
    """So many writers of other rows come in, each right before a create."""
    left = iter(range(number))

    def before(verb: str, key: str) -> None:
        if verb == "put_new" and key.startswith("__manifest"):
            for one in left:
                submit(another_process(repo), add_person(f"rival{one}"))
                return

    return before


def asked(repo: Repository, seconds: Any = 1.0) -> Commit:
    """Somebody asks for room, and is never heard of again."""
    made = question(repo, repo.head("main").commit, 1.0, "somebody", "merge")
    member = msgspec.structs.replace(made.members[0], result={SECONDS: seconds})
    made = msgspec.structs.replace(made, members=(member,))
    assert create(repo, made) is Outcome.CREATED
    return made


def questions(repo: Repository) -> list[Commit]:
    head = repo.head("main").commit
    found = repo.chains.range(head.chain, 0, head.number)
    return [thing for thing in found if isinstance(thing, Commit) and thing.kind == ROOM]


def test_who_lost_often_asks_by_a_commit_that_changes_nothing(repo: Repository) -> None:
    before = repo.head("main").commit.content
    done = submit(disturbed(repo, rivals(repo, 3)), add_person("mine"), actor="me")
    (question,) = questions(another_process(repo))
    assert question.members[0].actor == "me"
    assert question.members[0].result["for"] == "mutation"
    parent = repo.chains.expect(question.chain, question.number - 1)
    assert isinstance(parent, Commit)
    assert (question.tables, question.schema, question.content, question.gc_epoch) == (
        parent.tables,
        parent.schema,
        parent.content,
        parent.gc_epoch,
    )
    assert done.commit is not None
    assert done.commit.number > question.number, "the write is another commit than the question"
    assert "mine" in names(repo)
    shown = [commit.kind for commit in Graph(another_process(repo)).log(limit=None)]
    assert ROOM not in shown
    assert before != repo.head("main").commit.content


def test_a_question_is_no_change_for_a_conditional_write(repo: Repository) -> None:
    content = repo.head("main").commit.content
    asked(repo)
    submit(another_process(repo), add_person("bob"), if_commit=content)
    assert "bob" in names(repo)


def test_whoever_never_comes_back_delays_a_write_by_the_bound_and_no_more(
    repo: Repository, hand: Hand
) -> None:
    asked(repo, seconds=1.0)
    submit(another_process(repo), add_person("bob"))
    assert sum(hand.waited) == pytest.approx(1.0)


@pytest.mark.parametrize("seconds", [10**9, 1e300, float(BOUND)])
def test_nobody_waits_longer_than_its_own_bound(
    repo: Repository, hand: Hand, seconds: float
) -> None:
    asked(repo, seconds)
    submit(another_process(repo), add_person("bob"))
    assert sum(hand.waited) == pytest.approx(BOUND)


@pytest.mark.parametrize("seconds", [None, "long", -1, 0, [3]])
def test_what_is_no_number_of_seconds_delays_nobody(
    repo: Repository, hand: Hand, seconds: Any
) -> None:
    asked(repo, seconds)
    submit(another_process(repo), add_person("bob"))
    assert not sum(hand.waited)


def test_the_wait_ends_when_the_branch_goes_on(repo: Repository, hand: Hand) -> None:
    made = asked(repo, seconds=2.0)

    def goes_on() -> None:
        hand.meanwhile = lambda: None
        asker = Contest.begin(another_process(repo))
        asker.asked |= operations_of(made)
        assert not asker.make_room(made, lambda: False), "it would wait for itself"
        assert create(repo, following(repo, made, "epoch")) is Outcome.CREATED

    hand.meanwhile = goes_on
    submit(another_process(repo), add_person("bob"))
    assert sum(hand.waited) < 1.0
    assert "bob" in names(repo)


def test_a_writer_in_the_middle_of_a_race_makes_room_too(repo: Repository, hand: Hand) -> None:
    left = iter(range(1))

    def before(verb: str, key: str) -> None:
        if verb == "put_new" and key.startswith("__manifest"):
            for _ in left:
                asked(another_process(repo), seconds=1.0)

    submit(disturbed(repo, before), add_person("bob"))
    assert sum(hand.waited) == pytest.approx(1.0)
    assert "bob" in names(repo)


def test_nobody_waits_for_itself(repo: Repository, hand: Hand) -> None:
    submit(disturbed(repo, rivals(repo, 3)), add_person("mine"))
    assert len(questions(repo)) == 1
    assert not sum(hand.waited)


def test_the_next_question_waits_until_others_had_their_turn(repo: Repository) -> None:
    submit(disturbed(repo, rivals(repo, 12)), add_person("mine"))
    assert len(questions(repo)) == 1, "the clock stood still, so nobody had a turn"


def test_a_wait_ends_with_the_time_of_the_call(repo: Repository) -> None:
    asked(repo, seconds=BOUND)
    own = another_process(repo)
    own.clock = Clock()
    with pytest.raises(DeadlineExceeded):
        submit(own, add_person("bob"), deadline=Deadline(0.2))
    assert "bob" not in names(repo)


def test_work_that_is_too_long_for_any_room_names_who_is_in_the_way(hand: Hand) -> None:
    limits = replace(EAGER, meetings_max=3)
    repo = memory_repository(clock=hand.clock(), limits=limits)
    runs: list[int] = []

    def long_work(txn: Any) -> Any:
        runs.append(1)
        hand.time += round((BOUND + 1) * 1_000_000)
        return add_person("mine", age=-1)(txn)

    def before(verb: str, key: str) -> None:
        if verb == "put_new" and key.startswith("__manifest"):
            submit(another_process(repo), add_person("mine", age=len(runs)), actor="rival")

    with pytest.raises(WriteConflict, match="by rival changed Person") as raised:
        submit(disturbed(repo, before), long_work)
    assert raised.value.details["actor"] == "rival"
    assert len(runs) == limits.meetings_max
    assert not questions(another_process(repo)), "no room would have been enough"


@pytest.mark.parametrize("fault", Fault)
def test_a_fault_at_any_write_of_one_who_asks_breaks_nothing(hand: Hand, fault: Fault) -> None:
    """The question is among the writes: whoever dies around it leaves a commit that shows the same state."""
    met = 0
    for at in range(40):
        fresh = memory_repository(clock=hand.clock(), limits=EAGER)
        submit(fresh, add_person("ann"))
        come, strikes = rivals(fresh, 3), Disturbance(fault, at)

        def before(verb: str, key: str, come: Any = come, strikes: Any = strikes) -> None:
            come(verb, key)
            strikes.before(verb, key)

        told = None
        with suppress(Died, CommitUnknown):
            told = submit(disturbed(fresh, before, strikes.after), add_person("mine"))
        met += bool(strikes.struck and questions(another_process(fresh)))
        submit(another_process(fresh), add_person("later"))
        there = names(another_process(fresh))
        assert there.count("mine") == 1 or (told is None and "mine" not in there)
        assert {"ann", "later"} <= set(there)
        assert len(there) == len(set(there))
        if not strikes.struck:
            break
    assert met > 2, "the fault never struck beside a question"


def test_a_contest_does_not_ask_while_ordinary_ways_may_do(repo: Repository, hand: Hand) -> None:
    contest = Contest.begin(replace_limits(repo, room_after_losses=2, room_after_seconds=5.0))
    contest.lost = 2
    assert contest.wants_room(0) == 0.0, "it is early"
    hand.time += 5_000_000
    assert contest.wants_room(0) > 0.0
    contest.lost = 1
    assert contest.wants_room(0) == 0.0, "it has hardly lost"


def lost(repo: Repository, *, longest: int, tried: int) -> Contest:
    """A contest after its first loss."""
    contest = Contest.begin(repo)
    contest.longest, contest.tried, contest.lost, contest.missed = longest, tried, 1, 20
    return contest


def test_work_that_took_long_asks_after_its_first_loss(repo: Repository) -> None:
    contest = Contest.begin(repo)
    contest.longest = 400_000
    assert contest.wants_room(None) == 0.0, "it has not lost"
    contest = lost(repo, longest=400_000, tried=10_000)
    assert contest.wants_room(None) == pytest.approx(1.2)
    assert contest.wants_room(50_000) == pytest.approx(0.15)
    assert contest.wants_room(400_000) == pytest.approx(1.2), "a move may take as long as the work"
    assert contest.wants_room(400_001) == 0.0, "it is as well to make it again"
    contest.has_asked(0.1)
    assert contest.wants_room(50_000) == 0.0, "others have a right to their turn"


def test_nobody_asks_for_more_than_others_would_wait(repo: Repository) -> None:
    contest = lost(repo, longest=round(60 * BOUND * 1_000_000), tried=10_000)
    assert contest.wants_room(round(0.9 * BOUND * 1_000_000)) == BOUND
    assert contest.wants_room(None) == BOUND, "nobody knows how long it takes to move"
    assert contest.wants_room(round((BOUND + 1) * 1_000_000)) == 0.0, "no room would be enough"


def test_an_ordinary_write_on_a_slow_store_is_not_long_work(repo: Repository) -> None:
    assert lost(repo, longest=400_000, tried=80_000).wants_room(None) == 0.0


def test_who_takes_long_because_everybody_does_is_not_long_work(repo: Repository) -> None:
    """On a busy machine each write of others takes as long, so that few of them come meanwhile."""
    contest = lost(repo, longest=400_000, tried=1_000)
    contest.missed = 4
    assert contest.wants_room(None) == 0.0


def test_what_came_while_work_was_made_is_counted(hand: Hand) -> None:
    repo = memory_repository(clock=hand.clock())  # to lose once is not to starve
    submit(repo, add_person("ann"))

    def meanwhile(number: int) -> Callable[[Any], Any]:
        def verb(txn: Any) -> Any:
            for one in range(number):
                submit(another_process(repo), add_person(f"rival{number}-{one}"))
            hand.time += 200_000
            return add_person(f"mine{number}")(txn)

        return verb

    submit(another_process(repo), meanwhile(4))
    assert not questions(another_process(repo))
    submit(another_process(repo), meanwhile(8))
    assert len(questions(another_process(repo))) == 1


def test_work_stays_long_when_it_runs_again_and_has_less_to_do(
    repo: Repository, hand: Hand
) -> None:
    contest = Contest.begin(repo)
    for spent, tried in ((900_000, 10_000), (20_000, 60_000)):
        hand.time += spent
        contest.made(hand.time - spent)
        began = contest.begins_race()
        hand.time += tried
        contest.lose(began)
    assert (contest.longest, contest.tried) == (900_000, 10_000)
    contest.missed = 20
    assert contest.wants_room(20_000) > 0.0


def test_long_work_does_not_stand_back_and_nobody_does_in_its_own_room(
    repo: Repository, hand: Hand
) -> None:
    """While it waited, the others would win once more."""
    lost(repo, longest=400_000, tried=10_000).stand_back(3)
    assert not hand.waited
    contest = lost(repo, longest=10_000, tried=10_000)
    contest.has_asked(0.5)
    contest.stand_back(3)
    assert not hand.waited
    hand.time += 500_000
    contest.stand_back(3)
    assert hand.waited, "the time is over"


def test_whoever_is_refused_goes_on_from_the_newest_head(repo: Repository) -> None:
    """A question at a number that is taken tells that there is a newer head: no attempt is made on the older one."""
    created: list[str] = []
    come = rivals(repo, 8)

    def before(verb: str, key: str) -> None:
        if verb == "put_new" and key.startswith("__manifest"):
            created.append(key)
        come(verb, key)

    done = submit(disturbed(repo, before), add_person("mine"))
    assert done.commit is not None
    assert "mine" in names(repo)
    assert len(created) == len(set(created)), "it tried a number that it knew to be taken"


def test_what_is_judged_is_not_read_again_after_a_question(repo: Repository) -> None:
    """The question is created on what was judged, beside putting the tables there; then only the commit is left."""
    seen: list[str] = []
    come = rivals(repo, 2)

    def before(verb: str, key: str) -> None:
        if key.startswith("__manifest"):
            seen.append(verb)
            come(verb, key)

    submit(disturbed(repo, before), add_person("mine"))
    assert len(questions(another_process(repo))) == 1
    assert seen[-2:] == ["put_new", "put_new"], f"question and commit: {seen}"


def replace_limits(repo: Repository, **limits: Any) -> Repository:
    repo.limits = replace(repo.limits, **limits)
    return repo
