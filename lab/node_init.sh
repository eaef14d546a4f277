#!/bin/bash
# PID 1 of a machine: gives it a disk, a name and control groups of its own, then keeps containerd,
# kubelet and kube-proxy running. Its settings come in the environment:
#   NODE_NAME NODE_DISK (folder) NODE_CGROUP (below each hierarchy) NODE_IP NODE_LABELS NODE_TAINTS
#   LAB_BIN (folder of programs) LAB_PROXY_KUBECONFIG POD_NETWORK
set -u

mount --make-rprivate /
mount -t tmpfs -o mode=755 tmpfs /run
mkdir -p /run/lab /run/netns
mount --bind "$NODE_DISK/log" /var/log
mount --bind "$NODE_DISK/kubelet" /var/lib/kubelet
mount --bind "$NODE_DISK/cni-state" /var/lib/cni

if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
  # v2: a group may hold either processes or groups with controllers, so ours move one level down.
  mount -t cgroup2 cgroup2 /sys/fs/cgroup
  mkdir -p /sys/fs/cgroup/machine
  while read -r pid; do echo "$pid" >/sys/fs/cgroup/machine/cgroup.procs; done </sys/fs/cgroup/cgroup.procs
  for controller in $(cat /sys/fs/cgroup/cgroup.controllers); do
    echo "+$controller" >/sys/fs/cgroup/cgroup.subtree_control
  done
else
  for hierarchy in /sys/fs/cgroup/*; do
    [ -d "$hierarchy/$NODE_CGROUP" ] && mount --bind "$hierarchy/$NODE_CGROUP" "$hierarchy"
  done
fi
mount --make-rshared /
hostname "$NODE_NAME"

# keep NAME COMMAND...: start it again whenever it ends; its number is in /run/lab/NAME.pid
keep() {
  local name=$1
  shift
  while :; do
    "$@" >>"$NODE_DISK/$name.log" 2>&1 &
    echo $! >"/run/lab/$name.pid"
    wait $!
    echo "== $name exited $?" >>"$NODE_DISK/$name.log"
    sleep 1
  done
}

keep containerd containerd --config "$NODE_DISK/containerd.toml" &
for _ in $(seq 100); do
  [ -S /run/containerd/containerd.sock ] && break
  sleep 0.1
done
keep kubelet "$LAB_BIN/kubelet" --config "$NODE_DISK/kubelet.json" --kubeconfig "$NODE_DISK/kubeconfig" \
  --hostname-override "$NODE_NAME" --node-ip "$NODE_IP" \
  --node-labels "$NODE_LABELS" --register-with-taints "$NODE_TAINTS" &
keep kube-proxy "$LAB_BIN/kube-proxy" --kubeconfig "$LAB_PROXY_KUBECONFIG" --hostname-override "$NODE_NAME" \
  --proxy-mode iptables --cluster-cidr "$POD_NETWORK" --conntrack-max-per-core 0 \
  --metrics-bind-address 127.0.0.1:10249 &

# Children of ended processes come to PID 1: bash reaps them while it waits.
while :; do
  wait -n || true
  sleep 0.2
done
