"""A tour of omnigraph in a minute: a small world of scholars, made up but always the same.

- `world`  the world: its schema, and files with its nodes and edges
- `tour`   the story: command lines, each with an explanation
"""
