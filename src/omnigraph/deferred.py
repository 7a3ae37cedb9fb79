"""Modules that are imported on first use."""

from __future__ import annotations

from importlib import import_module
from typing import Any


class Deferred:
    """Stands for a module that few callers need and that takes long to import.

    The import lock makes it safe among threads. Type checkers are shown the module itself:

        if TYPE_CHECKING:
            from omnigraph import operations
        else:
            operations = Deferred("omnigraph.operations")
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(import_module(self._name), attribute)
