"""The file with the token: what is wrong with it is said with the command that mends it."""

from pathlib import Path

import pytest

from everstep.domain.errors import EverstepError
from everstep.doors.token_file import read_token


def test_a_token_is_read_and_none_is_none(tmp_path: Path) -> None:
    file = tmp_path / "token"
    assert read_token(file) is None
    file.touch(0o600)
    file.write_text("es_abc\n")
    assert read_token(file) == "es_abc"


@pytest.mark.parametrize(
    ("content", "mode", "said", "mended_by"),
    [
        (b"es_abc", 0o644, "others can read", "chmod 600"),
        (b"hello", 0o600, "holds no token", "rm "),
        (b"", 0o600, "holds no token", "rm "),
        ("es_\u00e4".encode(), 0o600, "cannot read", "rm "),
    ],
    ids=["open to others", "something else", "empty", "no ASCII"],
)
def test_a_bad_file_is_named(tmp_path: Path, content: bytes, mode: int, said: str, mended_by: str) -> None:
    file = tmp_path / "token"
    file.touch(mode)
    file.write_bytes(content)
    with pytest.raises(EverstepError, match=said) as caught:
        read_token(file)
    assert mended_by in str(caught.value.what_to_do)


def test_a_folder_is_not_to_be_removed(tmp_path: Path) -> None:
    with pytest.raises(EverstepError, match="is a folder") as caught:
        read_token(tmp_path)
    assert "rm" not in str(caught.value.what_to_do)
