#!/bin/sh
# Pid 1 of the guest: runs each trial and prints one line for it on the serial console,
#
#   @@ NAME CODE JSON
#
# which the test on the host judges. Everything else on the console is noise.

export PATH=/bin HOME=/root
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mount -t tmpfs tmpfs /run
mount -t cgroup2 cgroup2 /sys/fs/cgroup
exec </dev/null >/dev/ttyS0 2>/dev/ttyS0
say() { echo "@@ $*"; }

# As a service manager would have it: nobody in the root group, controllers handed down.
mkdir /sys/fs/cgroup/system /sys/fs/cgroup/user
echo $$ >/sys/fs/cgroup/system/cgroup.procs
echo '+memory +pids +cpu' >/sys/fs/cgroup/cgroup.subtree_control
chown -R user:user /home/user

# The record of a run, by root or by a user.
record() {
    name=$1
    shift
    json=$(glovebox --state-dir /var/lib/glovebox run --json "$@" 2>/run/stderr)
    say "$name" $? "${json:-$(cat /run/stderr)}"
}
as_user() {
    name=$1
    shift
    json=$(su -- user -c 'glovebox --state-dir /home/user/state run --json "$@"' sh "$@" 2>/run/stderr)
    say "$name" $? "${json:-$(cat /run/stderr)}"
}
groups() { find /sys/fs/cgroup -name 'glovebox-*' | wc -l; }
# Its keeper, which is the only child that it has.
keeper_of() { cat /proc/$1/task/$1/children; }
wait_for() { until [ -e "$1" ]; do usleep 10000; done; }
gone() { while kill -0 $1 2>/dev/null; do usleep 10000; done; }
quoted() { tr '\n`"' ' .' </run/stderr; }

memory='dd if=/dev/zero of=/dev/null bs=120M count=1'
bomb='(i=0; while [ $i -lt 60 ]; do sleep 100 & i=$((i+1)); done); exec sleep 1'
busy='while :; do :; done'

limits() {
    $1 "$2-kernel-limits" --require kernel-limits -- true
    $1 "$2-memory" --memory 64M -- $memory
    $1 "$2-pids" --pids 16 --timeout 5s -- sh -c "$bomb"
    $1 "$2-cpu" --cpus 0.25 --timeout 2s -- sh -c "$busy"
    say "$2-left" 0 "$(groups)"
}

say kernel 0 "\"$(uname -r)\""

mkdir /root/work && cd /root/work || exit 1
record root-plain -- sh -c 'echo hello; echo kept >file; ls /home /root; echo x >/etc/x'
say root-kept 0 "\"$(cat file) $(stat -c %u file)\""
record root-memory-enough --memory 256M -- $memory
record root-cpu-time --cpu-time 500ms -- sh -c "$busy"
limits record root

# kill -9 while the payload runs, with children that do not want to go: the keeper tidies up.
glovebox --state-dir /var/lib/glovebox run -- sh -c \
    'trap "" TERM; : >running; setsid sleep 1000 & sleep 1000' &
engine=$!
wait_for running
say kill-before 0 "$(groups)"
keeper=$(keeper_of $engine)
kill -9 $engine
wait $engine
gone $keeper
say kill-groups 0 "$(groups)"
say kill-processes 0 "$(ps -o comm | grep -c -E '^(glovebox|sleep)')"
glovebox --state-dir /var/lib/glovebox run -- true 2>/run/stderr
say kill-next $? "\"$(quoted)\""

# The short tier ends here: a second kernel that boots and holds its limits, and a kill that leaves nothing.
if ! grep -q trials=all /proc/cmdline; then
    say end 0 null
    poweroff -f
fi

# And when nobody is left to tidy up, the next start does.
rm running
glovebox --state-dir /var/lib/glovebox run -- sh -c ': >running; sleep 1000' &
engine=$!
wait_for running
kill -STOP $engine
kill -9 $(keeper_of $engine)
kill -9 $engine
wait $engine
say crash-groups 0 "$(groups)"
glovebox --state-dir /var/lib/glovebox run -- true 2>/run/stderr
say crash-next $? "\"$(quoted)\""
say crash-left 0 "$(groups)"

# The keeper alone: its sandbox dies with it, and `glovebox` says that it failed.
rm running
glovebox --state-dir /var/lib/glovebox run -- sh -c ': >running; sleep 1000' 2>/run/stderr &
engine=$!
wait_for running
kill -9 $(keeper_of $engine)
wait $engine
say keeper-killed $? "\"$(quoted)\""
say keeper-left 0 "$(groups)"
# What is left here must not be counted again below.
find /sys/fs/cgroup -name 'glovebox-*' -exec rmdir {} \; 2>/dev/null

# A user without control groups of their own, then with some that were handed over.
mkdir /home/user/work && chown user /home/user /home/user/work && cd /home/user/work || exit 1
as_user user-plain -- sh -c 'echo hello; echo kept >file; ls /home /root; echo x >/etc/x'
say user-kept 0 "\"$(cat file) $(stat -c %u file)\""
limits as_user user
own=/sys/fs/cgroup/user/own
mkdir $own $own/shell
echo '+memory +pids +cpu' >/sys/fs/cgroup/user/cgroup.subtree_control
chown user $own $own/cgroup.procs $own/cgroup.subtree_control $own/cgroup.threads
chown -R user $own/shell
echo '+memory +pids +cpu' >$own/cgroup.subtree_control
echo $$ >$own/shell/cgroup.procs
limits as_user delegated

say end 0 null
poweroff -f
