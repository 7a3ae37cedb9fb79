"""placeholder"""


def plant_for_ever(bug: str) -> None:
    raise AssertionError(bug)
