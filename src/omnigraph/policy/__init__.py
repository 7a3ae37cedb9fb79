"""Who may do what: rules in, a decision out. Nothing here knows HTTP, and nothing here reads a graph.

In the order of control flow:

- `questions`  what is asked (actor, action, graph, branches, load mode) and what is answered
- `bundle`     rules as people write them, in YAML
- `cedar`      rules as Cedar policies, and the decision: whatever is not clearly allowed is denied
- `cases`      expectations about decisions, kept beside the rules and run by `omnigraph policy test`
"""
