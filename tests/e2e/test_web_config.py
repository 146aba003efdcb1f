"""TLS, client certificates, passwords, headers and rates as --web.config.file wants them."""

import concurrent.futures
import contextlib
import http.client
import operator
import pathlib
import signal
import socket
import ssl
import statistics
import subprocess
import threading

import pytest

from authority import QUICK_SECRET, SECRET, Authority
from hostile import basic, get_from
from peers import Prometheus, find_program
from running import Waap, free_port
from waiting import LIMIT, wait_until


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("ca"), "ca")


@pytest.fixture(scope="module")
def foreigner(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("foreign"), "foreign")


@pytest.fixture(scope="module")
def server_pair(authority):
    return authority.sign("server")


class WebWaap(Waap):
    """The daemon under a web configuration, spoken to with TLS where `trust` names a CA."""

    def __init__(self, binary, file, *flags, trust=None, pair=None, headers=None):
        self.file = file
        self.headers = headers or {}
        self.context = None
        if trust is not None:
            self.context = ssl.create_default_context(cafile=trust)
            self.context.set_alpn_protocols(["http/1.1"])
            if pair is not None:
                self.context.load_cert_chain(*pair)
        super().__init__(binary, f"--web.config.file={file}", "--web.enable-lifecycle", *flags)

    def connect(self, timeout=LIMIT):
        if self.context is None:
            return super().connect(timeout)
        return http.client.HTTPSConnection(
            "127.0.0.1", self.port, timeout=timeout, context=self.context
        )

    def get(self, path, headers=None, method="GET", timeout=LIMIT):
        return super().get(path, {**self.headers, **(headers or {})}, method, timeout)

    def reload(self):
        return self.get("/-/reload", method="POST")


def tls_config(pair, *lines):
    crt, key = pair
    return "\n".join(
        ["tls_server_config:", f"  cert_file: {crt}", f"  key_file: {key}", *lines, ""]
    )


def s_client(port, *arguments):
    """What openssl's client says after one request."""
    return subprocess.run(
        ["openssl", "s_client", "-connect", f"127.0.0.1:{port}", "-quiet"]
        + [str(argument) for argument in arguments],
        input=b"GET /-/healthy HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
        capture_output=True,
        timeout=LIMIT,
    )


def is_served(done):
    return done.stdout.startswith(b"HTTP/1.1 200")


# ---- TLS ----


@pytest.fixture(scope="module")
def tls_waap(waap_binary, authority, server_pair, tmp_path_factory):
    file = tmp_path_factory.mktemp("tls") / "web.yml"
    file.write_text(tls_config(server_pair))
    with WebWaap(waap_binary, file, trust=authority.crt) as waap:
        yield waap


@pytest.mark.parametrize(
    "version, served", [("tls1", False), ("tls1_1", False), ("tls1_2", True), ("tls1_3", True)]
)
def test_versions(tls_waap, version, served):
    done = s_client(tls_waap.port, f"-{version}", "-cipher", "ALL:@SECLEVEL=0")
    assert is_served(done) == served, done.stderr.decode()


def test_a_scrape_over_tls(tls_waap):
    answer = tls_waap.get("/metrics")
    assert answer.status == 200
    assert "waap_build_info" in answer.text


def test_who_speaks_plainly_to_tls_gets_nothing_and_harms_nobody(tls_waap):
    connection = http.client.HTTPConnection("127.0.0.1", tls_waap.port, timeout=LIMIT)
    with contextlib.closing(connection), pytest.raises((OSError, http.client.HTTPException)):
        connection.request("GET", "/metrics")
        connection.getresponse()
    assert tls_waap.get("/-/healthy").status == 200


