"""Random schemas with every kind of rule, valid rows for them, and rows about a third of which break some rule."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from omnigraph.model.keys import key_ids

BROKEN_SHARES = (0.0, 0.1, 0.3, 0.8)  # of the rows of a batch
FLOATS = ("NaN", 0.0, "Infinity", "-Infinity", 1e22, 5e-324, 0.1)
TEXTS = ("", "a", "A", "ä", 'say "x"\n', "1", "null", "x" * 3_000)
MOMENTS = ("0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999Z", "1970-01-01T00:00:00Z")
DAYS = ("0001-01-01", "9999-12-31", "1970-01-01")
INTEGERS = {"I32": 2**31 - 1, "I64": 2**63 - 1, "U32": 2**32 - 1, "U64": 2**64 - 1}


@dataclass(frozen=True)
class Member:
    """A property: its declaration, values that fit, each number's its own, odd values that fit, values that do not."""

    name: str
    declared: str
    fitting: Callable[[int], Any]
    odd: tuple[Any, ...] = ()  # they fit, but stored rows may have them
    unfit: tuple[Any, ...] = ()  # or that equal an odd one
    rules: tuple[str, ...] = ()  # of the type


@dataclass
class Kind:
    """A type with the ids of its stored rows."""

    name: str
    members: list[Member]
    key: tuple[str, ...] = ()
    rules: list[str] = field(default_factory=list)
    ends: tuple[Kind, Kind] | None = None
    card: tuple[int, int | None] | None = None
    ids: list[str] = field(default_factory=list)  # of stored rows
    given: list[str] = field(default_factory=list)  # of rows of the batch at hand
    replaced: bool = False  # the batch replaces what is stored
    stored: list[dict[str, Any]] = field(default_factory=list)

    def text(self) -> str:
        parts = [f"{m.name}: {m.declared}" for m in self.members]
        parts += [rule for m in self.members for rule in m.rules] + self.rules
        parts += [f"@key({', '.join(self.key)})"] if self.key else []
        if self.ends is None:
            return f"node {self.name} {{ {' '.join(parts)} }}"
        card = "" if self.card is None else f" @card({self.card[0]}..{self.card[1] or ''})"
        ends = " -> ".join(end.name for end in self.ends)
        return f"edge {self.name}: {ends}{card} {{ {' '.join(parts)} }}"

    def there(self) -> list[str]:
        """The ids that nodes have after the load."""
        return (self.given if self.replaced else self.ids + self.given) or ["nowhere"]


