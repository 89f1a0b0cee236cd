# The parent of containerd: parent.sh DIRECTORY NAME [NETWORK-NAMESPACE]
# Keeps it running until whoever started this is gone, then takes away what is left.
directory=$1
name=$2
socket=$directory/containerd.sock
inside=
if [ -n "$3" ]; then inside="nsenter --net=/run/netns/$3"; fi

(
    while [ ! -e "$directory/stop" ]; do
        $inside containerd -c "$directory/config.toml" >>"$directory/containerd.log" 2>&1 &
        echo $! >"$directory/pid"
        wait $!
    done
) &

cat >/dev/null # ends when the other end of the pipe is closed

networks=$(for id in $(ctr -a "$socket" -n k8s.io containers ls -q 2>/dev/null); do
    ctr -a "$socket" -n k8s.io containers info "$id" | grep -o '/var/run/netns/cni-[0-9a-f-]*'
done | sort -u)
touch "$directory/stop"
kill -9 "$(cat "$directory/pid")" 2>/dev/null

# What runs in containers is in cgroups of this name, and shims name the directory.
for procs in $(find /sys/fs/cgroup -path "*/$name/*" -name cgroup.procs 2>/dev/null); do
    for pid in $(cat "$procs" 2>/dev/null); do kill -9 "$pid" 2>/dev/null; done
done
for process in /proc/[0-9]*; do
    case $(tr '\0' ' ' <"$process/cmdline" 2>/dev/null) in
    *containerd-shim*"$directory"*) kill -9 "${process#/proc/}" 2>/dev/null ;;
    esac
done
for network in $networks; do
    umount -l "$network" 2>/dev/null
    rm -f "$network"
done
$inside ip link delete "$name" 2>/dev/null
# Ports of the machine that led to Pods.
mapped=$(iptables -t nat -n --line-numbers -L CNI-HOSTPORT-DNAT 2>/dev/null | grep "name: \"$name\"")
for number in $(echo "$mapped" | cut -d ' ' -f 1 | sort -rn); do
    iptables -t nat -D CNI-HOSTPORT-DNAT "$number"
done
for chain in $(echo "$mapped" | grep -o 'CNI-DN-[0-9a-f]*'); do
    iptables -t nat -F "$chain" && iptables -t nat -X "$chain"
done
grep -o " $directory/[^ ]*" /proc/self/mounts | sort -r | while read -r mount; do
    umount -l "$mount" 2>/dev/null
done
for try in 1 2 3 4 5; do
    find /sys/fs/cgroup -depth -type d \( -path "*/$name" -o -path "*/$name/*" \) -exec rmdir {} + 2>/dev/null
    sleep 0.2
done
rm -f /var/lib/cni/results/"$name"-*
rm -rf "$directory"
