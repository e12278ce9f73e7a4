"""The Vagrantfile: Vagrant takes every line of it, and it keeps the promises of its head.

No box is fetched and no machine is made: what the provisioners do is tested nightly (tests/fresh/provision.sh). VirtualBox is
in no Debian release; for the options of its provider a stand-in VBoxManage says its version.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
TEXT = (ROOT / "Vagrantfile").read_text()
PROVIDERS = ("libvirt", "virtualbox")
# Vagrant loads its plugins for 2 s of CPU; 40 s were seen beside a load of 15.
DEADLINE_S = 300
VBOXMANAGE = """#!/bin/sh
if [ "$1" = --version ]; then echo 7.0.20r163906; fi
if [ "$1 $2" = "list hostinfo" ]; then printf 'Processor supports nested HW virtualization: NESTED\\r\\n'; fi
"""
# The Vagrantfile as Ruby, with an object that prints what it is told in place of Vagrant's configuration.
EVALUATE = """
class Printed
  def initialize(path) = @path = path
  def respond_to_missing?(*) = true
  def method_missing(name, *given)
    puts "#{@path}.#{name} #{given.join(' ')}"
    inner = Printed.new("#{@path}.#{name}")
    yield(inner, Printed.new("override")) if block_given?
    inner
  end
end
module Vagrant
  def self.configure(_version) = yield(Printed.new("config"))
end
load ARGV[0]
"""


def validate(folder: Path, text: str, provider: str) -> subprocess.CompletedProcess[str]:
    """`vagrant validate` of the text, in a folder of its own: it leaves a .vagrant."""
    if shutil.which("vagrant") is None:
        pytest.skip("vagrant: not found; apt-get install vagrant vagrant-libvirt")
    (folder / "Vagrantfile").write_text(text)
    stand_in(folder, "yes")
    environment = {
        **os.environ,
        "PATH": f"{folder}:{os.environ['PATH']}",
        "VAGRANT_HOME": str(folder / "home"),
        "VAGRANT_DEFAULT_PROVIDER": provider,
        "VAGRANT_CHECKPOINT_DISABLE": "1",
    }
    done = subprocess.run(
        ["vagrant", "validate", "--no-color"], cwd=folder, env=environment, capture_output=True, text=True, timeout=DEADLINE_S
    )
    if provider == "libvirt" and "provider 'libvirt'" in done.stderr:
        pytest.skip("vagrant-libvirt: not installed; apt-get install vagrant-libvirt")
    return done


def stand_in(folder: Path, nested: str) -> None:
    """VirtualBox's program, on a host whose processor can be nested, or not."""
    (folder / "VBoxManage").write_text(VBOXMANAGE.replace("NESTED", nested))
    (folder / "VBoxManage").chmod(0o755)


def settings(folder: Path, *, path: str | None = None) -> list[str]:
    """The settings of the Vagrantfile, a line each."""
    if (ruby := shutil.which("ruby")) is None:
        pytest.skip("ruby: not found; apt-get install vagrant")
    environment = os.environ | {"PATH": path or f"{folder}:{os.environ['PATH']}"}
    argv = [ruby, "-e", EVALUATE, str(ROOT / "Vagrantfile")]
    return subprocess.run(argv, env=environment, capture_output=True, text=True, check=True).stdout.splitlines()


def block(provider: str) -> str:
    found = re.search(rf"^  config\.vm\.provider :{provider} do .*?^  end$", TEXT, re.MULTILINE | re.DOTALL)
    assert found is not None
    return found.group(0)


@pytest.mark.slow
@pytest.mark.parametrize("provider", PROVIDERS)
def test_vagrant_takes_it(tmp_path: Path, provider: str) -> None:
    done = validate(tmp_path, TEXT, provider)
    assert done.returncode == 0, done.stderr
    assert "validated successfully" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_misspelt_option_of_a_provider_would_be_seen(tmp_path: Path, provider: str) -> None:
    misspelt = TEXT.replace(block(provider), block(provider).replace("machine.memory", "machine.memmory"))
    done = validate(tmp_path, misspelt, provider)
    assert done.returncode != 0 and "memmory" in done.stderr


