from __future__ import annotations

import pytest

from dabnet.errors import InputError
from dabnet.sketches.catalog import CATALOG, find_data_set, quickdraw_classes


def test_every_data_set_says_how_to_get_it() -> None:
    for name, entry in CATALOG.items():
        assert find_data_set(name) is entry
        assert entry.home.startswith("https://")
        assert entry.licence
        ways = [bool(entry.files), bool(entry.class_url), bool(entry.instructions)]
        assert sum(ways) == 1
        assert all(file.url.startswith("https://") and file.url.endswith(file.name) for file in entry.files)


def test_every_class_of_quickdraw_has_a_file_of_its_own() -> None:
    names = quickdraw_classes()
    files = CATALOG["quickdraw"].files_for(names)
    assert len(names) == CATALOG["quickdraw"].classes == len({file.url for file in files}) == 345
    assert all(file.url.isascii() and " " not in file.url for file in files)
    assert len(CATALOG["quickdraw"].files_for(["cat", "cat"])) == 1


def test_a_misspelt_name_brings_the_nearest() -> None:
    with pytest.raises(InputError, match="Did you mean 'tuberlin'"):
        find_data_set("tu-berlin")
    with pytest.raises(InputError, match="Did you mean 'giraffe'"):
        CATALOG["quickdraw"].files_for(["girafe"])


def test_all_of_quickdraw_is_not_fetched_by_accident() -> None:
    with pytest.raises(InputError, match="about 22 GB"):
        CATALOG["quickdraw"].files_for()
    with pytest.raises(InputError, match="as a whole"):
        CATALOG["tuberlin"].files_for(["cat"])
