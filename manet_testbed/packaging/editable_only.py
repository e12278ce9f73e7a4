"""The build backend (PEP 517, PEP 660): setuptools, for editable installs alone.

A mesh runs in processes of the checkout, with its libraries and what setup.sh has built. A wheel holds none of them: it would
install, and its first use fail.
"""

from typing import Any, NoReturn

from setuptools.build_meta import (  # type: ignore[import-untyped]
    build_editable,
    get_requires_for_build_editable,
    prepare_metadata_for_build_editable,
)

__all__ = [
    "build_editable", "build_sdist", "build_wheel", "get_requires_for_build_editable", "get_requires_for_build_sdist",
    "get_requires_for_build_wheel", "prepare_metadata_for_build_editable",
]  # fmt: skip


def get_requires_for_build_wheel(_settings: Any = None) -> NoReturn:
    """The first hook of a wheel: refused, before anything is downloaded."""
    raise SystemExit(
        "manet-testbed: a wheel holds only a part of the testbed, which runs from its checkout; "
        "install it with: pip install --editable CHECKOUT, after CHECKOUT/setup.sh"
    )


def build_wheel(_folder: str, _settings: Any = None, _metadata: str | None = None) -> NoReturn:
    """Refused."""
    get_requires_for_build_wheel()


def get_requires_for_build_sdist(_settings: Any = None) -> NoReturn:
    """Refused: a wheel would be built of it."""
    get_requires_for_build_wheel()


def build_sdist(_folder: str, _settings: Any = None) -> NoReturn:
    """Refused."""
    get_requires_for_build_wheel()
