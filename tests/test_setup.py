"""setup.sh and the launcher, in a small checkout of their own: apt-get and cargo are stand-ins, the rest is real.

The real thing, from nothing, is tests/fresh/fresh.sh. Here: what happens when something goes wrong, and that nothing
is done twice.
"""

import hashlib
import os
import re
import signal
import subprocess
import time
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
DEADLINE_S = 60.0

# Says it is new enough; `build` does what $STUB/build says.
CARGO = """#!/bin/sh
case $1 in
--version) name=${0##*/}; echo "${name%%-*} 1.99.0 (stand-in)" ;;
build) echo build >>"$STUB/calls"; . "$STUB/build" ;;
esac
"""
APT_GET = """#!/bin/sh
echo "apt-get $*" >>"$STUB/calls"
. "$STUB/apt"
"""
# Has each package, in a version like cargo's, but those that $STUB/absent lists.
APT_CACHE = """#!/bin/sh
case $1 in
pkgnames) cat "$STUB/names" 2>/dev/null || true ;;
policy) grep -qxF -e "$2" "$STUB/absent" 2>/dev/null || printf '%s:\\n  Installed: (none)\\n  Candidate: 1.99.0-1\\n' "$2" ;;
esac
"""
MANIFEST = '[package]\nname = "manet-medium-daemon"\n[[bin]]\nname = "manet-medium"\npath = "src/main.rs"\n'
BUILD_WORKS = "mkdir -p target/release && touch target/release/manet-medium"


