"""`waap healthcheck`: for containers, whose supervisors can only start programs."""

import socket
import subprocess
import threading

import pytest

from running import free_port


def test_healthy(waap, run_waap):
    program = waap("--collector.disable-defaults")
    address = f"--web.listen-address=127.0.0.1:{program.port}"
    done = run_waap("healthcheck", address)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_all_addresses_are_reached_on_loopback(waap, run_waap):
    port = free_port()
    waap("--collector.disable-defaults", f"--web.listen-address=:{port}")
    assert run_waap("healthcheck", f"--web.listen-address=:{port}").returncode == 0
    assert run_waap("healthcheck", f"--web.listen-address=0.0.0.0:{port}").returncode == 0


def test_unix_socket_and_environment(waap, run_waap, tmp_path):
    address = f"unix:{tmp_path}/web.sock"
    waap("--collector.disable-defaults", f"--web.listen-address={address}")
    done = run_waap("healthcheck", env={"WAAP_WEB_LISTEN_ADDRESS": address})
    assert done.returncode == 0, done.stderr


def test_nobody_there(run_waap):
    done = run_waap("healthcheck", f"--web.listen-address=127.0.0.1:{free_port()}")
    assert done.returncode == 1
    assert "Connection refused" in done.stderr


def test_wrong_flag(run_waap):
    done = run_waap("healthcheck", "--web.listen=x")
    assert done.returncode == 2
    assert "--web.listen" in done.stderr


@pytest.mark.parametrize(
    "answer, code",
    [
        (b"HTTP/1.1 401 Unauthorized\r\n\r\n", 0),
        (b"HTTP/1.1 503 Service Unavailable\r\n\r\n", 1),
        (b"SSH-2.0-OpenSSH\r\n", 1),
        (b"", 1),
    ],
)
def test_answers(run_waap, answer, code):
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve():
            connection, _ = server.accept()
            with connection:
                connection.recv(1000)
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        port = server.getsockname()[1]
        done = run_waap("healthcheck", f"--web.listen-address=127.0.0.1:{port}")
        thread.join()
    assert done.returncode == code, done.stderr


@pytest.mark.parametrize("client_auth", ["", "client_auth_type: RequireAnyClientCert\n"])
def test_tls(waap, run_waap, tmp_path, client_auth):
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=x"]
        + ["-keyout", tmp_path / "key", "-out", tmp_path / "crt"],
        check=True,
        capture_output=True,
    )
    text = "tls_server_config:\n  cert_file: crt\n  key_file: key\n"
    (tmp_path / "web.yml").write_text(text + ("  " + client_auth if client_auth else ""))
    port = free_port()
    flags = [f"--web.listen-address=127.0.0.1:{port}", f"--web.config.file={tmp_path}/web.yml"]
    waap("--collector.disable-defaults", *flags)
    done = run_waap("healthcheck", *flags)
    assert done.returncode == 0, done.stderr


def test_a_daemon_on_another_port_is_found_without_flags(waap_binary, tmp_path):
    """As in a container that shares the host's processes: its network is its own."""
    probe = subprocess.run(["unshare", "--net", "true"], capture_output=True)
    if probe.returncode != 0:
        pytest.skip("no right to make a network namespace")
    script = """
        ip link set lo up
        "$0" serve --collector.disable-defaults --push.table= --push.socket= --web.listen-address=127.0.0.1:9555 2>"$1" &
        for i in $(seq 100); do grep -q "listening on" "$1" && break; sleep 0.1; done
        "$0" healthcheck
        code=$?
        kill $!
        wait $!
        "$0" healthcheck && code=9
        exit $code"""
    done = subprocess.run(["unshare", "--net", "sh", "-c", script, waap_binary, tmp_path / "log"], capture_output=True,
                          text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("Connection refused") == 1
