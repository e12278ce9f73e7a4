"""The error line that a user would see, for tests of refused input."""

from collections.abc import Callable

import pytest

from testbed.errors import UsageError


def message(load: Callable, *arguments, **request) -> str:
    """The error of `load(*arguments, **request)`, which must be one, and of one line."""
    with pytest.raises(UsageError) as caught:
        load(*arguments, **request)
    assert "\n" not in str(caught.value)
    return str(caught.value)