def test_it_is_a_debian_13_machine_with_both_providers() -> None:
    assert 'config.vm.box = "debian/trixie64"' in TEXT
    assert 'override.vm.box = "bento/debian-13"' in block("virtualbox")


def test_nested_virtualisation_is_stated_for_both_providers() -> None:
    assert "machine.nested = true" in block("libvirt") and 'cpu_mode = "host-passthrough"' in block("libvirt")
    assert '["modifyvm", :id, "--nested-hw-virt", "on"]' in block("virtualbox")


@pytest.mark.parametrize(("nested", "requested"), [("yes", True), ("no", False)])
def test_virtualbox_is_asked_before_nested_virtualisation_is_requested(tmp_path: Path, nested: str, requested: bool) -> None:
    """It does not start a machine with a feature that the host's processor lacks."""
    stand_in(tmp_path, nested)
    found = [line for line in settings(tmp_path) if line.endswith("--nested-hw-virt on")]
    assert bool(found) is requested


def test_a_host_without_virtualbox_reads_the_vagrantfile(tmp_path: Path) -> None:
    assert not any("--nested-hw-virt" in line for line in settings(tmp_path, path=str(tmp_path)))


def test_the_first_vagrant_up_says_how_long_it_takes_and_what_comes_next(tmp_path: Path) -> None:
    lines = settings(tmp_path)
    (begin,) = [line for line in lines if line.startswith("config.trigger.before.info= ")]
    (end,) = [line for line in lines if line.startswith("config.vm.post_up_message= ")]
    assert "The first time takes 5 to 10 minutes" in begin and "compilation" in begin
    assert "vagrant ssh -c 'cd manet && sudo ./manet demo'" in end


def test_both_providers_give_the_same_machine() -> None:
    sizes = [re.findall(r"machine\.(?:cpus|memory) = (\d+)", block(provider)) for provider in PROVIDERS]
    assert sizes[0] == sizes[1] and len(sizes[0]) == 2


def test_it_is_provisioned_by_setup_alone_and_ends_with_the_doctor() -> None:
    provisioners = re.findall(r"^ *config\.vm\.provision .*inline: \"cd (\S+) && (.*)\"$", TEXT, re.MULTILINE)
    assert [command for _folder, command in provisioners] == ["./setup.sh --guests", "./manet doctor"]
    assert TEXT.count("config.vm.provision ") == 2
    shared = re.search(r'synced_folder "\.", "(\S+)", type: "rsync"', TEXT)
    assert shared is not None and {folder for folder, _command in provisioners} == {shared.group(1)}


def test_the_view_is_reached_by_the_host_alone_at_the_port_that_the_head_names() -> None:
    (forwarded,) = [line for line in TEXT.splitlines() if '"forwarded_port"' in line]
    guest, host = re.findall(r"\b(?:guest|host): (\d+)", forwarded)
    assert f"--listen 0.0.0.0:{guest}" in TEXT and f"http://localhost:{host} " in TEXT
    assert 'host_ip: "127.0.0.1"' in forwarded


def test_build_outputs_of_the_host_are_not_copied_in() -> None:
    excluded = re.search(r"rsync__exclude: \[(.*)\]", TEXT)
    assert excluded is not None
    for folder in ("/target/", "/fuzz/target/", "/.venv/", "/.build/", "/results/"):
        assert f'"{folder}"' in excluded.group(1)
        assert folder.rstrip("/") in (ROOT / ".gitignore").read_text().splitlines()


def test_the_nightly_finds_both_provisioners() -> None:
    """provision.sh runs the commands that stand here, read by its own function."""
    script = (ROOT / "tests" / "fresh" / "provision.sh").read_text()
    function = re.search(r"^provisioner\(\) .*?^}", script, re.MULTILINE | re.DOTALL)
    assert function is not None
    calls = f"here={ROOT}\n{function.group(0)}\nprovisioner setup\nprovisioner doctor\n"
    found = subprocess.run(["bash", "-c", calls], capture_output=True, text=True, check=True)
    assert found.stdout.splitlines() == ["./setup.sh --guests", "./manet doctor"]