def test_who_never_ends_the_handshake_has_to_go(waap_binary, authority, server_pair, tmp_path):
    file = tmp_path / "web.yml"
    file.write_text(tls_config(server_pair))
    with WebWaap(waap_binary, file, "--web.header-timeout=1s", trust=authority.crt) as waap:
        for beginning in (b"", b"\x16\x03\x01", b"\x16\x03\x01\x02\x00\x01"):
            with socket.create_connection(("127.0.0.1", waap.port), timeout=LIMIT) as dawdler:
                dawdler.sendall(beginning)
                assert waap.get("/-/healthy").status == 200
                assert dawdler.recv(1) == b""


def test_a_body_that_arrives_too_slowly_is_answered_over_tls(waap_binary, authority, server_pair, tmp_path):
    file = tmp_path / "web.yml"
    file.write_text(tls_config(server_pair))
    with WebWaap(waap_binary, file, "--web.header-timeout=1s", trust=authority.crt) as waap:
        with contextlib.closing(waap.connect()) as connection:
            connection.putrequest("POST", "/api/v1/push")
            connection.putheader("Content-Length", "1000")
            connection.endheaders(b"x")
            assert connection.getresponse().status == 408


@pytest.mark.parametrize("version", ["tls1_2", "tls1_3"])
def test_client_certificates(waap_binary, authority, foreigner, server_pair, tmp_path, version):
    file = tmp_path / "web.yml"
    file.write_text(
        tls_config(
            server_pair,
            f"  client_ca_file: {authority.crt}",
            "  client_auth_type: RequireAndVerifyClientCert",
        )
    )
    right = authority.sign("client")
    wrong = foreigner.sign("client")

    def served_to(pair):
        arguments = () if pair is None else ("-cert", pair[0], "-key", pair[1])
        return is_served(s_client(waap.port, f"-{version}", *arguments))

    with WebWaap(waap_binary, file, trust=authority.crt, pair=right) as waap:
        assert served_to(right)
        assert not served_to(wrong)
        assert not served_to(None)
        # Another CA from here on: the verdicts swap.
        file.write_text(file.read_text().replace(str(authority.crt), str(foreigner.crt)))
        assert waap.reload().status == 200
        assert not served_to(right)
        assert served_to(wrong)


def test_a_foreign_client_is_told_why(waap_binary, authority, foreigner, server_pair, tmp_path):
    file = tmp_path / "web.yml"
    file.write_text(
        tls_config(
            server_pair,
            f"  client_ca_file: {authority.crt}",
            "  client_auth_type: RequireAndVerifyClientCert",
            "  client_allowed_sans: [scraper.example]",
        )
    )
    right = authority.sign("scraper", "DNS:scraper.example")
    named_otherwise = authority.sign("other", "DNS:other.example")
    wrong = foreigner.sign("scraper", "DNS:scraper.example")
    with WebWaap(waap_binary, file, trust=authority.crt, pair=right) as waap:
        for pair, reason in ((wrong, b"unknown ca"), (named_otherwise, b"access denied")):
            done = s_client(waap.port, "-tls1_2", "-cert", pair[0], "-key", pair[1])
            assert not is_served(done)
            assert reason in done.stderr
        assert waap.get("/-/healthy").status == 200


# ---- reload ----


def serial_of(port):
    pem = ssl.get_server_certificate(("127.0.0.1", port))
    done = subprocess.run(
        ["openssl", "x509", "-noout", "-serial"], input=pem.encode(), capture_output=True
    )
    return done.stdout


def test_reload_swaps_the_certificate(waap_binary, authority, server_pair, tmp_path):
    file = tmp_path / "web.yml"
    file.write_text(tls_config(server_pair))
    with WebWaap(waap_binary, file, trust=authority.crt) as waap:
        before = serial_of(waap.port)
        with contextlib.closing(waap.connect()) as kept:
            kept.request("GET", "/-/healthy")
            assert kept.getresponse().read()
            file.write_text(tls_config(authority.sign("server2")))
            waap.process.send_signal(signal.SIGHUP)
            wait_until(lambda: serial_of(waap.port) != before, what="another certificate")
            # A connection of the old configuration is answered and closed.
            kept.request("GET", "/metrics")
            answer = kept.getresponse()
            assert (answer.status, answer.headers["Connection"]) == (200, "close")
            assert answer.read()
            assert kept.sock is None