class RuleMaker:
    """Schemas and rows by one seed."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.serial, self.broken_share = 0, 0.0
        nodes = [self._node(f"N{i}") for i in range(self.rng.randint(1, 2))]
        edges = [self._edge(f"E{i}", nodes) for i in range(self.rng.randint(1, 2))]
        self.kinds = nodes + edges
        self.schema = "\n".join(kind.text() for kind in self.kinds)

    # --- schemas -------------------------------------------------------------------------------------------------

    def _node(self, name: str) -> Kind:
        key = self.rng.choice(
            [
                [Member("k", "String", lambda n: f"k{n}", unfit=(None,))],
                [Member("k", "I64", lambda n: n, unfit=(None,))],
                [Member("k", "F64", float, odd=(-0.0, 1e22), unfit=(None, "NaN"))],
                [
                    Member("j", "String", lambda n: f"j{n}", odd=('"', "")),
                    Member("k", "F32", lambda n: n / 4, odd=(0.0, -0.0), unfit=(None, "Infinity")),
                ],
                [],
            ]
        )
        kind = Kind(name, [*key, *self._members()], tuple(m.name for m in key))
        self._groups(kind, [m.name for m in kind.members if m.name not in kind.key])
        return kind

    def _edge(self, name: str, nodes: list[Kind]) -> Kind:
        rng = self.rng
        kind = Kind(name, self._members()[:2], ends=(rng.choice(nodes), rng.choice(nodes)))
        kind.key = rng.choice([(), (), ("src", "dst")])
        kind.card = rng.choice([None, None, (0, 3), (1, 4), (2, None)])
        self._groups(kind, ["src", "dst", *(m.name for m in kind.members)])
        return kind

    def _groups(self, kind: Kind, names: list[str]) -> None:
        plain = {m.name for m in kind.members if "Vector" in m.declared or "[" in m.declared}
        names = [name for name in names if name not in plain | {"c", "o", "t", "src", "dst"}]
        names += ["src", "dst"] if names and kind.ends is not None else []
        if len(names) > 1 and self.rng.random() < 0.5:
            kind.rules.append(f"@unique({', '.join(self.rng.sample(names, 2))})")

    def _members(self) -> list[Member]:
        makers = [self._text, self._enum, self._integer, self._float, self._time, self._other]
        return [make() for make in self.rng.sample(makers, self.rng.randint(3, 5))]

    def _flags(self) -> tuple[str, tuple[Any, ...]]:
        """Whether it may be null and must be unique; and null where it may not be."""
        nullable = self.rng.random() < 0.6
        unique = " @unique" if self.rng.random() < 0.7 else ""
        return ("?" if nullable else "") + unique, () if nullable else (None,)

    def _text(self) -> Member:
        flags, unfit = self._flags()
        if self.rng.random() < 0.5:
            rule = '@check(s, "^s[0-9]*$")'
            wrong = (*unfit, "", "t1", "s1\n!")
            return Member("s", f"String{flags}", lambda n: f"s{n}", unfit=wrong, rules=(rule,))
        return Member("s", f"String{flags}", lambda n: f"s{n}", odd=TEXTS, unfit=unfit)

    def _enum(self) -> Member:
        words = ("red", "green", "blue")
        wrong = ("", "Red", None)
        return Member("c", f"enum({', '.join(words)})", lambda n: words[n % 3], unfit=wrong)

    def _integer(self) -> Member:
        word = self.rng.choice(list(INTEGERS))
        flags, unfit = self._flags()
        top = INTEGERS[word]
        if self.rng.random() < 0.5:
            rule, unfit = "@range(i, 1..1000000)", (*unfit, 0, top)
            return Member("i", f"{word}{flags}", lambda n: n + 1, unfit=unfit, rules=(rule,))
        return Member("i", f"{word}{flags}", lambda n: n + 1, odd=(0, top, top - 1), unfit=unfit)

    def _float(self) -> Member:
        flags, unfit = self._flags()
        word = self.rng.choice(["F32", "F64"])
        odd: tuple[Any, ...] = FLOATS if word == "F64" else FLOATS[:4]
        if self.rng.random() < 0.4:
            rule, wrong = "@range(f, -0.5..)", (*unfit, "NaN", "-Infinity", -0.75, -0.0)
            odd = (0.0, "Infinity")
            return Member("f", f"{word}{flags}", lambda n: n / 8, odd, wrong, (rule,))
        return Member("f", f"{word}{flags}", lambda n: n / 8, odd, (*unfit, -0.0, "NaN"))

    def _time(self) -> Member:
        flags, unfit = self._flags()
        if self.rng.random() < 0.5:
            return Member("t", f"Date{flags}", lambda n: f"20{n % 100:02}-01-02", DAYS, unfit)
        moment = "2024-01-02T03:04:05.{:03}Z"
        return Member("t", f"DateTime{flags}", lambda n: moment.format(n % 1000), MOMENTS, unfit)

    def _other(self) -> Member:
        flags, unfit = self._flags()
        flags = flags.removesuffix(" @unique")
        if self.rng.random() < 0.5:
            return Member("o", f"Bool{flags}", lambda n: n % 2 == 0, unfit=unfit)
        return Member("o", f"Vector(2){flags}", lambda n: [n / 2, 0.0], unfit=unfit)

    # --- rows ----------------------------------------------------------------------------------------------------

    def base(self) -> list[dict[str, Any]]:
        """Records that break no rule: odd values are each there once, and edges are as many as they must be."""
        found = []
        for kind in self.kinds:
            if kind.ends is not None:
                found += self._base_edges(kind)
            else:
                found += [self._record(kind, self._row(kind, place)) for place in range(8)]
        for kind in self.kinds:
            kind.ids, kind.given = kind.given, []
        return found

    def _base_edges(self, kind: Kind) -> list[dict[str, Any]]:
        assert kind.ends is not None
        low = 1 if kind.card is None else max(kind.card[0], 1)
        sources, targets = (end.given for end in kind.ends)
        found = []
        for place in range(3):
            for number in range(low):
                row = self._row(kind, place + 3 * number)
                found.append(self._record(kind, row, sources[place], targets[number]))
        return found

    def _row(self, kind: Kind, place: int | None = None) -> dict[str, Any]:
        """A row with its odd values by place, or one that breaks a rule now and then."""
        self.serial += 1
        row = {}
        for member in kind.members:
            value = member.fitting(self.serial)
            if place is not None and place < len(member.odd):
                value = member.odd[place]
            row[member.name] = value
        if self.rng.random() < self.broken_share:
            member = self.rng.choice(kind.members)
            known = [old[member.name] for old in kind.stored]
            pools = [pool for pool in (member.unfit, member.odd, known) if pool]
            row[member.name] = self.rng.choice(self.rng.choice(pools))
        kind.stored.append(row)
        return row

    def _record(
        self, kind: Kind, row: dict[str, Any], source: str = "", target: str = ""
    ) -> dict[str, Any]:
        if kind.ends is not None:
            made = {} if kind.key else {"id": f"e{self.serial}"}
            kind.given.extend(made.values())
            return {"edge": kind.name, "from": source, "to": target, "data": {**made, **row}}
        made = {} if kind.key else {"id": f"i{self.serial}"}
        kind.given.append(_id_of(kind, row) if kind.key else made["id"])
        return {"type": kind.name, "data": {**made, **row}}

    def batch(self, mode: str) -> list[dict[str, Any]]:
        """Records to load, about a third of which break a rule."""
        self.broken_share = self.rng.choice(BROKEN_SHARES)
        kinds = [k for k in self.kinds if self.rng.random() < 0.7] or self.kinds
        for kind in self.kinds:
            kind.given, kind.replaced = [], kind in kinds and mode == "overwrite"
        return [self._given(kind, mode) for kind in kinds for _ in range(self.rng.randint(4, 10))]

    def _given(self, kind: Kind, mode: str) -> dict[str, Any]:
        rng = self.rng
        row = self._row(kind)
        if kind.ends is not None:
            ends = [
                "nowhere" if rng.random() < self.broken_share / 4 else rng.choice(end.there())
                for end in kind.ends
            ]
            record = self._record(kind, row, *ends)
        else:
            if kind.key and rng.random() < self.broken_share / 2:  # stored, or given before
                row |= {name: rng.choice(kind.stored)[name] for name in kind.key}
            record = self._record(kind, row)
        if not kind.key and mode != "merge" and rng.random() < self.broken_share / 3:
            record["data"]["id"] = rng.choice(kind.ids + kind.given)
        return record


def _id_of(kind: Kind, row: dict[str, Any]) -> str:
    types = {"String": pa.string(), "I64": pa.int64(), "F64": pa.float64(), "F32": pa.float32()}
    declared = {m.name: types[m.declared] for m in kind.members if m.name in kind.key}
    numbers = {"NaN": float("nan"), "Infinity": float("inf")}
    values = [(row[name], declared[name]) for name in kind.key]
    arrays = [
        pa.array([value if kind == pa.string() else numbers.get(value, value)], kind)
        for value, kind in values
    ]
    return key_ids(arrays)[0].as_py() or "nowhere"
