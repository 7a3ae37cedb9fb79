"""Schemas as somebody would write them who asks for a change that is not supported."""

from __future__ import annotations

from dataclasses import replace

from tests.system.schema import Edit, Impossible, Prop, State, _with_new


def forced(state: State, edit: Edit) -> State:
    """The schema an unsupported edit would lead to; its rows mean nothing."""
    verb, type_name, name, *rest = edit
    kind = state.called(type_name)
    if verb == "add_property":
        return state.with_type(_with_new(kind, name, *rest))
    prop: Prop = kind.called(name)
    match verb:
        case "retype":
            prop = replace(prop, type=rest[0], enum=())
        case "nullable":
            prop = replace(prop, nullable=rest[0])
        case "extend":
            prop = replace(prop, enum=tuple(sorted(rest[0])))
        case _:
            raise Impossible(verb)
    return state.with_type(replace(kind, props={**kind.props, prop.ident: prop}))
