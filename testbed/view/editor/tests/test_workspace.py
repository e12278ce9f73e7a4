"""The editor's files: nothing outside of its folder is read or written, and a write that fails leaves the old file."""

import os
import resource
import stat
from pathlib import Path

import pytest

from testbed.errors import UsageError
from testbed.view.editor.workspace import Workspace


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    (tmp_path / "space" / "inner").mkdir(parents=True)
    (tmp_path / "secret.toml").write_text("secret = 1\n")
    (tmp_path / "space" / "link.toml").symlink_to(tmp_path / "secret.toml")
    (tmp_path / "space" / "out").symlink_to(tmp_path)
    os.mkfifo(tmp_path / "space" / "pipe.toml")
    return Workspace(tmp_path / "space")


@pytest.mark.parametrize(
    "name",
    [
        "../secret.toml", "/etc/passwd", "/tmp/x.toml", "a/../../secret.toml", "inner/../x.toml", "./x.toml", "x", "x.txt", "",
        ".hidden.toml", "a b.toml", "<img src=x>.toml", "x\n.toml", "x\0.toml", "a//b.toml", "-rf.toml", None, 3, ["x.toml"],
        "x" * 200 + ".toml", "/".join("a" * 9) + ".toml", "ü.toml", "..toml",
    ],
)  # fmt: skip
def test_a_name_that_is_no_plain_path_below_the_folder_is_refused(workspace, name):
    with pytest.raises(UsageError) as refused:
        workspace.scenario(name)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("name", ["link.toml", "out/secret.toml", "pipe.toml", "missing/x.toml"])
def test_links_and_pipes_are_neither_read_nor_replaced(workspace, name):
    name = workspace.scenario(name)
    for act in (lambda: workspace.read(name), lambda: workspace.write(name, "x = 1\n"), lambda: workspace.remove(name)):
        with pytest.raises(UsageError):
            act()
    assert (workspace.folder.parent / "secret.toml").read_text() == "secret = 1\n"


def test_a_written_file_keeps_its_mode_and_owner(workspace):
    workspace.write("inner/x.toml", "a = 1\n")
    path = workspace.folder / "inner" / "x.toml"
    path.chmod(0o640)
    if os.geteuid() == 0:
        os.chown(path, 1234, 1234)
    workspace.write("inner/x.toml", "a = 2\n")
    assert path.read_text() == "a = 2\n" and stat.S_IMODE(path.stat().st_mode) == 0o640
    assert os.geteuid() != 0 or path.stat().st_uid == 1234
    assert [entry.name for entry in path.parent.iterdir()] == ["x.toml"], "a temporary file is left"


def test_a_full_disk_leaves_the_old_file_and_is_one_line(workspace):
    workspace.write("x.toml", "a = 1\n")
    pid = os.fork()
    if pid == 0:  # a limit of the size of files: the kernel refuses the write as a full disk does
        import signal

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
        try:
            workspace.write("x.toml", "b = 2 # " + "x" * 10_000 + "\n")
        except UsageError as problem:
            os._exit(0 if "was not written" in str(problem) and "\n" not in str(problem) else 1)
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert (workspace.folder / "x.toml").read_text() == "a = 1\n"
    assert not [entry for entry in workspace.folder.iterdir() if entry.name.endswith(".new")]
