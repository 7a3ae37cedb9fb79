"""Who may do what: rules in, a decision out. Nothing here knows HTTP, and nothing here reads rows.

In the order of control flow:

- `questions`  what is asked (actor, action, graph, branches, load mode, type) and what is answered
- `bundle`     rules as people write them, in YAML
- `cedar`      rules as Cedar policies, and the decision: whatever is not clearly allowed is denied
- `guard`      the one place that enforces: `guarded.py` asks it before every verb of a graph
- `subjects`   which types a query reads and which a write changes
- `cases`      expectations about decisions, kept beside the rules and run by `omnigraph policy test`
"""
