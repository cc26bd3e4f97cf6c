"""Asking for a fit by emdi that is refused."""

from __future__ import annotations

import pytest

from pybridge.errors import InputError


def refused(code, call, *arguments, **more):
    with pytest.raises(InputError) as caught:
        call(*arguments, **more)
    assert caught.value.code == code, str(caught.value)
    assert caught.value.field is not None and caught.value.expected is not None
    return caught.value
