import os
import re
import signal

import pytest
from running import DEFAULTS, ROOT, Waap, wait_until

BAD_FILE = """\
log:
  level: loud
web:
  max_requests: 10001
  listen_adress: [":9090"]
  max_requests: 3
"""
BAD_FILE_PROBLEMS = """\
{file}:6:3: web.max_requests: duplicate key, first given in line 4
{file}:2:10: log.level: expected one of debug, info, warn, error, got "loud"
{file}:4:17: web.max_requests: expected a whole number from 0 to 10000, got "10001"
{file}:5:3: web.listen_adress: unknown key, did you mean listen_address?
"""


@pytest.fixture
def write(tmp_path):
    """write(text): a configuration file, always the same one."""

    def write_file(text):
        path = tmp_path / "waap.yaml"
        path.write_text(text)
        return path

    return write_file


def test_sample_file_is_good(run_waap):
    sample = ROOT / "deploy/waap.yaml"
    done = run_waap("check-config", sample)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{sample}: ok\n", "")


def test_every_mistake_in_a_file_is_reported(run_waap, write):
    path = write(BAD_FILE)
    done = run_waap("check-config", path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == BAD_FILE_PROBLEMS.format(file=path)


def test_one_bad_file_among_good_ones(run_waap, write, tmp_path):
    good = tmp_path / "good.yaml"
    good.write_text("log: {level: warn}\n")
    done = run_waap("check-config", write(BAD_FILE), good)
    assert done.returncode == 2
    assert done.stdout == f"{good}: ok\n"


def test_check_includes_the_web_configuration_file(run_waap, write, tmp_path):
    web = tmp_path / "web.yaml"
    path = write(f"web: {{config: {{file: {web}}}}}\n")
    web.write_text("basic_auth_users: {}\n")
    assert run_waap("check-config", path).returncode == 0
    web.write_text("basic_auth_user: {}\n")
    done = run_waap("check-config", path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"{web}:1:1: basic_auth_user: unknown key")


def test_check_config_needs_a_file(run_waap):
    done = run_waap("check-config")
    assert done.returncode == 2
    assert "usage: waap check-config" in done.stderr


def test_serve_refuses_a_bad_file(run_waap, write):
    path = write(BAD_FILE)
    done = run_waap("serve", f"--config.file={path}")
    assert done.returncode == 2
    assert done.stderr == BAD_FILE_PROBLEMS.format(file=path)


@pytest.mark.parametrize(
    "flags, problems",
    [
        (
            ["--web.listen-adress=:1", "--web.max-requests=x", "stray"],
            "--web.listen-adress: unknown flag, did you mean --web.listen-address?\n"
            '--web.max-requests: expected a whole number from 0 to 10000, got "x"\n'
            "stray: unexpected argument, flags begin with --\n",
        ),
        (
            ["--config.file", "/nonexistent/waap.yaml"],
            "--config.file: open /nonexistent/waap.yaml: No such file or directory\n",
        ),
        (
            ["--web.listen-address=localhost"],
            "--web.listen-address: expected host:port, [v6]:port, :port or unix:/path, "
            'got "localhost"\n',
        ),
    ],
)
def test_bad_flags(run_waap, flags, problems):
    done = run_waap("serve", *flags)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", problems)


def test_bad_variable(run_waap):
    done = run_waap("serve", env={"WAAP_SAMPLE_HZ": "1000"})
    assert done.returncode == 2
    assert done.stderr == 'WAAP_SAMPLE_HZ: expected a whole number from 1 to 100, got "1000"\n'


def test_unknown_variable_is_a_warning(waap):
    daemon = waap(env={"WAAP_LOG_LEVL": "debug"})
    assert "level=warn" in daemon.wait_log("WAAP_LOG_LEVL: unknown variable")


def test_flag_over_variable_over_file(waap, write):
    path = write("web: {telemetry_path: /file}\ncollector: {host: {enabled: false}}\n")
    from_file = waap(f"--config.file={path}")
    assert from_file.get("/file").status == 200
    assert "node_load1" not in from_file.samples(path="/file")

    env = {"WAAP_CONFIG_FILE": str(path), "WAAP_WEB_TELEMETRY_PATH": "/variable"}
    assert waap(env=env).get("/variable").status == 200
    from_flag = waap("--web.telemetry-path=/flag", "--collector.host", env=env)
    assert from_flag.get("/flag").status == 200
    assert from_flag.get("/variable").status == 404
    assert "node_load1" in from_flag.samples(path="/flag")


def test_disable_defaults(waap):
    series = waap("--collector.disable-defaults").samples()
    assert not [name for name in series if name.startswith("node_")]


@pytest.mark.parametrize("command", [["--version"], ["version"], ["serve", "--version"]])
def test_version_on_standard_output(run_waap, command):
    done = run_waap(*command)
    assert done.returncode == 0
    assert re.fullmatch(r"waap \d+\.\d+\.\d+ \(([0-9a-f]{7,}(-dirty)?|unknown)\)\n", done.stdout)


@pytest.mark.parametrize("command", [["serve", "--help"], ["serve", "-h"], ["help", "serve"]])
def test_help_of_serve(run_waap, command):
    done = run_waap(*command)
    assert done.returncode == 0
    assert done.stdout.startswith("usage: waap serve")
    assert "WAAP_WEB_LISTEN_ADDRESS" in done.stdout


@pytest.mark.parametrize("command, usage", [
    (["compare", "a", "b", "--help"], "usage: waap compare A B"),
    (["report", "dir", "-h"], "usage: waap report DIR..."),
    (["run", "x.yaml", "--help"], "usage: waap run [FILE]"),
    (["place", "--file=x", "--help"], "usage: waap place"),
])
def test_help_behind_other_arguments(run_waap, command, usage):
    done = run_waap(*command)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(usage)


def test_help_of_an_application_is_its_own(run_waap, tmp_path):
    done = run_waap("run", f"--out={tmp_path}/out", "--", "true", "--help")
    assert done.returncode == 0 and "1 run, 0 failed" in done.stdout


@pytest.mark.parametrize("command", [["--help"], ["help"]])
def test_help_lists_the_commands(run_waap, command):
    done = run_waap(*command)
    assert done.returncode == 0
    assert "  check-config  FILE...    " in done.stdout


def test_unknown_command(run_waap):
    done = run_waap("sevre")
    assert (done.returncode, done.stdout) == (2, "")
    assert 'waap: unknown command "sevre", did you mean serve?' in done.stderr


def test_flags_without_a_command(run_waap):
    done = run_waap("--web.max-requests=3")
    assert (done.returncode, done.stdout) == (2, "")
    assert "a command comes first, as in: waap serve --web.max-requests=3\n" in done.stderr


def test_a_web_configuration_is_checked_as_one(run_waap, write):
    path = write("basic_auth_users: {a: secret}\ntls_server_config: {cert_fil: x}\n")
    ran = run_waap("check-config", path)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert f"{path}:1:23: basic_auth_users.a: " in ran.stderr
    assert f"{path}:2:21: tls_server_config.cert_fil: unknown key, did you mean cert_file?" in ran.stderr
    write("rate_limit: {interval: 1s, burst: 5}\n")
    assert run_waap("check-config", path).stdout == f"{path}: ok\n"


def test_listed_metrics_are_those_served(run_waap, waap):
    listed = {}
    for line in run_waap("serve", "--list-metrics").stdout.splitlines()[1:]:
        name, kind, *_ = re.split(r"  +", line)
        listed[name] = "gauge" if kind == "info" else kind
    served = re.findall(r"^# TYPE (\S+) (\S+)$", waap().get("/metrics").text, re.MULTILINE)
    assert served
    assert [(name, kind) for name, kind in served if listed.get(name) != kind] == []


def test_help_of_metrics_is_a_sentence(run_waap):
    for line in run_waap("serve", "--list-metrics").stdout.splitlines()[1:]:
        name, _, _, _, help_text = re.split(r"  +", line, maxsplit=4)
        assert re.fullmatch(r"(?:[A-Z0-9]|tmpfs ).*[^. ]\.", help_text), f"{name}: {help_text}"


def test_listed_collectors(run_waap):
    done = run_waap("serve", "--list-collectors")
    assert done.stdout.splitlines()[0].split() == ["collector", "default", "reads"]
    assert re.search(r"^host +on +\S", done.stdout, re.MULTILINE)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (os.mkfifo, "a pipe, not a file"),
        (os.mkdir, "Is a directory"),
        (lambda path: path.write_text("# long\n" * 200_000), "more than 1048576 bytes"),
    ],
)
def test_what_is_no_configuration_file(run_waap, tmp_path, make, words):
    path = tmp_path / "waap.yaml"
    make(path)
    ran = run_waap("check-config", path)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr == f"{path}: read {path}: {words}\n"


