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
VBOXMANAGE = '#!/bin/sh\nif [ "$1" = --version ]; then echo 7.0.20r163906; fi\n'


def validate(folder: Path, text: str, provider: str) -> subprocess.CompletedProcess[str]:
    """`vagrant validate` of the text, in a folder of its own: it leaves a .vagrant."""
    if shutil.which("vagrant") is None:
        pytest.skip("vagrant: not found; apt-get install vagrant vagrant-libvirt")
    (folder / "Vagrantfile").write_text(text)
    (folder / "VBoxManage").write_text(VBOXMANAGE)
    (folder / "VBoxManage").chmod(0o755)
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


def test_both_providers_give_the_same_machine() -> None:
    sizes = [re.findall(r"machine\.(?:cpus|memory) = (\d+)", block(provider)) for provider in PROVIDERS]
    assert sizes[0] == sizes[1] and len(sizes[0]) == 2


def test_it_is_provisioned_by_setup_alone_and_ends_with_the_doctor() -> None:
    provisioners = re.findall(r"^ *config\.vm\.provision .*inline: \"cd (\S+) && (.*)\"$", TEXT, re.MULTILINE)
    assert [command for _folder, command in provisioners] == ["./setup.sh --guests", "./manet doctor"]
    assert TEXT.count("config.vm.provision ") == 2
    shared = re.search(r'synced_folder "\.", "(\S+)", type: "rsync"', TEXT)
    assert shared is not None and {folder for folder, _command in provisioners} == {shared.group(1)}


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
