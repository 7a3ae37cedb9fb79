"""Graphs as released versions wrote them, one per storage format. Every later version must open them.

`make` writes the one of the present format; it is run once per release of a format and its output is kept for ever.
"""