def test_hangup_applies_a_good_file(waap, write):
    path = write("collector: {host: {enabled: false}}\n")
    daemon = waap(f"--config.file={path}")
    assert "node_load1" not in daemon.samples()
    write("collector: {host: {enabled: true}}\nweb: {telemetry_path: /m}\n")
    daemon.process.send_signal(signal.SIGHUP)
    daemon.wait_log("reload: configuration applied")
    assert "node_load1" in daemon.samples(path="/m")
    assert daemon.get("/metrics").status == 404


def test_hangup_refuses_a_bad_file_as_a_whole(waap, write):
    path = write("web: {telemetry_path: /m}\n")
    daemon = waap(f"--config.file={path}")
    write("web: {telemetry_path: /other, max_requests: x}\n")
    daemon.process.send_signal(signal.SIGHUP)
    line = daemon.wait_log("waap.yaml:1:45: web.max_requests: expected a whole number")
    assert "level=error" in line
    daemon.wait_log("reload: configuration rejected, the old one stays active")
    assert daemon.get("/m").status == 200
    assert daemon.get("/other").status == 404

    write("web: {telemetry_path: /other}\n")
    daemon.process.send_signal(signal.SIGHUP)
    daemon.wait_log("reload: configuration applied")
    assert daemon.get("/other").status == 200


