"""Numbers as tables, lines and pages show them: digits, no powers of ten."""


def rounded(value: float | None, sign: str = "") -> str:
    """A number with three digits or more; empty for None. `sign` "+": also positive ones have a sign."""
    if value is None:
        return ""
    return f"{value:{sign}.0f}" if abs(value) >= 100 else f"{value:{sign}.3g}"


def exact(value: object) -> str:
    """The value of a key, such as that of an axis, as a user writes it: 2000000, 0.5."""
    return f"{value:.12g}" if isinstance(value, int | float) and not isinstance(value, bool) else str(value)
