"""The repository, the source distribution and the wheel stay light."""

from __future__ import annotations

import pytest

from tests.sizes import LIMITS, ROOT, build, tracked_bytes, tracked_files, zipped_wheel

pytestmark = pytest.mark.skipif(not (ROOT / ".git").exists(), reason="this is no clone: git tracks nothing here")


def test_the_tracked_files_are_within_their_limit() -> None:
    assert tracked_bytes() <= LIMITS["tracked files"]


def test_the_source_distribution_is_within_its_limit() -> None:
    assert build("sdist") <= LIMITS["sdist"]


def test_what_a_wheel_holds_is_within_its_limit() -> None:
    assert zipped_wheel() <= LIMITS["wheel"]


def test_pictures_are_saved_well_and_weights_are_not_kept_but_for_one_twin() -> None:
    tracked = {path.relative_to(ROOT).as_posix(): path.stat().st_size for path in tracked_files()}
    assert not [name for name, size in tracked.items() if name.endswith((".png", ".svg", ".jpg")) and size > 200_000]
    assert len([name for name in tracked if name.startswith("docs/") and name.endswith("best.safetensors")]) <= 1


def test_the_command_prints_the_three_sizes_and_fails_where_one_is_passed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import tests.sizes

    monkeypatch.setattr(tests.sizes, "build", {"sdist": 4_000_000, "wheel": 3_000_001}.__getitem__)
    with pytest.raises(SystemExit) as ended:
        tests.sizes.main()
    printed = capsys.readouterr().out
    assert printed.count(" bytes, at most ") == 3
    assert "wheel            3,000,001 bytes, at most 3,000,000\n" in printed
    assert ended.value.code == 1
