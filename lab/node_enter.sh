#!/bin/bash
# Becomes a machine: enters its control groups and its network, then starts its PID 1 in namespaces of
# its own. When that PID 1 ends, the kernel ends every process of the machine and drops its mounts.
# usage: node_enter.sh NETWORK-NAMESPACE INIT CGROUP-PROCS-FILE...
set -euo pipefail
namespace=$1 init=$2
shift 2
for group in "$@"; do echo $$ >"$group"; done
exec nsenter --net="/run/netns/$namespace" \
  unshare --fork --pid --mount --uts --ipc --cgroup --mount-proc --kill-child=KILL "$init"
