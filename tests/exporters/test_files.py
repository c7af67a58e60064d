"""files: whole or not at all."""

import os

import pytest

from trainmon_exporters.files import check_writable, write_whole
from trainmon_rules.errors import BadOutput


def test_the_old_content_stands_if_the_new_can_not_be_written(tmp_path):
    path = tmp_path / "report"
    path.write_text("old")
    (tmp_path / f".report.{os.getpid()}.tmp").mkdir()  # in the way of the draft
    with pytest.raises(BadOutput, match="report: can't be written: "):
        write_whole(path, b"new")
    assert path.read_text() == "old"


def test_no_draft_is_left(tmp_path):
    target = tmp_path / "folder"
    target.mkdir()
    (target / "x").write_text("")
    with pytest.raises(BadOutput):
        write_whole(target, b"new")
    write_whole(tmp_path / "report", b"new")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["folder", "report"]


def test_a_new_file_has_the_usual_rights(tmp_path):
    before = os.umask(0o027)
    try:
        write_whole(tmp_path / "report", b"new")
    finally:
        os.umask(before)
    assert (tmp_path / "report").stat().st_mode & 0o777 == 0o640


def test_a_link_to_nothing_yet_is_followed(tmp_path):
    (tmp_path / "link").symlink_to("real")
    check_writable(tmp_path / "link")
    write_whole(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"new"


@pytest.mark.parametrize(("name", "why"), [(".", "is a directory"), ("no/report", "its directory does not exist")])
def test_what_can_not_be_written_is_said_before_the_work(tmp_path, name, why):
    with pytest.raises(BadOutput, match=why):
        check_writable(tmp_path / name)
