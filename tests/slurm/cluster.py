"""A Slurm cluster on this machine: a controller and two workers, each a slurmd of its own (Debian's slurm-wlm and munge).

    with Cluster(tmp_path) as cluster: cluster.run([...]); cluster.kill("w0")

Both workers are this machine, so that its cores are shared: this tests the workflow, not the speed of a cluster.
"""

import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Self

NODES = ("w0", "w1")
PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue")
COMMANDS = ("srun", "sbatch", "squeue", "scancel", "sinfo", "scontrol")
START_S = 30
# SlurmdTimeout: a node that does not answer is down after it, and its job is queued again
CONFIG = """
ClusterName=manet
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmctldPort={ports[0]}
StateSaveLocation={folder}/state
SlurmctldPidFile={folder}/slurmctld.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmdLogFile={folder}/slurmd-%n.log
SlurmdSpoolDir={folder}/spool-%n
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
CredType=cred/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SlurmdParameters=config_overrides
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
ReturnToService=2
SlurmdTimeout=12
MinJobAge=3600
JobRequeue=1
KillOnBadExit=1
NodeName=w0 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs=2 RealMemory=4000 State=UNKNOWN
NodeName=w1 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]} CPUs=2 RealMemory=4000 State=UNKNOWN
PartitionName=main Nodes=w[0-1] Default=YES MaxTime=INFINITE State=UP OverSubscribe=EXCLUSIVE
"""


def missing() -> str | None:
    """The first program that is not installed; None if all are."""
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    return next((program for program in PROGRAMS if shutil.which(program, path=path) is None), None)


class Cluster:
    """The daemons, as children of this process; the block ends them all."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.daemons: dict[str, subprocess.Popen[bytes]] = {}
        path = f"{folder}/bin:{os.environ['PATH']}:/usr/sbin:/sbin"
        self.environment = os.environ | {"SLURM_CONF": str(folder / "slurm.conf"), "PATH": path}

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        for name in ("state", "munge", *(f"spool-{node}" for node in NODES)):
            (self.folder / name).mkdir(mode=0o755)
        key = self.folder / "munge" / "key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o600)
        text = CONFIG.format(folder=self.folder, host=socket.gethostname(), ports=_free_ports(3))
        (self.folder / "slurm.conf").write_text(text)
        # Snakemake's executor takes Slurm's variables out of a job; on a cluster the configuration is in /etc/slurm
        (self.folder / "bin").mkdir()
        for name in COMMANDS:
            command = self.folder / "bin" / name
            command.write_text(f'#!/bin/sh\nSLURM_CONF={self.folder}/slurm.conf exec /usr/bin/{name} "$@"\n')
            command.chmod(0o755)
        try:
            files = {"key": key, **{name: self.folder / "munge" / name for name in ("socket", "pid", "seed", "log")}}
            options = [f"--{'socket' if name == 'socket' else f'{name}-file'}={path}" for name, path in files.items()]
            self._start("munged", ["munged", "--foreground", "--force", *options])
            self._wait(lambda: (self.folder / "munge" / "socket").exists(), "munged")
            self._start("slurmctld", ["slurmctld", "-D"])
            for node in NODES:
                self._start(node, ["slurmd", "-D", "-N", node])
            self._wait(lambda: self.run(["sinfo", "-h", "-o", "%T"]).split() == ["idle"], "the workers")
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, _kind: type[BaseException] | None, _value: BaseException | None, _trace: TracebackType | None) -> None:
        if "slurmctld" in self.daemons:
            self.run(["scancel", "--user", "root"])
        for name, daemon in reversed(self.daemons.items()):
            _kill_tree(daemon.pid) if name in NODES else daemon.terminate()
        for daemon in self.daemons.values():
            try:
                daemon.wait(10)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()

    def run(self, argv: list[str]) -> str:
        """Standard output of a Slurm command; empty if it fails."""
        done = subprocess.run(argv, env=self.environment, capture_output=True, text=True, timeout=30, check=False)
        return done.stdout

    def kill(self, node: str) -> None:
        """End a worker with everything that it started, at once, as a loss of power does."""
        _kill_tree(self.daemons[node].pid, *self._steps(node))
        self.daemons[node].wait()

    def _steps(self, node: str) -> list[int]:
        """The processes of a worker's jobs. A step's own daemon leaves the tree of slurmd; it is known by its files."""
        spool, name = str(self.folder / f"spool-{node}"), f"SLURMD_NODENAME={node}".encode()
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    links = [str(link.readlink()) for link in (entry / "cwd", *(entry / "fd").iterdir())]
                    if name in (entry / "environ").read_bytes().split(b"\0") or any(link.startswith(spool) for link in links):
                        found.append(int(entry.name))
                except OSError:
                    continue
        return found

    def busy(self) -> list[str]:
        """The nodes with a running job."""
        return self.run(["squeue", "-h", "-t", "R", "-o", "%N"]).split()

    def _start(self, name: str, argv: list[str]) -> None:
        log = (self.folder / f"{name}.out").open("wb")
        with log:
            self.daemons[name] = subprocess.Popen(argv, env=self.environment, stdout=log, stderr=log, stdin=subprocess.DEVNULL)

    def _wait(self, ready, name: str) -> None:
        deadline = time.monotonic() + START_S
        while not ready():
            if time.monotonic() > deadline:
                logs = "\n".join(path.read_text(errors="replace")[-2000:] for path in sorted(self.folder.glob("*.out")))
                raise RuntimeError(f"{name} did not start within {START_S} s:\n{logs}")
            time.sleep(0.2)


def _free_ports(number: int) -> list[int]:
    sockets = [socket.socket() for _ in range(number)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def _kill_tree(*pids: int) -> None:
    """SIGKILL for processes and all that descend from them."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except (OSError, ValueError, IndexError):
                continue
            children.setdefault(parent, []).append(int(entry.name))
    doomed, found = [*pids], [*pids]
    while doomed:
        doomed = [child for each in doomed for child in children.get(each, ())]
        found += doomed
    for each in found:
        try:
            os.kill(each, signal.SIGKILL)
        except ProcessLookupError:
            continue
