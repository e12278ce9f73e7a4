#!/bin/sh
# entrypoint.sh: the command of the image, `manet` without its set-up; everything is built.
set -eu
# A run's group is in version 2 of cgroups, which podman hides where version 1 is mounted beside it. A container that may mount
# nothing has no use for it: its runs are those of an ordinary user (docs/rootless.md).
if ! grep -q ' - cgroup2 ' /proc/self/mountinfo; then
    mkdir -p /run/cgroup2
    mount -t cgroup2 none /run/cgroup2 2>/dev/null || rmdir /run/cgroup2
fi
exec /opt/manet/.venv/bin/python -P -m testbed "$@"
