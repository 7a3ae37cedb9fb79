"""Waiting ends with the event, or with an error that says what did not happen."""

from __future__ import annotations

import pytest

from tests.support.waiting import wait_until


def test_it_answers_with_what_it_waited_for() -> None:
    answers = iter([None, 0, "there"])
    assert wait_until(lambda: next(answers), interval=0) == "there"


def test_it_gives_up_and_says_what_for() -> None:
    with pytest.raises(TimeoutError, match="a miracle"):
        wait_until(lambda: False, timeout=0, what="a miracle")