class Checkout:
    """A folder with the real manet and setup.sh, a one-file `testbed`, and stand-ins first on PATH."""

    def __init__(self, folder: Path) -> None:
        self.root, self.stub = folder / "checkout", folder / "stub"
        (self.root / "medium" / "daemon" / "src").mkdir(parents=True)
        (self.root / "testbed").mkdir()
        self.stub.mkdir()
        for name in ("manet", "setup.sh"):
            (self.root / name).write_text((ROOT / name).read_text())
            (self.root / name).chmod(0o755)
        self.write("Cargo.toml", "[workspace]\n")
        self.write("medium/daemon/Cargo.toml", MANIFEST)
        self.write("medium/daemon/src/main.rs", "fn main() {}\n")
        self.write("requirements.lock", "")
        self.write("testbed/__init__.py", "")
        self.write("testbed/__main__.py", "import sys\nprint('testbed', *sys.argv[1:])\n")
        for name, text in (("cargo", CARGO), ("rustc", CARGO), ("apt-get", APT_GET), ("apt-cache", APT_CACHE)):
            (self.stub / name).write_text(text)
            (self.stub / name).chmod(0o755)
        self.cargo_build(BUILD_WORKS)
        self.apt("exit 1")

    def write(self, name: str, text: str) -> None:
        (self.root / name).write_text(text)

    def cargo_build(self, script: str) -> None:
        (self.stub / "build").write_text(script + "\n")

    def apt(self, script: str) -> None:
        (self.stub / "apt").write_text(script + "\n")

    def lacks(self, *packages: str) -> None:
        """Packages that no repository of this system has."""
        (self.stub / "absent").write_text("".join(f"{name}\n" for name in packages))

    def has_old_rust(self) -> None:
        """All of cargo and rustc that setup.sh finds are 1.63, Debian 12's."""
        for name in ("cargo", "rustc"):
            (self.stub / name).write_text(CARGO.replace("1.99.0", "1.63.0"))
        text = (self.root / "setup.sh").read_text()
        self.write(
            "setup.sh",
            text.replace('for candidate in $(type -ap "$1")', f'for candidate in "{self.stub}/$1"')
            .replace('"/usr/bin/$1" "/usr/bin/$1"-1.*;', f'"{self.stub}/$1"-1.*;')
            .replace("${HOME:-/root}/.cargo/bin", str(self.stub)),
        )

    def need(self, requirement: str) -> None:
        """One more line in setup.sh's table of what must be there."""
        text = (self.root / "setup.sh").read_text()
        self.write("setup.sh", text.replace("REQUIREMENTS='\n", f"REQUIREMENTS='\n{requirement}\n", 1))

    @property
    def calls(self) -> str:
        path = self.stub / "calls"
        return path.read_text() if path.exists() else ""

    def environment(self) -> dict[str, str]:
        return {**os.environ, "PATH": f"{self.stub}:{os.environ['PATH']}", "STUB": str(self.stub)}

    def run(self, *words: str, before: tuple[str, ...] = ()) -> subprocess.CompletedProcess:
        return subprocess.run(
            [*before, f"./{words[0]}", *words[1:]],
            cwd=self.root,
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
        )

    def start(self, *words: str) -> subprocess.Popen:
        return subprocess.Popen(
            [f"./{words[0]}", *words[1:]],
            cwd=self.root,
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def files(self) -> set[str]:
        return {str(path.relative_to(self.root)) for path in self.root.rglob("*")}


def tools_are_here() -> bool:
    """Whether all that the real table asks for is installed: else setup.sh would rightly call apt-get in every test."""
    listed = subprocess.run([ROOT / "setup.sh", "--check"], capture_output=True, text=True, check=False).stdout
    return "package  " not in listed


needs_tools = pytest.mark.skipif(not tools_are_here(), reason="packages are missing: run ./setup.sh as root first")
without_root = pytest.mark.skipif(
    os.geteuid() != 0, reason="needs root, as it changes user or binds over /etc/os-release; sudo ./manet test"
)
pytestmark = [needs_tools, pytest.mark.slow]  # 30 s of processor time: Python environments


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """A checkout that was set up once; tests leave it set up."""
    checkout = Checkout(tmp_path_factory.mktemp("made"))
    done = checkout.run("manet", "first", "call")
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("testbed first call\n")
    return checkout


def wait_until(condition) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def one_line(done: subprocess.CompletedProcess) -> str:
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    assert len(lines) == 1, done.stderr
    return lines[0]


def test_second_call_goes_straight_to_the_command(made: Checkout) -> None:
    before = made.calls
    done = made.run("manet", "run", "a b")
    assert (done.stdout, done.stderr, done.returncode) == ("testbed run a b\n", "", 0)
    assert made.calls == before


def test_second_set_up_builds_nothing(made: Checkout) -> None:
    before = made.calls
    done = made.run("setup.sh")
    assert (done.stdout, done.returncode) == ("setup: ready\n", 0)
    assert made.calls == before
    assert made.run("setup.sh", "--check").returncode == 0


def test_changed_source_is_built_by_the_next_call(made: Checkout) -> None:
    builds = made.calls.count("build")
    made.write("medium/daemon/src/main.rs", f"fn main() {{}} // {time.time_ns()}\n")
    assert "build    Rust programs" in made.run("setup.sh", "--check").stdout
    assert made.run("manet", "x").stdout.endswith("testbed x\n")
    assert made.calls.count("build") == builds + 1
    assert made.run("manet", "x").stdout == "testbed x\n"


def test_touched_but_equal_source_is_not_built_again(made: Checkout) -> None:
    builds = made.calls.count("build")
    (made.root / "medium/daemon/src/main.rs").touch()
    done = made.run("manet", "x")
    assert (done.stdout, done.stderr) == ("testbed x\n", "setup: ready\n")
    assert made.calls.count("build") == builds


def test_lost_program_is_built_again(made: Checkout) -> None:
    (made.root / "target/release/manet-medium").unlink()
    assert made.run("manet", "x").stdout.endswith("testbed x\n")
    assert (made.root / "target/release/manet-medium").exists()


def test_cut_off_python_environment_is_made_anew(made: Checkout) -> None:
    (made.root / ".venv/unfinished").touch()
    (made.root / ".venv/half").touch()
    assert made.run("setup.sh").returncode == 0
    assert not (made.root / ".venv/half").exists()
    assert made.run("manet", "x").stdout == "testbed x\n"


def test_two_at_once_take_turns(made: Checkout) -> None:
    made.cargo_build(f'echo $$ >"$STUB/building"; while [ ! -e "$STUB/go" ]; do sleep 0.05; done; {BUILD_WORKS}')
    made.write("medium/daemon/src/main.rs", f"fn main() {{}} // {time.time_ns()}\n")
    builds = made.calls.count("build")
    first = made.start("setup.sh")
    wait_until((made.stub / "building").exists)
    second = made.start("setup.sh")
    assert "another setup.sh is at work here" in second.stdout.readline()
    (made.stub / "go").touch()
    assert (first.wait(DEADLINE_S), second.wait(DEADLINE_S)) == (0, 0)
    first.communicate()
    second.communicate()
    made.cargo_build(BUILD_WORKS)
    assert made.calls.count("build") == builds + 1


def test_check_and_help_change_nothing(checkout: Checkout) -> None:
    before = checkout.files()
    checked = checkout.run("setup.sh", "--check")
    assert checked.returncode == 1
    assert "build    Rust programs" in checked.stdout and "python   .venv" in checked.stdout
    for words in (["--help"], ["run", "--help"]):
        helped = checkout.run("manet", *words)
        assert helped.returncode == 0 and "./manet demo" in helped.stdout
    doctor = checkout.run("manet", "doctor")
    assert doctor.returncode == 1 and "run ./setup.sh as root" in doctor.stderr
    assert checkout.files() == before and checkout.calls == ""


def test_doctor_hears_of_parts_that_are_not_built(checkout: Checkout) -> None:
    checkout.write("testbed/__main__.py", "import os, sys\nprint(sys.argv[1], os.environ.get('MANET_SET_UP'))\n")
    assert checkout.run("manet", "first").returncode == 0
    assert checkout.run("manet", "doctor").stdout == "doctor None\n"
    checkout.write("medium/daemon/src/main.rs", "fn main() { }\n")
    found = checkout.run("manet", "doctor")
    assert found.stdout == "doctor incomplete\n" and "older than their sources" in found.stderr


NOBODY = ("setpriv", "--reuid", "65534", "--clear-groups")


def open_to_all(checkout: Checkout) -> None:
    for folder in (checkout.root, *checkout.root.parents):  # as far up as pytest made them
        folder.chmod(0o755)
        if folder.name.startswith("pytest-of-"):
            break


@pytest.mark.root
@without_root
@pytest.mark.parametrize("words", [["demo"], ["run", "hv-fig1"], ["cli"], ["script", "x.py"], ["run", "mine.toml"]])
def test_without_root_and_user_namespaces_a_network_is_refused_before_the_set_up(checkout: Checkout, words: list[str]) -> None:
    checkout.write("mine.toml", 'clock = "real"\n')
    (checkout.stub / "unshare").write_text("#!/bin/sh\nexit 1\n")
    (checkout.stub / "unshare").chmod(0o755)
    open_to_all(checkout)
    before = checkout.files()
    done = checkout.run("manet", *words, before=NOBODY)
    text = f"manet {words[0]}: not root, and no user namespaces (docs/rootless.md); run it with sudo, or open them"
    assert (one_line(done), done.returncode, done.stdout) == (text, 2, "")
    assert checkout.files() == before and checkout.calls == ""


@pytest.mark.root
@without_root
@pytest.mark.parametrize("words", [["report", "x"], ["run", "hv-fig1", "--clock", "virtual"], ["run", "mine.toml"]])
def test_without_root_missing_packages_are_named_and_nothing_is_written(checkout: Checkout, words: list[str]) -> None:
    checkout.need("command no-such-tool no-such-package")
    checkout.write("mine.toml", 'clock = "virtual"\n')
    open_to_all(checkout)
    before = checkout.files()
    done = checkout.run("manet", *words, before=NOBODY)
    assert done.returncode == 1
    assert "needs root: run 'sudo ./setup.sh'" in one_line(done) and "no-such-package" in done.stderr
    assert checkout.files() == before


def on_another_system(release: Path | None, *, apt: bool = True) -> tuple[str, ...]:
    """A prefix of a command, which then sees, in mounts of its own, this os-release (None: no such file) and, without `apt`, no
    apt-get."""
    steps = [] if release is None else [f'mount --bind {release} "$(readlink -f /etc/os-release)"']
    if release is None:  # a dangling link
        steps += ["mkdir -p /tmp/.etc && mount -t tmpfs none /tmp/.etc", "cp -a /etc/. /tmp/.etc/", "rm /tmp/.etc/os-release",
                  "mount --bind /tmp/.etc /etc"]  # fmt: skip
    steps += [] if apt else ["mount --bind /dev/null /usr/bin/apt-get"]
    return ("unshare", "--mount", "sh", "-ec", "\n".join([*steps, 'exec "$@"']), "sh")


@pytest.fixture
def ubuntu(tmp_path: Path) -> Path:
    release = tmp_path / "ubuntu"
    release.write_text('ID=ubuntu\nID_LIKE=debian\nVERSION_ID="24.04"\nPRETTY_NAME="Ubuntu 24.04.3 LTS"\n')
    return release


@pytest.fixture
def arch(tmp_path: Path) -> Path:
    release = tmp_path / "arch"
    release.write_text('ID=arch\nPRETTY_NAME="Arch Linux"\n')
    return release


STOPS = 'echo "error: the packages are there"; exit 101'  # a build: what follows needs no further test, and takes seconds
AT_THE_BUILD = "error: the packages are there (log: .build/log/cargo-build.log)"


def without_apt(checkout: Checkout) -> None:
    for name in ("apt-get", "apt-cache"):
        (checkout.stub / name).unlink()


@pytest.mark.root
@without_root
def test_another_system_with_apt_is_set_up_as_debian(checkout: Checkout, ubuntu: Path) -> None:
    checkout.need(f"file {checkout.stub}/brought absent-here|present-here")
    checkout.lacks("absent-here")
    checkout.apt('case $* in *"install present-here"*) touch "$STUB/brought" ;; esac')
    checkout.cargo_build(STOPS)
    missing = checkout.run("setup.sh", "--check", before=on_another_system(ubuntu))
    assert "package  absent-here|present-here" in missing.stdout and missing.stdout.endswith("missing; ./setup.sh installs it\n")
    assert one_line(checkout.run("setup.sh", before=on_another_system(ubuntu))).endswith(AT_THE_BUILD)
    assert "install present-here\n" in checkout.calls and "absent-here" not in checkout.calls


@pytest.mark.root
@without_root
@pytest.mark.parametrize("words", [[], ["--check"]])
def test_a_package_that_no_repository_has_is_named(checkout: Checkout, ubuntu: Path, words: list[str]) -> None:
    checkout.need("command no-such-tool no-such-package|nor-this")
    checkout.lacks("no-such-package", "nor-this")
    done = checkout.run("setup.sh", *words, before=on_another_system(ubuntu))
    assert done.returncode == 1
    assert one_line(done).startswith(
        "setup.sh: Ubuntu 24.04.3 LTS has no package no-such-package or nor-this; add the repository"
    )
    assert checkout.calls == "" and "installs it" not in done.stdout


@pytest.mark.root
@without_root
@pytest.mark.parametrize(
    ("names", "absent", "installed"),
    [
        ("", (), "cargo rustc"),
        ("", ("rustc",), "cargo-web rustc-web"),
        ("rustc-1.74\nrustc-1.91\nrustc-1.89\nrustc-1.89-doc\n", ("rustc", "rustc-web"), "cargo-1.89 rustc-1.89"),
    ],
)
def test_the_packages_of_rust_are_those_that_this_system_has(
    checkout: Checkout, ubuntu: Path, names: str, absent: tuple[str, ...], installed: str
) -> None:
    checkout.has_old_rust()
    (checkout.stub / "names").write_text(names)
    checkout.lacks(*absent)
    first, second = installed.split()
    new = 'sed s/1.63.0/1.99.0/ "$STUB/cargo" >"$STUB/{0}.new"; mv "$STUB/{0}.new" "$STUB/{0}"; chmod +x "$STUB/{0}"'
    checkout.apt(f'case $* in *"install {installed}"*) {new.format(first)}; {new.format(second)} ;; esac')
    if not first.startswith("cargo-1"):  # cargo-web installs /usr/bin/cargo
        checkout.apt(f'case $* in *"install {installed}"*) {new.format("cargo")}; {new.format("rustc")} ;; esac')
    checkout.cargo_build(STOPS)
    assert one_line(checkout.run("setup.sh", before=on_another_system(ubuntu))).endswith(AT_THE_BUILD)
    assert f"install {installed}\n" in checkout.calls


@pytest.mark.root
@without_root
def test_without_a_package_of_a_new_rust_rustup_is_named(checkout: Checkout, ubuntu: Path) -> None:
    checkout.has_old_rust()
    checkout.lacks("rustc", "rustc-web")
    done = checkout.run("setup.sh", before=on_another_system(ubuntu))
    assert done.returncode == 1
    assert "Ubuntu 24.04.3 LTS has no package with Rust >= 1.85; install it for your user with rustup" in one_line(done)


@pytest.mark.root
@without_root
def test_a_system_without_apt_is_named_with_the_packages_to_install(checkout: Checkout, arch: Path) -> None:
    checkout.has_old_rust()
    checkout.need("command no-such-tool no-such-package|nor-this")
    without_apt(checkout)
    done = checkout.run("setup.sh", before=on_another_system(arch, apt=False))
    assert done.returncode == 1
    assert one_line(done).startswith(
        "setup.sh: Arch Linux has no apt, from which ./setup.sh installs packages; install the equivalents"
    )
    assert ": cargo rustc (Rust >= 1.85), no-such-package or nor-this; then run ./setup.sh again; docs/install.md" in done.stderr
    checked = checkout.run("setup.sh", "--check", before=on_another_system(arch, apt=False))
    assert checked.returncode == 1 and "./setup.sh installs it" not in checked.stdout
    assert "setup: missing; ./setup.sh installs no packages on Arch Linux" in checked.stdout


@pytest.mark.root
@without_root
def test_a_system_without_apt_that_has_all_commands_is_set_up(checkout: Checkout, arch: Path) -> None:
    without_apt(checkout)
    checked = checkout.run("setup.sh", "--check", before=on_another_system(arch, apt=False))
    assert checked.stdout.endswith("setup: missing; ./setup.sh builds it\n")
    checkout.cargo_build(STOPS)
    assert one_line(checkout.run("setup.sh", before=on_another_system(arch, apt=False))).endswith(AT_THE_BUILD)


@pytest.mark.root
@without_root
def test_a_system_without_os_release_is_set_up_without_an_error_of_the_shell(checkout: Checkout) -> None:
    done = checkout.run("manet", "run", "x", before=on_another_system(None))
    assert done.returncode == 0 and done.stdout == "testbed run x\n"
    again = checkout.run("manet", "run", "x", before=on_another_system(None))
    assert (again.stdout, again.stderr) == ("testbed run x\n", "")
    without_apt(checkout)
    checkout.need("command no-such-tool no-such-package")
    refused = checkout.run("setup.sh", before=on_another_system(None, apt=False))
    assert one_line(refused).startswith("setup.sh: this system has no apt")


@pytest.mark.parametrize("words", [[], ["--check"]])
def test_a_python_that_is_too_old_is_named(checkout: Checkout, words: list[str]) -> None:
    text = (checkout.root / "setup.sh").read_text()
    checkout.write("setup.sh", text.replace("PYTHON_MINOR_NEEDED=11", "PYTHON_MINOR_NEEDED=99"))
    done = checkout.run("setup.sh", *words)
    assert done.returncode == 1
    assert re.search(r"has Python 3\.\d+, and 3\.99 is needed: use a newer release, or the container", done.stdout + done.stderr)
    assert not (checkout.root / ".venv").exists()


@pytest.mark.root
@without_root
def test_apt_lock_is_waited_for(checkout: Checkout) -> None:
    checkout.need(f"file {checkout.stub}/brought no-such-package")
    checkout.apt(
        'if [ $(grep -c "apt-get.*install" "$STUB/calls") -lt 2 ]; then\n'
        'echo "E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 4711 (apt-get)"; exit 100; fi\n'
        'case $* in *install*) touch "$STUB/brought" ;; esac'
    )
    done = checkout.run("setup.sh")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("waiting for apt's lock: Could not get lock") == 1
    assert "held by process 4711" in done.stdout


@pytest.mark.root
@without_root
def test_no_network_is_one_line(checkout: Checkout) -> None:
    checkout.need(f"file {checkout.stub}/brought no-such-package")
    checkout.apt("echo \"E: Failed to fetch http://deb.debian.org/x  Temporary failure resolving 'deb.debian.org'\"; exit 100")
    done = checkout.run("setup.sh")
    assert done.returncode == 1
    assert "a package registry was not reached" in one_line(done) and "check the network" in done.stderr


def test_full_disk_is_one_line_and_the_next_run_goes_on(checkout: Checkout) -> None:
    checkout.cargo_build('echo "error: failed to write x: No space left on device (os error 28)"; exit 101')
    done = checkout.run("setup.sh")
    assert done.returncode == 1
    assert "cargo build failed: the disk is full" in one_line(done)
    checkout.cargo_build(BUILD_WORKS)
    assert checkout.run("manet", "x").stdout.endswith("testbed x\n")


def test_error_behind_cargos_progress_is_found(checkout: Checkout) -> None:
    checkout.cargo_build("printf '    Building [>  ] 3/78: nix\\rerror: no room for nix\\n'; exit 101")
    done = checkout.run("setup.sh")
    assert one_line(done) == "setup.sh: cargo build failed: error: no room for nix (log: .build/log/cargo-build.log)"


def test_long_build_shows_how_much_of_it_is_done(checkout: Checkout) -> None:
    """cargo counts on a terminal only, unless its option is `always`."""
    progress = "printf '   Compiling nix\\n    Building [=> ] 45/78: nix\\r'"
    checkout.cargo_build(f'[ "$CARGO_TERM_PROGRESS_WHEN" = always ] && {progress}; sleep 17; exit 101')
    done = checkout.run("setup.sh")
    assert re.search(r"^setup:   1\d s: +Building \[=> \] 45/78: nix$", done.stdout, re.MULTILINE), done.stdout


@pytest.mark.root
@without_root
def test_a_long_installation_shows_apts_percentage(checkout: Checkout) -> None:
    checkout.need(f"file {checkout.stub}/brought no-such-package")
    checkout.apt('case $* in *APT::Status-Fd=1*) echo "pmstatus:libx:45.1234:Unpacking libx" ;; esac; sleep 17; exit 1')
    done = checkout.run("setup.sh")
    assert re.search(r"^setup:   1\d s: 45 %: Unpacking libx$", done.stdout, re.MULTILINE), done.stdout
    assert done.stdout.startswith("setup: to do: packages (1 missing; 1 minute for all)")


def wheel_of(folder: Path, name: str) -> str:
    """The line of a lock file for a package without content, whose wheel is in the folder."""
    wheel, info = folder / f"{name}-99-py3-none-any.whl", f"{name}-99.dist-info"
    with zipfile.ZipFile(wheel, "w") as file:
        file.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 99\n")
        file.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr(f"{info}/RECORD", f"{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n")
    return f"{name} @ {wheel.as_uri()} --hash=sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}\n"


def test_debians_packages_are_not_uninstalled(checkout: Checkout, tmp_path: Path) -> None:
    """pip printed `Can't uninstall 'typing_extensions'`; Mininet is a Debian package that every machine here has."""
    checkout.write("requirements.lock", wheel_of(tmp_path, "mininet"))
    assert checkout.run("setup.sh").returncode == 0
    log = (checkout.root / ".build/log/pip.log").read_text()
    assert "Successfully installed mininet-99" in log and "uninstall" not in log


def test_the_tests_alone_install_what_they_need(checkout: Checkout, tmp_path: Path) -> None:
    """The lock file of an extra names a package of requirements.lock, too, which is not installed again."""
    first, second = wheel_of(tmp_path, "manetone"), wheel_of(tmp_path, "manettwo")
    checkout.write("requirements.lock", first)
    checkout.write("requirements-develop.lock", first + second)

    def installed() -> list[str]:
        return sorted(path.name for path in checkout.root.glob(".venv/lib/python3.*/site-packages/manet*-info"))

    assert checkout.run("manet", "run").stdout == "testbed run\n"
    assert installed() == ["manetone-99.dist-info"]
    assert "different from requirements-develop.lock" in checkout.run("setup.sh", "--develop", "--check").stdout
    assert checkout.run("manet", "test", "x").stdout == "testbed test x\n"
    assert installed() == ["manetone-99.dist-info", "manettwo-99.dist-info"]
    assert "manetone" not in (checkout.root / ".build/log/develop-pip.log").read_text()
    assert checkout.run("setup.sh", "--develop", "--check").returncode == 0
    again = checkout.run("manet", "test", "x")
    assert (again.stdout, again.stderr) == ("testbed test x\n", "")
    checkout.write("requirements-develop.lock", first)
    assert checkout.run("manet", "run").stdout == "testbed run\n"
    assert "different from requirements-develop.lock" in checkout.run("setup.sh", "--develop", "--check").stdout


def test_ebpf_program_that_does_not_compile_stops_runs_and_nothing_else(checkout: Checkout) -> None:
    (checkout.root / "kernel-tcp").mkdir()
    makefile = "all:\n\tmkdir -p $(BUILD)\n\ttouch $(BUILD)/manet-tcp\n"
    checkout.write("kernel-tcp/Makefile", makefile)
    assert checkout.run("manet", "run", "x").stdout == "testbed run x\n"
    checkout.write("kernel-tcp/Makefile", "all:\n\t@echo 'mine.bpf.c:3:1: error: unknown type' >&2; exit 1\n")
    cause = "make -C kernel-tcp failed: mine.bpf.c:3:1: error: unknown type (log: .build/log/kernel-tcp.log)"
    for words in (["run", "x"], ["cli", "x"], ["tcp", "load", "tahoe"]):
        failed = checkout.run("manet", *words)
        assert (failed.stdout, failed.returncode) == ("", 1)
        assert f"setup.sh: {cause}\n" in failed.stderr
    for words in (["clean"], ["story", "x"], ["report", "x"], ["trace", "x"], ["tcp", "show", "tahoe"]):
        done = checkout.run("manet", *words)
        assert (done.stdout, done.returncode) == (f"testbed {' '.join(words)}\n", 0)
        assert f"setup: {cause}; going on without the eBPF programs" in done.stderr
    checkout.write("kernel-tcp/Makefile", makefile)
    assert checkout.run("manet", "run", "x").stdout == "testbed run x\n"
    assert checkout.run("manet", "run", "x").stderr == ""


def test_ctrl_c_ends_the_step_and_the_next_run_goes_on(checkout: Checkout) -> None:
    checkout.cargo_build('echo $$ >"$STUB/pid.new"; mv "$STUB/pid.new" "$STUB/pid"; exec sleep 600')
    going = checkout.start("setup.sh")
    wait_until((checkout.stub / "pid").exists)
    step = int((checkout.stub / "pid").read_text())
    going.send_signal(signal.SIGINT)
    _, errors = going.communicate(timeout=DEADLINE_S)
    assert going.returncode == 130
    assert errors.strip() == "setup.sh: interrupted; run it again to go on"
    assert not Path(f"/proc/{step}").exists()
    checkout.cargo_build(BUILD_WORKS)
    assert checkout.run("setup.sh").returncode == 0