def test_reload_under_load_loses_no_request(waap_binary, authority, server_pair, tmp_path):
    file = tmp_path / "web.yml"
    pairs = [server_pair, authority.sign("server3")]
    file.write_text(tls_config(pairs[0]))

    n_served, stopping = [0, 0, 0, 0], threading.Event()

    def scrape(waap, i, path):
        with contextlib.closing(waap.connect()) as kept:
            while not stopping.is_set():
                kept.request("GET", path)  # dials again after "Connection: close"
                answer = kept.getresponse()
                assert answer.status == 200 and answer.read()
                n_served[i] += 1

    with WebWaap(waap_binary, file, trust=authority.crt) as waap:
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            paths = ("/metrics", "/-/healthy", "/metrics", "/-/healthy")
            scrapers = [pool.submit(scrape, waap, i, path) for i, path in enumerate(paths)]

            def all_went_on(before):
                return any(scraper.done() for scraper in scrapers) or all(map(operator.gt, n_served, before))

            for i in range(1, 8):
                file.write_text(tls_config(pairs[i % 2]))
                assert waap.reload().status == 200
                before = list(n_served)
                wait_until(lambda: all_went_on(before), what="a request of each")
            stopping.set()
            for scraper in scrapers:
                scraper.result()


def test_a_broken_file_keeps_the_old(waap_binary, authority, server_pair, tmp_path):
    file = tmp_path / "web.yml"
    file.write_text(tls_config(server_pair))
    with WebWaap(waap_binary, file, trust=authority.crt) as waap:
        assert waap.samples()["waap_config_last_reload_successful"] == "1"
        before = serial_of(waap.port)
        file.write_text(tls_config((server_pair[0], authority.key), "  min_version: TLS10"))
        answer = waap.reload()
        assert answer.status == 500
        for text in (answer.text, waap.output()):
            assert "web.yml:3:13: tls_server_config.key_file: does not match" in text
            assert "web.yml:4:16: tls_server_config.min_version: expected one of TLS12" in text
        assert waap.samples()["waap_config_last_reload_successful"] == "0"
        assert serial_of(waap.port) == before
        file.write_text(tls_config(server_pair))
        assert waap.reload().status == 200
        assert waap.samples()["waap_config_last_reload_successful"] == "1"


def test_renewed_certificates_are_found(waap_binary, authority, server_pair, tmp_path):
    """Nobody sends a signal: the files are looked at now and then."""
    file, crt, key = tmp_path / "web.yml", tmp_path / "live.crt", tmp_path / "live.key"

    def install(pair):
        for source, target in zip(pair, (crt, key)):
            fresh = target.with_suffix(".new")
            fresh.write_bytes(source.read_bytes())
            fresh.rename(target)

    install(server_pair)
    file.write_text(tls_config((crt, key)))
    with WebWaap(waap_binary, file, trust=authority.crt) as waap:
        before = serial_of(waap.port)
        key.write_text("not a key")
        wait_until(lambda: "does not" in waap.output() or "rejected" in waap.output(), what="a refusal")
        assert serial_of(waap.port) == before
        assert waap.samples()["waap_config_last_reload_successful"] == "0"
        install(authority.sign("renewed"))
        wait_until(lambda: serial_of(waap.port) != before, what="the renewed certificate")
        assert waap.samples()["waap_config_last_reload_successful"] == "1"
        assert waap.output().count("changed files rejected") == 1


