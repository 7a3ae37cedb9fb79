"""How long a call may take: nothing, a moment or for ever; and what it is told when it must end."""

from __future__ import annotations

import threading

import pytest

from omnigraph.core import clock as module
from omnigraph.core.clock import NEVER, Deadline
from omnigraph.errors import Cancelled, DeadlineExceeded


class Watch:
    """Stands still until it is told."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def monotonic(self) -> float:
        return self.seconds


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Watch:
    made = Watch()
    monkeypatch.setattr(module, "time", made)
    return made


def test_time_runs_out_at_its_end_and_not_before(watch: Watch) -> None:
    limit = Deadline(5.0)
    assert limit.remaining() == 5.0
    watch.seconds += 4.0
    assert (limit.over, limit.remaining()) == (False, 1.0)
    limit.check()
    watch.seconds += 1.0
    assert (limit.over, limit.remaining()) == (True, 0.0)
    watch.seconds += 9.0
    assert limit.remaining() == 0.0
    with pytest.raises(DeadlineExceeded) as caught:
        limit.check()
    assert caught.value.details["seconds"] == 5.0


def test_without_a_limit_there_is_no_end(watch: Watch) -> None:
    watch.seconds += 1e9
    assert (NEVER.over, NEVER.remaining()) == (False, None)
    NEVER.check()


def test_a_call_that_is_called_off_is_told_so(watch: Watch) -> None:
    stop = threading.Event()
    for limit in (Deadline(5.0, stop), Deadline(None, stop)):
        assert not limit.over
        assert isinstance(limit.error(), DeadlineExceeded)
    stop.set()
    for limit in (Deadline(5.0, stop), Deadline(None, stop)):
        assert limit.over
        with pytest.raises(Cancelled):
            limit.check()
