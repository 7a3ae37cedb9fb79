"""Random schemas: valid ones, and texts that were valid before something happened to them."""

from __future__ import annotations

from hypothesis import strategies as st

NAMES = ("Port", "Vessel", "Crew", "Cargo")
PROPERTIES = ("alpha", "beta", "gamma", "delta", "node", "_x1")
TYPES = {
    "String": '"x\\n"',
    "Bool": "true",
    "I32": "-5",
    "I64": "7",
    "U64": "0",
    "F32": "1.5",
    "F64": "-1e3",
    "Date": '"2025-01-31"',
    "DateTime": '"2025-01-31T10:00:00Z"',
    "[String]": '["a", "b"]',
    "[F64]": "[]",
    "enum(x, y-1, 3d)": "x",
    "Vector(2)": "[0.5, 1]",
    "Blob": None,
}
GAPS = (" ", "\n", "\n\n  ", " // note\n", " /* note */ ", "\t")

gap = st.sampled_from(GAPS)


@st.composite
def property_text(draw: st.DrawFn, name: str) -> str:
    kind = draw(st.sampled_from(sorted(TYPES)))
    words = [f"{name}: {kind}" + draw(st.sampled_from(("", "?")))]
    plain = kind[0] not in "[V" and kind != "Blob"
    if plain and draw(st.booleans()):
        words.append(draw(st.sampled_from(("@unique", "@index"))))
    if TYPES[kind] is not None and draw(st.booleans()):
        words.append(f"@default({TYPES[kind]})")
    if draw(st.booleans()):
        words.append(draw(st.sampled_from(('@description("d")', "@pii", "@unit(kg, base=1.5)"))))
    return draw(gap).join(words)


@st.composite
def body_text(draw: st.DrawFn) -> str:
    names = draw(st.lists(st.sampled_from(PROPERTIES), unique=True, max_size=4))
    members = [draw(property_text(name)) for name in names]
    if len(names) > 1 and draw(st.booleans()):
        members.append(f"@index({', '.join(names[:2])})" if not _blob(members[:2]) else "")
    separator = draw(gap)
    return "{" + separator + (separator or " ").join(members) + draw(gap) + "}"


def _blob(members: list[str]) -> bool:
    return any("Blob" in member for member in members)


@st.composite
def schema_texts(draw: st.DrawFn) -> str:
    """A valid schema, with comments and white space anywhere."""
    nodes = draw(st.lists(st.sampled_from(NAMES), unique=True, min_size=1))
    parts = [draw(gap)]
    for name in nodes:
        header = draw(st.sampled_from(("", ' @description("a")', " @hot(1)")))
        parts.append(f"node {name}{header} {draw(body_text())}")
    for number in range(draw(st.integers(0, 3))):
        ends = draw(st.tuples(st.sampled_from(nodes), st.sampled_from(nodes)))
        card = draw(st.sampled_from(("", " @card(0..1)", " @card(1..*)")))
        body = draw(st.one_of(st.just(""), body_text()))
        parts.append(f"edge E{number}: {ends[0]} -> {ends[1]}{card} {body}")
    return draw(st.sampled_from(("\n", "\n\n", " /* between */ "))).join(parts)


@st.composite
def broken_texts(draw: st.DrawFn) -> str:
    """A schema to which something happened."""
    text = draw(schema_texts())
    pieces = [
        "",
        "{",
        "}",
        "(",
        ")",
        '"',
        "@",
        "node",
        "1e5",
        "é",
        "//",
        "/*",
        "..",
        "->",
        "\\",
        "?",
    ]
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(text)))
        length = draw(st.integers(0, 6))
        text = text[:at] + draw(st.sampled_from(pieces)) + text[at + length :]
    return text
