"""A web server, as a program: nginx on one address and port, with the objects of a session. Standard library only.

`web_server.py` writes the configuration into `--folder`, makes a sparse file for each size of a body, and runs `--nginx` until
SIGTERM. nginx is one process in the foreground and writes nowhere else; its access log has a JSON object for each request. nginx
that ends earlier is an error.

As root the objects are in a file system in memory that these two processes alone see: a long session has thousands of sizes, and
on a loaded disk a new file took 5 ms. Otherwise they are in `--folder`. They are gone at the end.
"""

import argparse
import ctypes
import json
import os
import select
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

PR_SET_PDEATHSIG = 1  # <linux/prctl.h>
CLONE_NEWNS = 0x20000  # <linux/sched.h>
MS_REC, MS_PRIVATE, MNT_DETACH = 0x4000, 0x40000, 2  # <linux/mount.h>, <sys/mount.h>
LIBC = ctypes.CDLL(None, use_errno=True)
GRACE_S = 5.0  # less than testbed/host/processes.py gives this program
FOR_EVER_S = 100_000  # nginx closes no connection of a session: idle, slow or without a path, it lasts as long as the flow
LOGGED = {
    "id": '"$arg_id"',
    "try": '"$arg_try"',
    "client_port": "$remote_port",
    "connection_requests": "$connection_requests",
    "request_bytes": "$request_length",
    "status": "$status",
    "body_bytes": "$body_bytes_sent",
    "sent_bytes": "$bytes_sent",
    "complete": '"$request_completion"',
    "ended_unix_s": "$msec",
    "seconds": "$request_time",
}
CONFIGURATION = """\
daemon off;
master_process off;
worker_processes 1;
{user}pid nginx.pid;
error_log stderr error;
events {{ worker_connections 1024; }}
http {{
    log_format exchanges escape=json '{logged}';
    access_log access.log exchanges;
    client_body_temp_path temp/body;
    proxy_temp_path temp/proxy;
    fastcgi_temp_path temp/fastcgi;
    uwsgi_temp_path temp/uwsgi;
    scgi_temp_path temp/scgi;
    default_type application/octet-stream;
    etag off;
    max_ranges 0;
    server_tokens off;
    sendfile on;
    tcp_nopush on;
    keepalive_timeout {for_ever}s;
    keepalive_time {for_ever}s;
    keepalive_requests 1000000000;
    client_header_timeout {for_ever}s;
    send_timeout {for_ever}s;
    server {{
        listen {source}:{port};
        root objects;
    }}
}}
"""


def prepare(options: argparse.Namespace) -> None:
    """Make the folder of nginx, its configuration and the objects of the exchanges."""
    objects = options.folder / "objects"
    objects.mkdir(parents=True)
    in_memory(objects)
    (options.folder / "temp").mkdir()
    cycles = json.loads(options.exchanges.read_text())["cycles"]
    for size in {one["body_bytes"] for cycle in cycles for one in cycle["objects"]}:
        with (objects / str(size)).open("wb") as file:
            file.truncate(size)
    logged = "{" + ",".join(f'"{key}":{value}' for key, value in LOGGED.items()) + "}"
    source = f"[{options.source}]" if ":" in options.source else options.source
    # nginx as root would otherwise look for the user `nobody`, and give it its folders
    user = "user root root;\n" if os.geteuid() == 0 else ""
    text = CONFIGURATION.format(source=source, port=options.port, for_ever=FOR_EVER_S, logged=logged, user=user)
    (options.folder / "nginx.conf").write_text(text)


def in_memory(folder: Path) -> None:
    """Mount a file system in memory there, seen by this process and its children only, if this is allowed."""
    private = LIBC.unshare(CLONE_NEWNS) == 0 and LIBC.mount(None, b"/", None, MS_REC | MS_PRIVATE, None) == 0
    if private:
        LIBC.mount(b"objects", os.fsencode(folder), b"tmpfs", 0, b"mode=755")


def serve(options: argparse.Namespace) -> NoReturn:
    """Run nginx until SIGTERM; SystemExit with a message if it ends by itself."""
    folder = options.folder.resolve()
    argv = [options.nginx, "-p", f"{folder}/", "-c", folder / "nginx.conf", "-e", "stderr"]
    # an exception of the handler could come while nginx is being started, and leave it and its folders behind
    is_over, woken = os.pipe()
    os.set_blocking(woken, False)
    signal.set_wakeup_fd(woken)
    signal.signal(signal.SIGTERM, lambda _number, _frame: None)
    try:
        nginx = subprocess.Popen(argv, cwd=folder, preexec_fn=lambda: LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL))
    except OSError as problem:
        raise SystemExit(f"{options.nginx}: {problem.strerror}") from None
    pidfd = os.pidfd_open(nginx.pid)
    try:
        if is_over in select.select([pidfd, is_over], [], [])[0]:
            sys.exit(128 + signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # this is under way
        nginx.terminate()
        if not select.select([pidfd], [], [], GRACE_S)[0]:
            nginx.kill()
        status = nginx.wait()
        LIBC.umount2(os.fsencode(folder / "objects"), MNT_DETACH)
        for name in ("objects", "temp"):
            shutil.rmtree(folder / name, ignore_errors=True)
    ended = f"was killed by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
    raise SystemExit(f"nginx {ended}")


def _stop(_number: int, _frame: object) -> NoReturn:
    sys.exit(128 + signal.SIGTERM)


def main() -> None:
    """Serve as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nginx", required=True, help="the program")
    parser.add_argument("--source", required=True, help="own address")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--exchanges", type=Path, required=True, help="file with the objects")
    parser.add_argument("--folder", type=Path, required=True, help="new folder for nginx")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, _stop)
    prepare(options)
    serve(options)


if __name__ == "__main__":
    main()
