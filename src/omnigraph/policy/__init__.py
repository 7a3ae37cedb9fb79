"""Who may do what: rules in, a decision out. Nothing here knows HTTP, and nothing here reads rows.

In the order of control flow:

- `questions`  questions (actor, action, graph, branches, load mode, type) and decisions
- `bundle`     rules as people write them, in YAML
- `cedar`      rules as Cedar policies, and the decision: anything not explicitly allowed is denied
- `guard`      the one place that enforces: `guarded.py` calls it before every verb of a graph
- `subjects`   which types a query reads and which a write changes
- `cases`      expectations about decisions, kept beside the rules and run by `omnigraph policy test`
"""
