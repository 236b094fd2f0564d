#!/usr/bin/env bash
# One Apache Kafka broker (KRaft, no ZooKeeper) for tests. Needs Java 17 and Maven; jars are fetched once into the user's cache.
#
#   kafka.sh start PORT DIR     start a broker on 127.0.0.1:PORT with its data in DIR (made if absent); returns when it serves
#   kafka.sh stop DIR           clean stop; data stays
#   kafka.sh kill DIR           kill -9; data stays
#   kafka.sh topic DIR NAME [PARTITIONS [CONFIG=VALUE ...]]    create a topic
#   kafka.sh drop DIR NAME      delete a topic
#   kafka.sh jars               only fetch the jars; prints the class path
#
# A started broker outlives the shell. Its output is in DIR/kafka.log, its process id in DIR/kafka.pid.
set -euo pipefail

VERSION=3.9.1
CACHE="${XDG_CACHE_HOME:-$HOME/.cache}/riverdelta/kafka/$VERSION"

die() { echo "kafka.sh: $*" >&2; exit 1; }

jars() {
    if [ ! -e "$CACHE/complete" ]; then
        mkdir -p "$CACHE"
        (
            flock 9
            [ -e "$CACHE/complete" ] && exit 0
            cat >"$CACHE/pom.xml" <<POM
<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>riverdelta</groupId><artifactId>kafka-for-tests</artifactId><version>1</version>
<dependencies>
<dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>$VERSION</version></dependency>
<dependency><groupId>org.apache.kafka</groupId><artifactId>kafka-tools</artifactId><version>$VERSION</version></dependency>
</dependencies></project>
POM
            mvn -q -B -Dstyle.color=never -f "$CACHE/pom.xml" dependency:copy-dependencies -DoutputDirectory="$CACHE/jars" -DincludeScope=runtime >&2
            cat >"$CACHE/log4j.properties" <<LOG
log4j.rootLogger=INFO, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d %p %c{1}: %m%n
LOG
            touch "$CACHE/complete"
        ) 9>"$CACHE/lock"
    fi
    echo "$CACHE/jars/*"
}

java_run() { # heap, then class and arguments
    local heap=$1; shift
    java -Xmx"$heap" -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Djava.net.preferIPv4Stack=true -Dlog4j.configuration="file:$CACHE/log4j.properties" \
        -cp "$(jars)" "$@"
}

running() { [ -f "$1/kafka.pid" ] && kill -0 "$(cat "$1/kafka.pid")" 2>/dev/null; }
listening() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

start() {
    local port=$1 dir=$2 controller
    mkdir -p "$dir"; dir=$(cd "$dir" && pwd)
    running "$dir" && die "a broker already runs in $dir"
    listening "$port" && die "port $port is in use"
    jars >/dev/null
    if [ ! -f "$dir/data/meta.properties" ] || [ "$(cat "$dir/port" 2>/dev/null)" != "$port" ]; then
        # The controller's port is part of the configuration: any free one above the broker's.
        controller=$((port + 1)); while listening "$controller"; do controller=$((controller + 1)); done
        cat >"$dir/server.properties" <<CONF
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:$controller
listeners=PLAINTEXT://127.0.0.1:$port,CONTROLLER://127.0.0.1:$controller
advertised.listeners=PLAINTEXT://127.0.0.1:$port
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs=$dir/data
num.partitions=1
broker.session.timeout.ms=2000
broker.heartbeat.interval.ms=500
offsets.topic.num.partitions=1
broker.session.timeout.ms=2000
broker.heartbeat.interval.ms=500
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
broker.session.timeout.ms=2000
broker.heartbeat.interval.ms=500
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
num.network.threads=2
num.io.threads=2
log.cleaner.dedupe.buffer.size=4194304
log.retention.ms=-1
CONF
        echo "$port" >"$dir/port"
    fi
    if [ ! -f "$dir/data/meta.properties" ]; then
        java_run 128m kafka.tools.StorageTool format -t "riverdelta-test-clust1" -c "$dir/server.properties" >"$dir/format.log" 2>&1 ||
            { cat "$dir/format.log" >&2; die "cannot format $dir/data"; }
    fi
    : >"$dir/kafka.log"
    local cp; cp=$(jars)
    setsid nohup java -Xms128m -Xmx512m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Djava.net.preferIPv4Stack=true \
        -Dlog4j.configuration="file:$CACHE/log4j.properties" -cp "$cp" kafka.Kafka "$dir/server.properties" >"$dir/kafka.log" 2>&1 </dev/null &
    echo $! >"$dir/kafka.pid"
    disown
    for _ in $(seq 600); do
        if grep -q 'Kafka Server started' "$dir/kafka.log" && listening "$port"; then return 0; fi
        running "$dir" || { tail -30 "$dir/kafka.log" >&2; die "the broker ended while starting"; }
        sleep 0.1
    done
    tail -30 "$dir/kafka.log" >&2
    halt KILL "$dir"
    die "the broker did not start within 60 s"
}

halt() {
    local signal=$1 dir=$2 pid
    running "$dir" || { rm -f "$dir/kafka.pid"; return 0; }
    pid=$(cat "$dir/kafka.pid")
    kill -"$signal" "$pid" 2>/dev/null || true
    for _ in $(seq 200); do
        kill -0 "$pid" 2>/dev/null || { rm -f "$dir/kafka.pid"; return 0; }
        sleep 0.1
    done
    kill -KILL "$pid" 2>/dev/null || true
    rm -f "$dir/kafka.pid"
}

topic() {
    local dir=$1 name=$2 partitions=${3:-1} args=() c
    for c in "${@:4}"; do args+=(--config "$c"); done
    java_run 128m org.apache.kafka.tools.TopicCommand --bootstrap-server "127.0.0.1:$(cat "$dir/port")" \
        --create --topic "$name" --partitions "$partitions" --replication-factor 1 ${args[@]+"${args[@]}"} >"$dir/topic.log" 2>&1 ||
        { cat "$dir/topic.log" >&2; die "cannot create topic $name"; }
}

drop() {
    java_run 128m org.apache.kafka.tools.TopicCommand --bootstrap-server "127.0.0.1:$(cat "$1/port")" --delete --topic "$2" >"$1/topic.log" 2>&1 ||
        { cat "$1/topic.log" >&2; die "cannot delete topic $2"; }
}

usage() { sed -n '2,12s/^# \{0,1\}//p' "$0" >&2; exit 2; }
verb=${1:-}; shift || true
case "$verb:$#" in
    start:2) start "$1" "$2" ;;
    stop:1) halt TERM "$1" ;;
    kill:1) halt KILL "$1" ;;
    topic:*) [ $# -ge 2 ] || usage; topic "$@" ;;
    drop:2) drop "$@" ;;
    jars:0) jars ;;
    *) usage ;;
esac
