"""One Kafka broker in KRaft mode, from the jars that `./test` fetched."""

import glob
import os
import subprocess
import uuid

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from .procs import Proc, free_port, wait_until

JARS = os.path.join(os.environ.get("RIVERDELTA_CACHE", os.path.expanduser("~/.cache/riverdelta")), "kafka")


class Kafka:
    def __init__(self, directory: str):
        self.directory = str(directory)
        self.port, self.controller_port = free_port(), free_port()
        self.log = os.path.join(self.directory, "kafka.log")
        self.proc: Proc | None = None

    @property
    def broker(self) -> str:
        return f"127.0.0.1:{self.port}"

    def _java(self, heap: str) -> list[str]:
        assert glob.glob(f"{JARS}/kafka_2.13-*.jar"), f"no Kafka jars in {JARS}: run ./test once"
        return ["java", f"-Xmx{heap}", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
                f"-Dlog4j.configuration=file:{self.directory}/log4j.properties", "-cp", f"{JARS}/*"]

    def init(self) -> "Kafka":
        os.makedirs(self.directory, exist_ok=True)
        with open(f"{self.directory}/log4j.properties", "w") as f:
            f.write("log4j.rootLogger=WARN, out\nlog4j.appender.out=org.apache.log4j.ConsoleAppender\n"
                    "log4j.appender.out.layout=org.apache.log4j.PatternLayout\nlog4j.appender.out.layout.ConversionPattern=%d %p %m (%c)%n\n")
        with open(f"{self.directory}/server.properties", "w") as f:
            f.write("\n".join([
                "process.roles=broker,controller", "node.id=1",
                f"controller.quorum.voters=1@127.0.0.1:{self.controller_port}",
                f"listeners=PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{self.controller_port}",
                f"advertised.listeners=PLAINTEXT://127.0.0.1:{self.port}",
                "controller.listener.names=CONTROLLER", "inter.broker.listener.name=PLAINTEXT",
                "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
                f"log.dirs={self.directory}/logs", "num.partitions=1",
                "offsets.topic.replication.factor=1", "offsets.topic.num.partitions=1",
                "transaction.state.log.replication.factor=1", "transaction.state.log.min.isr=1",
                "transaction.state.log.num.partitions=1", "group.initial.rebalance.delay.ms=0",
                "auto.create.topics.enable=false", "",
            ]))
        subprocess.run(
            [*self._java("256m"), "kafka.tools.StorageTool", "format", "-t", uuid.uuid4().hex[:22], "-c", f"{self.directory}/server.properties"],
            check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        )
        return self

    def start(self) -> "Kafka":
        self.proc = Proc([*self._java("512m"), "kafka.Kafka", f"{self.directory}/server.properties"], self.log)

        def ready():
            if not self.proc.running():
                raise RuntimeError(self.proc.tail())
            return self.admin().list_topics(timeout=2)

        wait_until(ready, 90, every=0.2, what="Kafka ready")
        return self

    def stop(self):
        if self.proc:
            self.proc.kill()

    def admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.broker, "log_level": 0})

    def create_topic(self, name: str, partitions: int = 1, **config):
        admin = self.admin()  # the handle must outlive the future
        admin.create_topics([NewTopic(name, partitions, 1, config={k.replace("_", "."): str(v) for k, v in config.items()})])[name].result(30)
        wait_until(lambda: len(admin.list_topics(name, timeout=2).topics[name].partitions) == partitions, what=f"topic {name}")

    def delete_topic(self, name: str):
        admin = self.admin()
        admin.delete_topics([name])[name].result(30)

    def producer(self, **config) -> Producer:
        return Producer({"bootstrap.servers": self.broker, "linger.ms": 1, "enable.idempotence": True, **{k.replace("_", "."): v for k, v in config.items()}})

    def produce(self, topic: str, *messages):
        """Messages: a value, or (key, value), or a dict of produce()'s arguments; then waits until all are acknowledged."""
        p = self.producer()
        errors = []
        for m in messages:
            kwargs = m if isinstance(m, dict) else {"key": m[0], "value": m[1]} if isinstance(m, tuple) else {"value": m}
            p.produce(topic, on_delivery=lambda e, _: e and errors.append(e), **kwargs)
            p.poll(0)
        p.flush(30)
        assert not errors, errors

    def consume(self, topic: str, partitions: int = 1, seconds: float = 20, committed: bool = True) -> list:
        """All messages that the topic holds now."""
        c = Consumer({"bootstrap.servers": self.broker, "group.id": uuid.uuid4().hex, "enable.partition.eof": True,
                      "isolation.level": "read_committed" if committed else "read_uncommitted", "auto.offset.reset": "earliest"})
        try:
            c.assign([TopicPartition(topic, p, 0) for p in range(partitions)])
            out, open_partitions = [], set(range(partitions))
            while open_partitions:
                m = c.poll(seconds)
                assert m is not None, f"no answer from {topic}"
                if m.error():
                    open_partitions.discard(m.partition())
                else:
                    out.append(m)
            return out
        finally:
            c.close()