def test_tls_comes_and_goes(waap_binary, authority, server_pair, tmp_path):
    file = tmp_path / "web.yml"
    file.write_text("")
    with WebWaap(waap_binary, file) as waap:
        plain = waap.context
        file.write_text(tls_config(server_pair))
        assert waap.reload().status == 200
        waap.context = ssl.create_default_context(cafile=authority.crt)
        assert waap.get("/-/healthy").status == 200
        file.write_text("")
        assert waap.reload().status == 200
        waap.context = plain
        assert waap.get("/-/healthy").status == 200


def test_mistakes_at_the_start(waap_binary, tmp_path):
    file = tmp_path / "web.yml"
    file.write_text("basic_auth_users:\n  ann: topsecret\ntls_server_config:\n  cert: x\n")
    done = subprocess.run(
        [waap_binary, "serve", "--push.table=", f"--web.listen-address=127.0.0.1:{free_port()}"]
        + [f"--web.config.file={file}"],
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    assert done.returncode == 2
    assert f"{file}:2:8: basic_auth_users.ann: expected a bcrypt hash" in done.stderr
    assert f"{file}:4:3: tls_server_config: expected key_file or key" in done.stderr
    assert "topsecret" not in done.stderr


# ---- users ----


@pytest.fixture
def users_waap(waap_binary, tmp_path):
    file = tmp_path / "web.yml"
    file.write_text(f"basic_auth_users:\n  ann: {SECRET}\n")
    with WebWaap(waap_binary, file, headers=basic("ann", "secret")) as waap:
        yield waap


def test_passwords(users_waap):
    for headers, status in (
        (basic("ann", "secret"), 200),
        (basic("ann", "wrong"), 401),
        (basic("nobody", "secret"), 401),
        ({"Authorization": "Basic ?"}, 401),
        ({"Authorization": "Bearer secret"}, 401),
        ({"Authorization": ""}, 401),
        (basic("ann", "secret"), 200),
    ):
        for path in ("/metrics", "/", "/-/ready", "/-/reload"):
            method = "POST" if path == "/-/reload" else "GET"
            answer = users_waap.get(path, headers, method)
            assert answer.status == status, (path, headers)
            asks = answer.headers.get("WWW-Authenticate")
            assert asks == ('Basic realm="waap"' if status == 401 else None)


def auth_cpu_ns(waap):
    tasks = pathlib.Path(f"/proc/{waap.process.pid}/task").iterdir()
    [auth] = [task for task in tasks if (task / "comm").read_text() == "auth\n"]
    return int((auth / "schedstat").read_text().split()[0])


def check_ns(waap, password, status):
    """CPU time that is spent on the password of one request."""
    before = auth_cpu_ns(waap)
    assert waap.get("/-/healthy", basic("ann", password)).status == status
    return auth_cpu_ns(waap) - before


def test_a_second_request_needs_no_check(users_waap):
    for password, status in (("secret", 200), ("old", 401)):
        check, *others = [check_ns(users_waap, password, status) for _ in range(6)]
        assert max(others) < check / 4


def test_health_may_be_open(waap_binary, tmp_path):
    file = tmp_path / "web.yml"
    file.write_text(f"basic_auth_users:\n  ann: {SECRET}\n")
    with WebWaap(waap_binary, file, "--web.auth-exempt-health") as waap:
        assert waap.get("/-/healthy").status == 200
        assert waap.get("/-/ready").status == 200
        assert waap.get("/metrics").status == 401


def test_wrong_passwords_delay_nobody(users_waap):
    users_waap.get("/metrics")
    with concurrent.futures.ThreadPoolExecutor(20) as pool:
        guesses = [
            pool.submit(users_waap.get, "/metrics", basic("ann", f"guess {i}")) for i in range(20)
        ]
        waited_for = []  # by each request: guesses that were answered meanwhile

        def n_answered():
            return sum(guess.done() for guess in guesses)

        while (before := n_answered()) < len(guesses):
            assert users_waap.get("/-/healthy").status == 200
            waited_for.append(n_answered() - before)
        assert {guess.result().status for guess in guesses} == {401}
    assert statistics.median(waited_for) == 0


@pytest.mark.parametrize("source", ["127.0.0.1", "127.0.0.2"])
def test_guesses_keep_no_right_password_out(waap_binary, tmp_path, source):
    """A login waits for a few of the guesses that are answered meanwhile, not for all of them."""
    file = tmp_path / "web.yml"
    names = [f"user{i}" for i in range(6)]
    file.write_text("basic_auth_users:\n" + "".join(f"  {name}: {SECRET}\n" for name in names))
    guessed, answered, stopping = [], [], threading.Event()

    def guess(guesser):
        for i in range(10_000):
            if stopping.is_set():
                break
            guessed.append(guesser)
            answered.append(get_from(waap.port, source, basic("user0", f"{guesser} {i}")))

    with WebWaap(waap_binary, file) as waap, concurrent.futures.ThreadPoolExecutor(30) as pool:
        guessers = [pool.submit(guess, i) for i in range(30)]
        try:
            wait_until(lambda: len(guessed) - len(answered) == 30 and answered)
            for name in names:
                before = len(answered)
                assert get_from(waap.port, "127.0.0.1", basic(name, "secret")) == 200
                assert len(answered) - before < 15
        finally:
            stopping.set()
        for guesser in guessers:
            guesser.result()
    assert set(answered) == {401}


def test_a_reload_of_the_same_users_forgets_no_password(users_waap):
    check = check_ns(users_waap, "secret", 200)
    assert users_waap.reload().status == 200
    assert check_ns(users_waap, "secret", 200) < check / 4


def test_a_flood_of_guesses_takes_no_scrape_its_place(users_waap):
    users_waap.get("/metrics")
    with concurrent.futures.ThreadPoolExecutor(60) as pool:
        guesses = [
            pool.submit(users_waap.get, "/metrics", basic("ann", f"guess {i}")) for i in range(120)
        ]
        while not all(guess.done() for guess in guesses):
            assert users_waap.get("/metrics").status == 200
        assert {guess.result().status for guess in guesses} == {401, 503}


def test_stopping_while_passwords_are_checked(users_waap):
    def guess(i):
        with contextlib.suppress(OSError, http.client.HTTPException):
            users_waap.get("/metrics", basic("ann", f"guess {i}"))

    before = auth_cpu_ns(users_waap)
    with concurrent.futures.ThreadPoolExecutor(10) as pool:
        pool.map(guess, range(10))
        wait_until(lambda: auth_cpu_ns(users_waap) > before, what="the first check")
        assert users_waap.stop()[0] == 0


def test_reload_changes_passwords_on_open_connections(users_waap):
    with contextlib.closing(users_waap.connect()) as kept:
        kept.request("GET", "/-/healthy", headers=basic("ann", "secret"))
        answer = kept.getresponse()
        assert (answer.status, answer.read() != b"") == (200, True)
        users_waap.file.write_text(f"basic_auth_users:\n  bob: {QUICK_SECRET}\n")
        assert users_waap.reload().status == 200
        # A connection that asks to stay is closed, too.
        stay = {**basic("ann", "secret"), "Connection": "keep-alive"}
        kept.request("GET", "/-/healthy", headers=stay)
        answer = kept.getresponse()
        assert (answer.status, answer.headers["Connection"]) == (401, "close")
        assert answer.read() and kept.sock is None
    assert users_waap.get("/-/healthy", basic("bob", "secret")).status == 200


def test_no_secrets_in_the_log(waap_binary, tmp_path):
    file = tmp_path / "web.yml"
    file.write_text(f"basic_auth_users:\n  ann: {SECRET}\n")
    with WebWaap(
        waap_binary, file, "--log.level=debug", headers=basic("ann", "secret")
    ) as waap:
        waap.get("/metrics", basic("ann", "hush-hush"))
        waap.get("/metrics", {"Authorization": "Basic hush-hush"})
        file.write_text("basic_auth_users:\n  ann: hush-hush\n")
        assert waap.reload().status == 500
        log = waap.output()
    assert "basic_auth_users.ann" in log
    for text in ("hush-hush", basic("ann", "hush-hush")["Authorization"].split()[1], SECRET[7:]):
        assert text not in log


# ---- headers and rates ----


def test_headers(waap_binary, tmp_path):
    file = tmp_path / "web.yml"
    file.write_text(
        "http_server_config:\n  http2: true\n  headers:\n"
        "    X-Frame-Options: deny\n    Content-Security-Policy: default-src 'none'\n"
    )
    with WebWaap(waap_binary, file) as waap:
        for path in ("/metrics", "/", "/-/healthy", "/nothing"):
            answer = waap.get(path)
            assert answer.headers["X-Frame-Options"] == "deny"
            assert answer.headers["Content-Security-Policy"] == "default-src 'none'"
        file.write_text("")
        assert waap.reload().status == 200
        assert "X-Frame-Options" not in waap.get("/metrics").headers


def test_rate_limit(waap_binary, tmp_path):
    file = tmp_path / "web.yml"
    file.write_text("rate_limit:\n  interval: 1m\n  burst: 3\n")
    with WebWaap(waap_binary, file) as waap:
        answers = [waap.get("/metrics").status for _ in range(5)]
        assert answers == [200, 200, 200, 429, 429]
        assert waap.get("/-/healthy").status == 200


# ---- a real scraper ----


@pytest.mark.parametrize("version", ["2.42", "2.53", "3"])
def test_prometheus_scrapes_with_tls_and_password(
    waap_binary, authority, server_pair, tmp_path, version
):
    program = find_program("prometheus", version)
    if program is None:
        pytest.skip(f"prometheus {version} is not unpacked here (make deps)")
    file = tmp_path / "web.yml"
    file.write_text(
        tls_config(
            server_pair,
            f"  client_ca_file: {authority.crt}",
            "  client_auth_type: RequireAndVerifyClientCert",
            "basic_auth_users:",
            f"  ann: {SECRET}",
        )
    )
    crt, key = authority.sign("prometheus")
    tls = {"ca_file": str(authority.crt), "cert_file": str(crt), "key_file": str(key)}
    right = {"username": "ann", "password": "secret"}
    secure = {"scheme": "https", "scrape_interval": "3s", "scrape_timeout": "3s"}  # a check of a password takes a while
    jobs = {
        "right": {**secure, "tls_config": tls, "basic_auth": right},
        "wrong": {**secure, "tls_config": tls, "basic_auth": {**right, "password": "old"}},
        "nobody": {**secure, "tls_config": {"ca_file": str(authority.crt)}, "basic_auth": right},
    }
    headers = basic("ann", "secret")
    with WebWaap(
        waap_binary, file, trust=authority.crt, pair=(crt, key), headers=headers
    ) as waap, Prometheus(program, tmp_path, waap.port, jobs) as prometheus:

        def target(job):
            return (prometheus.targets() or {job: {"health": "unknown", "lastError": ""}})[job]

        wait_until(lambda: target("right")["health"] == "up", what="the right password")
        wait_until(lambda: "401" in target("wrong")["lastError"], what="the wrong one")
        wait_until(lambda: target("nobody")["health"] == "down", what="no certificate")
        # The certificate is replaced while it scrapes; nothing is lost.
        authority.sign("later")
        file.write_text(file.read_text().replace("server.", "later."))
        assert waap.reload().status == 200
        before, scrapes = target("right")["lastScrape"], set()

        def goes_on():
            right = target("right")
            # A busy machine may be late; nothing else may go wrong.
            assert right["health"] == "up" or "deadline exceeded" in right["lastError"]
            if right["health"] == "up":
                scrapes.add(right["lastScrape"])
            return len(scrapes - {before}) >= 2

        wait_until(goes_on, what="two scrapes")
