"""Programs from seeds: every step is drawn with the model alone, so that most of them mean something."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from tests.system import schema, values
from tests.system.merging import Decided
from tests.system.model import MAIN, Model
from tests.system.policy import ACTORS
from tests.system.schema import Edit, Ident, Impossible, Prop, State, Type

Step = Mapping[str, Any]
BRANCHES = (MAIN, "b1", "b2", "Köln")
TAGS = ("t1", "t2")
NODES, EDGES = ("Person", "Team", "Item"), ("Likes", "Owns")
NAMES = ("a", "b", "m", "z", "aa")
KEYS: dict[str, tuple[Any, ...]] = {
    "String": ("k1", "k2", "k3", "k\u00e9", "ke\u0301", "\U0001f600", ""),
    "I64": (1, 2, 3, -(2**63)),
    "I32": (1, 2, 3),
}
WORDS = ("x", "y", "w")
REFUSED_SHARE, REFUSED_SCHEMA_SHARE = 0.3, 0.6
GUARDED_SHARE = 0.25
KEYED_SHARE = 0.15
KEYED = ("load", "mutate", "block")
SERVED = (
    *KEYED,
    "schema",
    "create_branch",
    "delete_branch",
    "tag",
    "delete_tag",
    "merge",
    "revert",
    "cherry_pick",
    "reset",
    "look",
)
READS = ("rows", "entity", "diff", "changes", "history", "log", "count")


@dataclass(frozen=True, slots=True)
class Program:
    """A graph to begin with, and what is done to it."""

    seed: int
    start: State
    steps: tuple[Step, ...]
    disk: bool = False


def program(seed: int, length: int = 40) -> Program:
    """The program of a seed."""
    random = Random(seed)
    start = _start(random)
    maker = Maker(random, Model(start))
    steps = [maker.step(str(number)) for number in range(1, length + 1)]
    return Program(seed, start, tuple(steps), disk=seed % 4 == 3)


def _start(random: Random) -> State:
    state = State()
    for name in random.sample(NODES, random.choice((1, 2, 2, 3))):
        state = schema.edited(state, _new_node(random, name))
        kind = state.called(name)
        free = [p.name for p in kind.props.values() if p.type in ("I32", "I64")]
        free = [name for name in free if name not in kind.key_names()]
        if free and random.random() < 0.6:
            state = schema.edited(state, ("group", name, "uniques", (free[0],), True))
    for name in random.sample(EDGES, random.choice((0, 1, 1, 2))):
        state = schema.edited(state, _new_edge(random, name, state))
    return state


def _new_node(random: Random, name: str) -> Edit:
    style = random.choice(("String", "String", "I64", "I32", "none", "two"))
    props = [_new_property(random, n) for n in random.sample(NAMES, random.choice((1, 2, 3)))]
    if random.random() < 0.25:
        props += [("note", "String", True), ("vec", "Vector(2)", True, (), None, "note")]
    match style:
        case "none":
            return "add_type", name, tuple(props), None
        case "two":
            props += [("k", "String", False), ("l", "I64", False)]
            return "add_type", name, tuple(props), ("k", "l")
        case _:
            return "add_type", name, (*props, ("k", style, False)), ("k",)


def _new_edge(random: Random, name: str, state: State) -> Edit:
    nodes = [kind.name for kind in state.types.values() if not kind.is_edge]
    props = tuple(_new_property(random, n) for n in random.sample(NAMES, random.choice((0, 1, 2))))
    key = ("src", "dst") if random.random() < 0.6 else None
    ends = random.choice(nodes), random.choice(nodes)
    return "add_type", name, props, key, ends, random.choice((None, 1, 2))


def _new_property(random: Random, name: str) -> tuple[Any, ...]:
    if random.random() < 0.15:
        return name, "enum", True, WORDS[:2], random.choice((None, "x"))
    kind = random.choice(
        (*values.PLAIN, *values.PLAIN, *(t for t in values.TYPES if t != "Vector(2)"))
    )
    default = None
    if kind in ("I32", "I64", "String", "Bool") and random.random() < 0.35:
        default = random.choice(
            {"String": ("d", "e\u0301", ""), "Bool": (True, False)}.get(kind, (5, 0))
        )
    nullable = random.random() < 0.8 or (default is None and kind == "Blob")
    return name, kind, nullable, (), default


class Maker:
    """Draws one step after the other and does it to the model, so that the next one knows what is there."""

    def __init__(self, random: Random, model: Model) -> None:
        self.random = random
        self.model = model
        self.keyed: list[dict[str, Any]] = []

    def step(self, label: str) -> Step:
        for _ in range(30):
            verb = self.random.choices(tuple(WEIGHTS), tuple(WEIGHTS.values()))[0]
            try:
                step = {"verb": verb, "label": label, **getattr(self, verb)()}
                step = self._keyed(step) if verb in KEYED else step
                step |= self._door(verb)
                if self._is_worth_it(step):
                    if step.get("key"):
                        self.keyed.append(step)
                    return step
            except (Impossible, IndexError):
                continue
        return {"verb": "look", "label": label, "read": "rows", "at": MAIN, "way": "query"}

    def _keyed(self, step: dict[str, Any]) -> dict[str, Any]:
        """Now and then under an idempotency key: a new one, one that was used for this before, or for another."""
        if self.random.random() > KEYED_SHARE or "if_commit" in step or "dry" in step:
            return step
        if not self.keyed or self.random.random() < 0.5:
            return step | {"key": self.random.choice(("k:1", "k2", "1"))}
        earlier = self.random.choice(self.keyed)
        if self.random.random() < 0.6:
            return dict(earlier) | {"label": step["label"]}
        return step | {"key": earlier["key"]}

    def _door(self, verb: str) -> dict[str, Any]:
        """Through which door, and as whom."""
        if verb not in SERVED or self.random.random() > GUARDED_SHARE:
            return {}
        door: dict[str, Any] = {"door": self.random.choice(("server", "server", "guarded"))}
        door["actor"] = self.random.choice(("root", "root", "root", *ACTORS))
        if self.random.random() < 0.3:
            door["decomposed"] = True  # names are spelled in another form of the same text
        return door

    def _is_worth_it(self, step: Step) -> bool:
        """Do it to the model. Most steps that are refused are drawn again."""
        if step["verb"] == "look":
            return self.model.point(step["at"]) is not None
        share = REFUSED_SCHEMA_SHARE if step["verb"] == "schema" else REFUSED_SHARE
        return self.model.do(step).error is None or self.random.random() < share

    # --- places ------------------------------------------------------------------------------------------------------

    def branch(self) -> str:
        return self.random.choice(tuple(self.model.heads))

    def commit(self) -> str:
        labels = [c.label for c in self.model.commits.values() if c.kept and c.parents]
        return self.random.choice(labels[-8:] if self.random.random() < 0.7 else labels)

    def at(self) -> str:
        choice = self.random.random()
        if choice < 0.35:
            return self.branch()
        if choice < 0.5 and self.model.tags:
            return self.random.choice(tuple(self.model.tags))
        return self.random.choice([c.label for c in self.model.commits.values() if c.kept])

    def kind(self, state: State, *, edges: bool | None = None) -> Type:
        kinds = [k for k in state.types.values() if edges is None or k.is_edge == edges]
        return self.random.choice(kinds)

    # --- rows --------------------------------------------------------------------------------------------------------

    def load(self) -> dict[str, Any]:
        branch = self.branch()
        mode = self.random.choice(("merge", "merge", "merge", "append", "overwrite"))
        shape = self.random.choice(("rows", "rows", "records", "arrow", "file"))
        return {"branch": branch, "mode": mode, "rows": self._input(branch), "shape": shape}

    def _input(self, branch: str) -> dict[str, list[dict[str, Any]]]:
        state = self.model.state(branch)
        kinds = self.random.sample(
            list(state.types.values()), min(len(state.types), self.random.choice((1, 1, 2)))
        )
        rows: dict[str, list[dict[str, Any]]] = {}
        fresh: dict[Any, list[str]] = {}
        for kind in sorted(kinds, key=lambda k: k.is_edge):
            rows[kind.name] = [
                self.row(state, kind, fresh) for _ in range(self.random.choice((1, 1, 2, 3)))
            ]
        return rows

    def row(
        self, state: State, kind: Type, fresh: dict[Any, list[str]], *, ids: bool = True
    ) -> dict[str, Any]:
        row: dict[str, Any] = {}
        if kind.ends:
            row["from"], row["to"] = (self._end(state, end) for end in kind.ends)
        if kind.key is None and ids and self.random.random() < 0.7:
            row["id"] = self.random.choice(("n1", "n2", "n3"))
        for prop in kind.props.values():
            if prop.ident in (kind.key or ()):
                row[prop.name] = self.random.choice(KEYS.get(prop.type, values.POOLS[prop.type]))
            elif self.random.random() < (
                0.6 if prop.nullable or prop.default is not None else 0.97
            ):
                row[prop.name] = self.value(kind, prop)
        return row

    def _end(self, state: State, node: Ident) -> str:
        known = list(state.rows.get(node, {}))
        return self.random.choice(known) if known and self.random.random() < 0.95 else "nobody"

    def value(self, kind: Type, prop: Prop) -> Any:
        if self.random.random() < (0.2 if prop.nullable else 0.08):
            return None
        if prop.ident in kind.ranges and self.random.random() < 0.9:
            low, high = kind.ranges[prop.ident]
            bounds = [n for n in (low, high, 1) if n is not None]
            number = self.random.choice([n for n in bounds if values.fits(n, prop.type)])
            return float(number) if prop.type in ("F64", "F32") else number
        return values.draw(
            self.random, prop.type, (*prop.enum, "v") if self.random.random() < 0.4 else prop.enum
        )

    def mutate(self) -> dict[str, Any]:
        branch = self.branch()
        found: dict[str, Any] = {"branch": branch, "statements": self._statements(branch)}
        if self.random.random() < 0.08:
            found["if_commit"] = self.random.choice((branch, self.branch()))
        if self.random.random() < 0.05:
            found["dry"] = True
        return found

    def _statements(self, branch: str) -> list[tuple[Any, ...]]:
        state = self.model.state(branch)
        count = self.random.choice((1, 1, 1, 2))
        if self.random.random() < 0.3:
            return [self._delete(state) for _ in range(count)]
        return [
            self.random.choice((self._insert, self._update, self._update))(state)
            for _ in range(count)
        ]

    def _insert(self, state: State) -> tuple[Any, ...]:
        kind = self.kind(state)
        rows = [self.row(state, kind, {}, ids=False) for _ in range(self.random.choice((1, 1, 2)))]
        needed = [p for p in kind.props.values() if not p.nullable and p.default is None]
        for row in rows:
            for prop in needed:
                row.setdefault(prop.name, values.draw(self.random, prop.type, prop.enum))
        if not all(rows):
            raise Impossible("an insert names something")
        return "insert", kind.name, rows

    def _update(self, state: State) -> tuple[Any, ...]:
        kind = self.kind(state)
        free = [p for p in kind.props.values() if p.ident not in (kind.key or ())]
        chosen = self.random.sample(free, min(len(free), self.random.choice((1, 1, 2))))
        given = {p.name: self.value(kind, p) for p in chosen}
        if not given:
            raise Impossible("an update changes something")
        return "update", kind.name, given, self._where(state, kind)

    def _delete(self, state: State) -> tuple[Any, ...]:
        kind = self.kind(state)
        return "delete", kind.name, self._where(state, kind)

    def _where(self, state: State, kind: Type) -> tuple[Any, ...]:
        rows = state.of(kind)
        if rows and self.random.random() < 0.7:
            return "id", "=", self.random.choice(tuple(rows))
        if kind.is_edge and rows and self.random.random() < 0.5:
            row = self.random.choice(tuple(rows.values()))
            return self.random.choice((("from", "=", row["src"]), ("to", "=", row["dst"])))
        prop = self.random.choice([p for p in kind.props.values() if p.type in values.PLAIN])
        if self.random.random() < 0.3 and prop.nullable:
            return prop.name, "is null", None
        return prop.name, self.random.choice(("=", "!=", ">")), values.draw(self.random, prop.type)

    def block(self) -> dict[str, Any]:
        branch = self.branch()
        parts: list[tuple[Any, ...]] = []
        for _ in range(self.random.choice((1, 2, 2))):
            if self.random.random() < 0.5:
                parts.append(("load", self.random.choice(("merge", "append")), self._input(branch)))
            else:
                parts.append(("mutate", self._statements(branch)))
        return {"branch": branch, "parts": parts}

    # --- schemas -----------------------------------------------------------------------------------------------------

    def schema(self) -> dict[str, Any]:
        branch = self.branch()
        state = self.model.state(branch)
        names = tuple(EDIT_WEIGHTS)
        verb = self.random.choices(names, tuple(EDIT_WEIGHTS.values()))[0]
        found: dict[str, Any] = {"branch": branch, "edits": [self._edit(verb, state)]}
        return found

    def _edit(self, verb: str, state: State) -> Edit:
        random = self.random
        if verb == "add_type":
            if random.random() < 0.5:
                return _new_edge(random, random.choice(EDGES), state)
            return _new_node(random, random.choice(NODES))
        kind = self.kind(state)
        if verb == "drop_type":
            return verb, kind.name
        if verb == "rename_type":
            return verb, kind.name, random.choice(EDGES if kind.is_edge else NODES)
        if verb == "add_property":
            left = sorted(
                set(kind.left) - set(kind.names())
            )  # a name that is taken up again is somebody else
            known = left and random.random() < 0.6
            return verb, kind.name, *_new_property(random, random.choice(left if known else NAMES))
        if verb == "most":
            return verb, kind.name, random.choice((None, 1, 2))
        prop = random.choice(tuple(kind.props.values()))
        return self._property_edit(verb, kind, prop)

    def _property_edit(self, verb: str, kind: Type, prop: Prop) -> Edit:
        random = self.random
        rest: tuple[Any, ...] = ()
        match verb:
            case "rename_property":
                rest = (random.choice(NAMES),)
            case "retype":
                wider = sorted(b for a, b in values.WIDENINGS if a == prop.type)
                rest = (
                    random.choice(wider if wider and random.random() < 0.85 else ("I64", "String")),
                )
            case "nullable":
                rest = (not prop.nullable,)
            case "extend":
                rest = (random.choice((WORDS, WORDS[:2], WORDS[:1])),)
            case "default":
                if prop.type not in ("I32", "I64", "String") or prop.ident in kind.ranges:
                    raise Impossible("no default of this type")
                rest = (random.choice(("q", "", None) if prop.type == "String" else (9, 0, None)),)
            case "group":
                plain = prop.type in ("String", "I32", "I64")
                names = ("src", "dst") if kind.is_edge and random.random() < 0.4 else (prop.name,)
                if not plain and names != ("src", "dst"):
                    raise Impossible("no group of this type")
                rule = random.choice(("uniques", "indices"))
                group = frozenset(kind.field(n) for n in names)
                return "group", kind.name, rule, names, group not in getattr(kind, rule)
            case "range":
                rest = random.choice(((0, 7), (None, 2**31 - 1), (-1, None), (None, None)))
        return verb, kind.name, prop.name, *rest

    # --- names and histories -----------------------------------------------------------------------------------------

    def create_branch(self) -> dict[str, Any]:
        return {
            "name": self.random.choice(BRANCHES),
            "from_": self.branch() if self.random.random() < 0.7 else self.at(),
        }

    def delete_branch(self) -> dict[str, Any]:
        return {"name": self.random.choice(BRANCHES)}

    def tag(self) -> dict[str, Any]:
        return {"name": self.random.choice(TAGS), "at": self.at()}

    def delete_tag(self) -> dict[str, Any]:
        return {"name": self.random.choice(TAGS)}

    def merge(self) -> dict[str, Any]:
        if len(self.model.heads) < 2:
            raise Impossible("there is nothing to merge")
        source, into = self.random.sample(tuple(self.model.heads), 2)
        found: dict[str, Any] = {"source": source, "into": into}
        return found | self._decisions(lambda d: self._conflicts(source, into))

    def _conflicts(self, source: str, into: str) -> Sequence[Any]:
        ours, theirs = self.model.head(into), self.model.head(source)
        base = self.model.base(ours, theirs)
        from tests.system import merging

        return sorted(merging.merge(base.state, ours.state, theirs.state).conflicts, key=repr)

    def _decisions(self, conflicts: Callable[[None], Sequence[Any]]) -> dict[str, Any]:
        choice = self.random.random()
        if choice < 0.25:
            return {"decided": Decided(self.random.choice(("ours", "theirs")))}
        if choice < 0.4:
            rows = {}
            for word, kind, id, name in conflicts(None):
                if id is not None and word != "schema_conflict":
                    rows[kind, id, name] = self.random.choice(("ours", "theirs"))
            return {"decided": Decided(None, rows)} if rows else {}
        return {"dry": True} if choice < 0.5 else {}

    def revert(self) -> dict[str, Any]:
        return {"commit": self.commit(), "branch": self.branch(), **self._decisions(lambda d: ())}

    def cherry_pick(self) -> dict[str, Any]:
        return {"commit": self.commit(), "branch": self.branch(), **self._decisions(lambda d: ())}

    def reset(self) -> dict[str, Any]:
        return {"to": self.at(), "branch": self.branch()}

    # --- order -------------------------------------------------------------------------------------------------------

    def optimize(self) -> dict[str, Any]:
        return {"branch": self.branch()}

    def cleanup(self) -> dict[str, Any]:
        return {"keep": self.random.choice((1, 2, 4))}

    def reopen(self) -> dict[str, Any]:
        return {}

    def clone(self) -> dict[str, Any]:
        return {}

    # --- reads -------------------------------------------------------------------------------------------------------

    def look(self) -> dict[str, Any]:
        found: dict[str, Any] = {"read": self.random.choice(READS), "at": self.at()}
        match found["read"]:
            case "rows":
                found["way"] = self.random.choices(
                    ("query", "tables", "export", "fresh"), (5, 3, 1, 1)
                )[0]
            case "diff":
                found["to"] = self.at()
            case "entity" | "history":
                state = self.model.point(found["at"]).state
                kind = self.kind(state)
                found |= {"type": kind.name, "id": self.random.choice(tuple(state.of(kind)))}
        return found


WEIGHTS = {
    "load": 20,
    "mutate": 24,
    "block": 4,
    "schema": 16,
    "create_branch": 7,
    "delete_branch": 2,
    "tag": 2,
    "delete_tag": 1,
    "merge": 14,
    "revert": 6,
    "cherry_pick": 5,
    "reset": 2,
    "optimize": 1,
    "cleanup": 1,
    "reopen": 1,
    "clone": 0.3,
    "look": 30,
}
EDIT_WEIGHTS = {
    "add_property": 6,
    "drop_property": 5,
    "rename_property": 4,
    "retype": 3,
    "add_type": 2,
    "drop_type": 1,
    "rename_type": 1,
    "nullable": 1,
    "extend": 1,
    "default": 1,
    "group": 4,
    "range": 2,
    "most": 2,
}
