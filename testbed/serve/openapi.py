"""The interface as OpenAPI 3.1."""

from typing import Any


def document() -> dict[str, Any]:
    """The document."""
    return {"openapi": "3.1.0"}