def test_reload_over_http_says_what_is_wrong(waap, write):
    path = write("log: {level: info}\n")
    daemon = waap(f"--config.file={path}", "--web.enable-lifecycle")
    assert daemon.get("/-/reload", method="POST").status == 200
    write(BAD_FILE)
    answer = daemon.get("/-/reload", method="POST")
    assert answer.status == 500
    for line in BAD_FILE_PROBLEMS.format(file=path).splitlines():
        assert line in answer.text


def test_names_that_are_slow_to_find_out_hold_up_nobody(
    fake_binary, waap_binary, started, write, tmp_path, monkeypatch
):
    for flag in ("--web.listen-address", "--push.socket"):
        monkeypatch.delitem(DEFAULTS, flag)
    slow = fake_binary.parent / "slow_names.so"
    env = {"LD_PRELOAD": str(slow), "ASAN_OPTIONS": "verify_asan_link_order=0", "SLOW_NAMES": str(tmp_path)}
    names = [tmp_path / name for name in ("slow.test", "slow", "slow-too")]
    for name in names:
        name.touch()
    path = write('web: {listen_address: ["127.0.0.1:0"]}\npush: {socket: []}\n')
    daemon = started(Waap(waap_binary, f"--config.file={path}", env=env))
    sockets = [tmp_path / "web.sock", tmp_path / "push.sock"]
    write(
        f'web: {{listen_address: ["127.0.0.1:0", "slow.test:0", "unix:{sockets[0]}"],'
        f' listen_group: slow}}\npush: {{socket: ["{sockets[1]}"], socket_group: slow-too}}\n'
    )
    daemon.process.send_signal(signal.SIGHUP)
    while names:
        reached = wait_until(lambda: [name for name in names if name.with_name(f"{name.name}.reached").exists()],
                             what="a question for a name")
        assert daemon.get("/-/healthy").status == 200
        assert "reload: configuration applied" not in daemon.output()
        for name in reached:
            name.unlink()
            names.remove(name)
    daemon.wait_log("reload: configuration applied")
    assert len(daemon.addresses()) == 3
    assert all(socket.is_socket() for socket in sockets)


def test_flags_hold_over_reloads(waap, write):
    path = write("web: {telemetry_path: /m}\n")
    daemon = waap(f"--config.file={path}", "--web.telemetry-path=/flag")
    write("web: {telemetry_path: /other}\n")
    daemon.process.send_signal(signal.SIGHUP)
    daemon.wait_log("reload: configuration applied")
    assert daemon.get("/flag").status == 200
    assert daemon.get("/other").status == 404
