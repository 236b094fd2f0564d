"""The way in: ./start serves, and says how to connect."""

import os
import re
import signal
import subprocess

from harness.procs import Proc, free_port, wait_until

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), ".."))


def test_start_serves_and_stops(tmp_path):
    log = str(tmp_path / "log")
    port = free_port()
    p = Proc([os.path.join(ROOT, "start"), "--data-dir", str(tmp_path / "data"), "--pg-listen", f"127.0.0.1:{port}", "--http-listen", f"127.0.0.1:{free_port()}"], log)
    try:
        wait_until(lambda: not p.running() or "is ready" in p.tail(), 240, what="./start is ready")
        line = re.search(r"ready: (psql .*)", p.tail())
        assert line, p.tail()
        out = subprocess.run([*line[1].split(), "-Atc", "SELECT 42"], capture_output=True, text=True, timeout=30)
        assert out.stdout == "42\n", out.stderr
    finally:
        assert p.stop(signal.SIGTERM) == 0


def test_the_binary_explains_itself(tmp_path):
    from harness.riverdelta import BINARY

    help_text = subprocess.run([BINARY, "serve", "--help"], capture_output=True, text=True, check=True).stdout
    for option in ("--data-dir", "--pg-listen", "--http-listen", "--workers", "RIVERDELTA_DATA_DIR"):
        assert option in help_text
    busy = free_port()
    import socket

    with socket.socket() as s:
        s.bind(("127.0.0.1", busy))
        s.listen()
        out = subprocess.run([BINARY, "--data-dir", str(tmp_path), "--pg-listen", f"127.0.0.1:{busy}", "--http-listen", "127.0.0.1:0"], capture_output=True, text=True, timeout=30)
        assert out.returncode == 1 and f"cannot listen on 127.0.0.1:{busy}" in out.stderr


def test_settings_come_from_the_environment(tmp_path):
    from harness.riverdelta import BINARY

    port = free_port()
    env = {"RIVERDELTA_DATA_DIR": str(tmp_path / "d"), "RIVERDELTA_PG_LISTEN": f"127.0.0.1:{port}", "RIVERDELTA_HTTP_LISTEN": "127.0.0.1:0", "RIVERDELTA_WORKERS": "1"}
    p = Proc([BINARY], str(tmp_path / "log"), env)
    try:
        wait_until(lambda: not p.running() or "is ready" in p.tail(), 60, what="ready")
        assert f"-p {port}" in p.tail() and "1 workers" in p.tail()
    finally:
        assert p.stop() == 0


def test_tls(tmp_path):
    from harness.riverdelta import BINARY

    key, cert, port = str(tmp_path / "key.pem"), str(tmp_path / "cert.pem"), free_port()
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", cert, "-days", "2", "-subj", "/CN=localhost"], check=True, capture_output=True)
    p = Proc([BINARY, "--data-dir", str(tmp_path / "d"), "--pg-listen", f"127.0.0.1:{port}", "--http-listen", "127.0.0.1:0", "--tls-cert", cert, "--tls-key", key], str(tmp_path / "log"))
    try:
        wait_until(lambda: not p.running() or "is ready" in p.tail(), 60, what="ready")
        for mode in ("require", "prefer", "disable"):
            out = subprocess.run(["psql", f"host=127.0.0.1 port={port} user=a dbname=riverdelta sslmode={mode}", "-Atc", "SELECT 7", "-c", r"\conninfo"], capture_output=True, text=True, timeout=30)
            assert out.stdout.startswith("7\n"), out.stderr
            assert ("SSL connection" in out.stdout) == (mode != "disable")
    finally:
        assert p.stop() == 0
