"""The questions every engine is asked, with what they must answer and what we aim at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.peerbench.oracle import Oracle

Answer = list[Any]
AGE = 30


@dataclass(frozen=True, slots=True)
class Job:
    """A question with several sets of parameters; `target` is the wanted ratio of our time to the best peer's at M."""

    name: str
    says: str
    calls: list[dict[str, Any]]
    wanted: list[Answer]
    target: float | None = None
    agree: Callable[[Answer, Answer], bool] = lambda found, wanted: found == wanted

    def right(self, answers: list[Answer]) -> bool:
        pairs = zip(answers, self.wanted, strict=True)
        return all(self.agree(_rounded(found), wanted) for found, wanted in pairs)


def _rounded(values: Answer) -> Answer:
    return [round(value, 6) if isinstance(value, float) else value for value in values]


def _same_ids(found: Answer, wanted: Answer) -> bool:
    return sorted(int(i) for i in found) == sorted(wanted)


def _nearly_all(found: Answer, wanted: Answer) -> bool:
    """All but one: engines sum in different orders, so that the last of ten may be another that is as near."""
    return (
        len(found) == len(wanted) and len({int(i) for i in found} & set(wanted)) >= len(wanted) - 1
    )


def jobs(oracle: Oracle) -> list[Job]:
    rng = np.random.default_rng(99)
    persons = [int(p) for p in rng.integers(0, oracle.n, 50)]
    return [*_walks(oracle, persons), *_aggregates(oracle), *_searches(oracle, persons[:8])]


def _walks(oracle: Oracle, persons: list[int]) -> list[Job]:
    seeds = persons[:8]
    ages = [[int(oracle.age[p])] for p in persons]
    found = [Job("point", "look a person up", [{"person": p} for p in persons], ages)]
    for hops, target in ((1, None), (2, 1.0), (3, 0.25)):
        calls = [{"person": p, "age": AGE} for p in seeds]
        wanted = [[oracle.hop(p, hops, AGE)] for p in seeds]
        says = f"persons {hops} follows away, older than 30"
        found.append(Job(f"hop{hops}", says, calls, wanted, target))
    reached = [[oracle.reach(p, 3)] for p in seeds]
    says = "persons within 3 follows"
    found.append(Job("reach", says, [{"person": p} for p in seeds], reached, 0.15))
    pairs = list(zip(persons[8:14], persons[14:20], strict=True))
    lengths = [oracle.shortest(a, b, 5) for a, b in pairs]
    wanted = [[] if length is None else [length] for length in lengths]
    calls = [{"person": a, "other": b} for a, b in pairs]
    return [*found, Job("shortest", "length of a shortest path of at most 5", calls, wanted, 0.1)]


def _aggregates(oracle: Oracle) -> list[Job]:
    def job(name: str, says: str, target: float, **params: Any) -> Job:
        answer = getattr(oracle, name)(*params.values())
        return Job(name, says, [params], [answer if isinstance(answer, list) else [answer]], target)

    here, taste = {"country": "United States"}, {"interest": "photography"}
    diner = {"gender": "male", "country": "United Kingdom", "interest": "fine dining"}
    paths = oracle.q9(50, 25)
    return [
        job("q1", "the 3 most followed", 0.25),
        job("q2", "where the most followed lives", 0.5),
        job("q3", "the 5 youngest cities of a country", 1.0, **here),
        job("q4", "persons of an age, by country", 1.0, low=30, high=40),
        job("q5", "persons of a city with an interest", 1.0, **diner),
        job("q6", "cities by such persons", 1.0, gender="female", interest="tennis"),
        job("q7", "the state with most of them", 1.0, **here, low=23, high=30, **taste),
        job("q8", "paths of 2 follows", 0.2),
        Job("q9", "such paths, by ages", [{"low": 25, "high": 50}], [[paths]], 0.3),
    ]


def _searches(oracle: Oracle, seeds: list[int]) -> list[Job]:
    vectors = [oracle.emb[p] for p in np.random.default_rng(5).integers(0, oracle.n, len(seeds))]
    words = oracle.frequent_words(20, 20 + len(seeds))
    near = [oracle.vector(p, v, 10) for p, v in zip(seeds, vectors, strict=True)]
    matching = [oracle.text(p, word) for p, word in zip(seeds, words, strict=True)]
    wanted = [{"person": p, "vector": v.tolist()} for p, v in zip(seeds, vectors, strict=True)]
    asked = [{"person": p, "word": word} for p, word in zip(seeds, words, strict=True)]
    return [
        Job("vector", "nearest 10 among persons 2 follows away", wanted, near, 0.75, _nearly_all),
        Job("text", "a word among persons 2 follows away", asked, matching, 0.5, _same_ids),
    ]
