"""A PostgreSQL 15 server of our own: the judge of SQL meaning, and an upstream for CDC."""

import glob
import os
import pwd
import shutil
import signal
import subprocess

import psycopg

from .procs import Proc, free_port, wait_until


def bin_dir() -> str:
    found = os.environ.get("RIVERDELTA_PG_BIN") or next(iter(glob.glob("/usr/lib/postgresql/15/bin")), None)
    if found:
        return found
    path = shutil.which("initdb")
    assert path, "PostgreSQL 15's server programs are needed"
    return os.path.dirname(path)


class Postgres:
    """UTF8, C.UTF-8 (the collation that Riverdelta has), wal_level=logical."""

    def __init__(self, directory: str):
        self.directory = str(directory)
        self.data_dir = os.path.join(self.directory, "data")
        self.log = os.path.join(self.directory, "postgres.log")
        self.port = free_port()
        self.proc: Proc | None = None
        # The server refuses to run as root.
        self.prefix = ["runuser", "-u", "postgres", "--"] if os.getuid() == 0 else []

    def init(self) -> "Postgres":
        os.makedirs(self.directory, exist_ok=True)
        if self.prefix:
            user = pwd.getpwnam("postgres")
            os.chown(self.directory, user.pw_uid, user.pw_gid)
            parent = self.directory
            while (parent := os.path.dirname(parent)) != "/":
                if os.stat(parent).st_mode & 0o005 != 0o005 and os.stat(parent).st_uid == os.getuid():
                    os.chmod(parent, os.stat(parent).st_mode | 0o055)
        subprocess.run(
            [*self.prefix, f"{bin_dir()}/initdb", "-D", self.data_dir, "-U", "postgres", "--auth=trust", "--encoding=UTF8",
             "--locale=C.UTF-8", "--no-sync"],
            check=True, stdout=subprocess.DEVNULL, cwd="/",
        )
        with open(os.path.join(self.data_dir, "postgresql.conf"), "a") as f:
            f.write(
                f"port = {self.port}\nlisten_addresses = '127.0.0.1'\nunix_socket_directories = ''\nwal_level = logical\n"
                "fsync = off\nmax_wal_senders = 20\nmax_replication_slots = 20\nmax_connections = 60\nshared_buffers = 64MB\n"
                "timezone = 'UTC'\nwal_sender_timeout = 10s\n"
            )
        return self

    def with_tls(self) -> "Postgres":
        """Serves TLS only, with a certificate for `localhost`. `ca` is the authority that signed it, `other_ca` one that did not.
        [`use_certificate`] changes it to `old` (version 1, without names) or `own` (it signed itself)."""
        d = self.directory

        def openssl(*args: str):
            subprocess.run(["openssl", *args], check=True, cwd=d, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

        for ca in ("ca", "other_ca"):
            openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30", "-subj", f"/CN={ca}", "-keyout", f"{ca}.key", "-out", f"{ca}.pem")
        openssl("req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-keyout", "server.key", "-out", "server.csr")
        with open(f"{d}/server.ext", "w") as f:
            f.write("subjectAltName = DNS:localhost\n")
        openssl("x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "30", "-extfile", "server.ext", "-out", "server.pem")
        openssl("x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "30", "-out", "old.pem")
        openssl("req", "-x509", "-key", "server.key", "-days", "30", "-subj", "/CN=localhost", "-addext", "subjectAltName = DNS:localhost", "-out", "own.pem")
        self.use_certificate("server")
        self.own = open(f"{d}/own.pem").read()
        self.ca, self.other_ca = (open(f"{d}/{ca}.pem").read() for ca in ("ca", "other_ca"))
        with open(f"{self.data_dir}/postgresql.conf", "a") as f:
            f.write("ssl = on\nssl_cert_file = 'server.pem'\nssl_key_file = 'server.key'\n")
        with open(f"{self.data_dir}/pg_hba.conf", "w") as f:
            f.write("hostssl all all all trust\n")
        return self

    def use_certificate(self, name: str):
        for source, target in (("server.key", "server.key"), (f"{name}.pem", "server.pem")):
            target = shutil.copy(f"{self.directory}/{source}", f"{self.data_dir}/{target}")
            os.chmod(target, 0o600)
            if self.prefix:
                shutil.chown(target, "postgres", "postgres")
        if self.proc:
            self.sql("SELECT pg_reload_conf()")

    def start(self) -> "Postgres":
        self.proc = Proc([*self.prefix, f"{bin_dir()}/postgres", "-D", self.data_dir], self.log, cwd="/")
        wait_until(lambda: self.sql("SELECT 1"), 60, what="PostgreSQL ready")
        return self

    def stop(self):
        if self.proc:
            # runuser passes SIGTERM on; the server itself must get the fast shutdown.
            with open(os.path.join(self.data_dir, "postmaster.pid")) as f:
                os.kill(int(f.readline()), signal.SIGINT)
            self.proc.popen.wait(60)

    @property
    def dsn(self) -> str:
        return f"host=127.0.0.1 port={self.port} user=postgres dbname=postgres"

    def connect(self, dbname: str = "postgres", **kwargs) -> psycopg.Connection:
        return psycopg.connect(self.dsn, dbname=dbname, **{"autocommit": True, "connect_timeout": 10, **kwargs})

    def sql(self, *statements: str, dbname: str = "postgres"):
        with self.connect(dbname) as c:
            rows = None
            for s in statements:
                cur = c.execute(s)
                rows = cur.fetchall() if cur.description else None
            return rows

    def pgbench(self, *args: str, dbname: str = "postgres", **kwargs) -> subprocess.Popen:
        return subprocess.Popen(
            [f"{bin_dir()}/pgbench", "-h", "127.0.0.1", "-p", str(self.port), "-U", "postgres", *args, dbname],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **kwargs,
        )


def connect_pg(server, pg, db: str, name: str = "c"):
    """Makes a connection to the database in a Riverdelta."""
    server.sql(f"CREATE CONNECTION {name} TO POSTGRES (HOST '127.0.0.1', PORT {pg.port}, USER 'postgres', DATABASE '{db}')")


def status(r, source: str = "s"):
    """(status, detail) of a source of a Riverdelta."""
    return r.sql(f"SELECT status, coalesce(detail, '') FROM rd_catalog.sources WHERE name = '{source}'")[0]
