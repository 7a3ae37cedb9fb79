"""The verbs that change a graph. Each is a function that returns a plan; `graph.py` publishes it.

In the order of control flow:

- `resolve`       what somebody gave to `Changes`: ids, whole rows, new and changed ones; `Changes` to table actions
- `mutate`        the statements of a mutation query
"""
