import pytest

from dphist.errors import InputError
from dphist.extras import need


def test_a_missing_library_is_missed_by_name_and_extra():
    with pytest.raises(InputError, match=r"no_such_library.*dphist\[frames\]"):
        need("no_such_library", "frames")


def test_a_present_one_is_handed_over():
    assert need("json", "frames").loads("1") == 1
