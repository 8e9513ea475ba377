# Stops and deletes a cluster when no process uses it.
#
#   $1  the folder with the lock files and the cluster-* folders
#   $2  seconds that the cluster must stay unused
#   $3  what to delete in the end: the folder itself, or the clusters in it
#
# The kernel frees the locks of a process however it ends, so this also works after `kill -9`.
folder=$1
grace=$2
delete=$3

# The signals of the terminal of the test are not meant for the reaper.
trap '' HUP INT

# One reaper per folder. The wait bridges the moment in which another process checks whether a reaper runs.
exec 9<"$folder/reaper" || exit 0
flock -w 10 9 || exit 0

# A pid file may outlive its server, and its number may belong to another process by now.
is_server() {
    grep -q -F -e "$2" "/proc/$1/cmdline" 2>/dev/null
}

stop() {
    for data in "$folder"/cluster-*/data; do
        pid=$(head -n 1 "$data/postmaster.pid" 2>/dev/null)
        [ -n "$pid" ] && is_server "$pid" "$data" || continue
        kill -QUIT "$pid"
        tries=0
        while is_server "$pid" "$data"; do
            tries=$((tries + 1))
            [ "$tries" -lt 100 ] || kill -KILL "$pid"
            [ "$tries" -lt 110 ] || break
            sleep 0.1
        done
    done
}

remove() {
    case $delete in
    everything) rm -rf "$folder" ;;
    clusters) rm -rf "$folder/current" "$folder"/cluster-* ;;
    esac
}

# Children that wait for long do not inherit the lock of the reaper: they would keep it if the reaper is killed.
while [ -e "$folder/members" ]; do
    flock "$folder/members" true 9<&-
    joined=$(wc -c <"$folder/members") || exit 0
    sleep "$grace" 9<&-
    # A process that joins holds this lock, so no process joins from here to the end.
    exec 8<"$folder/start" || exit 0
    if flock -w 60 8 && [ "$(wc -c <"$folder/members")" = "$joined" ] && flock -n "$folder/members" true; then
        stop
        # A program that a killed process had started may still write for a moment.
        remove || { sleep 1 && remove; }
        exit 0
    fi
    exec 8<&-
done
