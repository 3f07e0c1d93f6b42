#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# A transfer of 2 MB by an unchanged TCP program under `sctp-multipath run --convert`, path 1 cut in the middle.
# The hosts are namespaces. launch.sh NAME; RUN is the command, ROOT the folder with the packages' usr/, T a folder.
# Prints the paths before the cut, "took MILLISECONDS", and "same" if the file has arrived as it was.
# shellcheck disable=SC2317,SC2086 # functions are called by name; RUN is several words

set -u
cd "$T" || exit 1

here="ip netns exec host1 $RUN --convert"
there="ip netns exec host2 $RUN --convert"

lose() {
	for to in to-host1 to-host2; do
		ip netns exec mid-path1 tc qdisc change dev $to root netem delay 20ms loss "$1%"
	done
}

# shellcheck disable=SC2016 # awk's
paths() {
	ip netns exec host1 awk 'NR > 1 { print $1, $NF }' /proc/net/sctp/remaddr | sort -u
}

server_curl() {
	exec $there python3 -m http.server 8000 --bind 0.0.0.0 >server.log 2>&1
}

client_curl() {
	$here curl -sS --limit-rate 200k -o got http://10.1.2.1:8000/file
}

server_python3() {
	server_curl
}

client_python3() {
	$here python3 -c "
import time, urllib.request
with urllib.request.urlopen('http://10.1.2.1:8000/file') as source, open('got', 'wb') as out:
    while data := source.read(20000):
        out.write(data)
        time.sleep(0.1)
"
}

server_rsync() {
	printf '%s\n' 'use chroot = no' 'uid = root' 'gid = root' '[m]' "path = $T" 'read only = yes' >rsyncd.conf
	exec $there "$ROOT/usr/bin/rsync" --daemon --no-detach --port 8730 --config rsyncd.conf >server.log 2>&1
}

client_rsync() {
	$here "$ROOT/usr/bin/rsync" --bwlimit=200 rsync://10.1.2.1:8730/m/file got
}

server_ssh() {
	ssh-keygen -q -t ed25519 -N '' -f key
	cp /etc/passwd passwd
	grep -q ^sshd: passwd || echo 'sshd:x:100:65534::/run/sshd:/usr/sbin/nologin' >>passwd
	mount --bind passwd /etc/passwd
	mkdir -p /run/sshd
	printf '%s\n' "AuthorizedKeysFile $T/key.pub" 'StrictModes no' 'UsePAM no' >sshd_config
	exec $there "$ROOT/usr/sbin/sshd" -D -e -f sshd_config -h "$T/key" -p 8022 >server.log 2>&1
}

client_ssh() {
	# shellcheck disable=SC2016 # the shell of the other end is meant
	$here --nodelay ssh -i key -p 8022 -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null root@10.1.2.1 \
		"cd $T; "'for n in $(seq 0 99); do tail -c +$((n * 20000 + 1)) file | head -c 20000; sleep 0.1; done' >got
}

head -c 2000000 /dev/urandom >file
"server_$1" &
server=$!
sleep 3
begin=$(date +%s%N)
(
	sleep 6
	paths
	lose 100
) &
"client_$1"
code=$?
echo "took $((($(date +%s%N) - begin) / 1000000))"
kill "$server"
lose 0
cmp got file && echo same
[ "$code" = 0 ] || cat server.log
exit "$code"
