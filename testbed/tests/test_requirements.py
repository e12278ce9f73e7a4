"""A machine that cannot run scenarios gets an error before anything is started."""

from pathlib import Path

import pytest

from testbed.errors import UsageError
from testbed.host import privileges
from testbed.host.requirements import require_capture, require_for_runs
from testbed.programs import Programs


@pytest.fixture
def machine(tmp_path: Path) -> dict:
    """A machine that has everything, made of empty files."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for tool in ("mnexec", "ifconfig", "unshare", "ip", "iperf3", "bash"):
        (tools / tool).write_text("")
        (tools / tool).chmod(0o755)
    for name in ("tun", "btf", "medium", "tcp", "capture"):
        (tmp_path / name).write_text("")
    programs = Programs(tmp_path / "medium", tmp_path / "tcp", capture=tmp_path / "capture")
    return {"tun": tmp_path / "tun", "btf": tmp_path / "btf", "path": str(tools), "user": 0, "programs": programs}


def test_a_complete_machine_is_accepted(machine: dict) -> None:
    require_for_runs(**machine)


def test_tcpdump_is_required_by_a_scenario_that_captures_with_it_alone(machine: dict) -> None:
    require_capture("manet-capture", machine["path"])
    with pytest.raises(UsageError, match='key "capture_program": tcpdump: not found; apt-get install tcpdump'):
        require_capture("tcpdump", machine["path"])


@pytest.mark.parametrize(
    ("missing", "words"),
    [
        ("tun", "modprobe tun"),
        ("btf", "CONFIG_DEBUG_INFO_BTF"),
        ("medium", "setup.sh"),
        ("tcp", "setup.sh"),
        ("capture", "setup.sh"),
        ("bin/iperf3", "apt-get install iperf3"),
        ("bin/mnexec", "apt-get install mininet"),
    ],
)
def test_a_missing_program_is_named_with_the_command_that_installs_it(
    machine: dict, tmp_path: Path, missing: str, words: str
) -> None:
    (tmp_path / missing).unlink()
    with pytest.raises(UsageError) as caught:
        require_for_runs(**machine)
    assert words in str(caught.value)
    assert Path(missing).name in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_user_other_than_root_needs_user_namespaces(machine: dict, monkeypatch: pytest.MonkeyPatch) -> None:
    machine["user"] = 1000
    monkeypatch.setattr(privileges, "refusal", lambda: ("user.max_user_namespaces = 0", "as root: sysctl"))
    with pytest.raises(
        UsageError, match=r"^not root, and no user namespaces \(user.max_user_namespaces = 0\); run it with sudo, or "
    ):
        require_for_runs(**machine)
    monkeypatch.setattr(privileges, "refusal", lambda: None)
    machine["btf"].unlink()  # without eBPF nobody needs it
    require_for_runs(**machine)
