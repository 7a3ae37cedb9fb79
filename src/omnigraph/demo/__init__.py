"""A tour of omnigraph in under a minute: a small world of scholars, made up but always the same.

- `world`  the world: its schema, and files with its nodes and edges
- `tour`   what is done with it, step by step, each with its time
"""

from __future__ import annotations

from omnigraph.demo.tour import STEPS, Step, Tour

__all__ = ["STEPS", "Step", "Tour"]
