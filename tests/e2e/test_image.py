"""The container images: what deploy/Dockerfile puts in them, run by a real Docker with everything
closed that can be. Their files come from this machine's build, as nothing can be pulled in a test;
the settings are those of the Dockerfile."""

import io
import json
import os
import pathlib
import platform
import re
import subprocess
import tarfile

import pytest

from dockerd import GATEWAY, MAPPED, SUBNET, docker_of_our_own
from placing import ASKED, PREDICTOR
from running import ROOT, Program, wait_until

IMAGE = "local/waap:1"
PLACEMENT = "local/waap-placement:1"
MAX_BYTES = 25_000_000
RUN = {"/run/waap": "0755", "/run/waap-store": "0700"}
SETTINGS = ("CMD", "ENTRYPOINT", "ENV", "EXPOSE", "HEALTHCHECK", "USER")


def settings_of(start):
    """The settings of the Dockerfile's stage that begins with this line."""
    text = (ROOT / "deploy/Dockerfile").read_text().split(f"\n{start}\n")[1].split("\nFROM ")[0]
    return [line for line in text.split("\n") if line.startswith(SETTINGS)]


def archive_of(directory):
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        tar.add(directory, ".")
    return archive.getvalue()


def import_image(docker, name, root, stage):
    repository, tag = name.split(":")
    query = [("fromSrc", "-"), ("repo", repository), ("tag", tag)]
    query += [("changes", line) for line in settings_of(stage)]
    docker("POST", "/images/create", archive_of(root), *query)


@pytest.fixture(scope="module")
def root(tmp_path_factory, waap_binary):
    directory = tmp_path_factory.mktemp("image") / "root"
    subprocess.run([ROOT / "deploy/image-root", waap_binary, directory], check=True)
    return directory


@pytest.fixture(scope="module", params=[False, True], ids=["", "mapped"])
def map_users(request):
    """Whether root in a container is nobody outside of it."""
    return request.param


@pytest.fixture(scope="module")
def docker(root, map_users):
    with docker_of_our_own(map_users) as docker:
        import_image(docker, IMAGE, root, "FROM scratch")
        yield docker


SAY = """
import socket, time
channel = socket.socket(socket.AF_UNIX)
channel.connect("/push/push.sock")
channel.sendall(b'{"metric": "fps", "type": "gauge", "set": 29.7}\\n')
time.sleep(60)
"""


class Container(Program):
    """waap in a container, asked over the bridge."""

    name, image, port = "waap", IMAGE, 9090

    def __init__(self, docker, *flags, binds=(), closed=True, **options):
        self.docker = docker
        mounted = [bind.split(":")[1] for bind in binds]
        if closed:
            options = {
                "ReadonlyRootfs": True, "CapDrop": ["ALL"], "SecurityOpt": ["apparmor=unconfined", "no-new-privileges"],
                "Tmpfs": {path: f"mode={mode},uid=65532" for path, mode in RUN.items() if path not in mounted}, **options}
        self.id = docker.run(self.name, *(["serve", *flags] if flags else []), image=self.image, network="bridge",
                             Binds=list(binds), **options)
        self.url = f"http://{self.state()['NetworkSettings']['IPAddress']}:{self.port}"
        self.command = ["waap in a container"]
        wait_until(self.answers, 60, "the container")

    def state(self):
        return json.loads(self.docker("GET", f"/containers/{self.id}/json"))

    def get(self, *arguments, **options):
        with self.docker.network():
            return super().get(*arguments, **options)

    def answers(self):
        assert self.state()["State"]["Running"], self.output()
        try:
            return self.get("/-/ready").status == 200
        except OSError:
            return False

    def output(self):
        return self.docker.ask("GET", f"/containers/{self.id}/logs", stdout=1, stderr=1)[1]


@pytest.fixture
def start(docker):
    yield lambda *flags, **options: Container(docker, *flags, **options)
    docker.remove_all()


def test_size_and_content(root):
    files = [path for path in root.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < MAX_BYTES
    programs = [path for path in files if os.access(path, os.X_OK) and ".so" not in path.name]
    assert [str(path.relative_to(root)) for path in programs] == ["usr/bin/waap"]


def test_answers_unprivileged_and_read_only(start):
    container = start()
    page = container.metrics()
    assert page["waap_build_info", next(l for n, l in page if n == "waap_build_info")] == 1
    assert [name for name, _ in page if name == "node_load1"]
    state = container.state()
    assert state["Config"]["User"] == "65532:65532"
    assert "NVIDIA_DRIVER_CAPABILITIES=utility" in state["Config"]["Env"]
    assert "level=error" not in container.output()


def test_the_prototypes_shortest_line(start):
    """docker run -it -p 9090:9090: what the kernel shows to all; what is missing first, and who scrapes."""
    container = start(closed=False, Tty=True, OpenStdin=True, PortBindings={"9090/tcp": [{"HostPort": "9090"}]})
    names = {name for name, _ in container.metrics()}
    assert {"node_load1", "node_memory_MemTotal_bytes", "node_cpu_seconds_total"} <= names
    container.metrics()
    wait_until(lambda: "first scrape" in container.output(), what="the scrape in Docker's log")
    lines = container.output().splitlines()
    hints = [line for line in lines if "this container hides" in line]
    assert hints == lines[1:5] and not [line for line in lines if "level=warn" in line or "level=error" in line]
    flags = ("add --pid=host", "add -v /:/host:ro,rslave IMAGE serve --path.rootfs=/host", "add --user 0",
             "add -v /run/waap:/run/waap")
    assert [flag for flag, hint in zip(flags, hints) if flag in hint] == list(flags), hints
    scrapes = [line for line in lines if "first scrape" in line]
    assert len(scrapes) == 1 and f"first scrape by {GATEWAY} " in scrapes[0]


def test_says_when_the_driver_is_there_but_not_its_library(docker, start, tmp_path):
    """--runtime nvidia mounts the devices, too."""
    (tmp_path / "driver/nvidia").mkdir(parents=True)
    (tmp_path / "driver/nvidia/version").write_text("NVRM version: 550\n")
    tmp_path.chmod(0o755)
    bind = f"{tmp_path}:/driver:ro"
    hint = "hides NVIDIA's library: add --runtime nvidia"
    container = start("--path.procfs=/driver", binds=[bind])
    wait_until(lambda: hint in container.output(), what="the hint")
    docker.remove_all()
    device = f"{tmp_path}/driver/nvidia/version:/dev/nvidiactl"
    container = start("--path.procfs=/driver", binds=[bind, device])
    wait_until(lambda: "live page" in container.output(), what="the end of the start")
    assert hint not in container.output()


def healthcheck(container):
    """Runs what the image says for its health, in the container; its exit code."""
    test = container.state()["Config"]["Healthcheck"]["Test"]
    assert test[0] == "CMD"
    made = container.docker(
        "POST", f"/containers/{container.id}/exec", {"Cmd": test[1:], "AttachStderr": True})
    id = json.loads(made)["Id"]
    container.docker("POST", f"/exec/{id}/start", {"Detach": False})
    return json.loads(container.docker("GET", f"/exec/{id}/json"))["ExitCode"]


def test_health(start):
    assert healthcheck(start()) == 0


def test_health_follows_the_flags_of_serve(start):
    container = start("--web.listen-address=:9090", "--web.listen-address=:9191")
    assert healthcheck(container) == 0


def test_sees_the_host_and_its_containers(docker, start, map_users):
    docker.run("neighbour", "sleep", "60")
    # As README says; Docker shows the host's processes to no container whose users are mapped.
    options = {"UsernsMode": "host"} if map_users else {}
    container = start(
        "--path.procfs=/host/proc", "--path.sysfs=/host/sys", "--path.rootfs=/host",
        "--path.cgroupfs=/host/sys/fs/cgroup",
        f"--collector.container.docker-socket={docker.socket}",
        binds=["/:/host:ro"], PidMode="host", User="0:0", **options)

    def neighbour():
        return [dict(labels) for name, labels in container.metrics()
                if name == "container_cpu_usage_seconds_total" and ("name", "neighbour") in labels]

    assert wait_until(neighbour, 60, "the neighbour")
    assert "hides" not in container.output()


def test_sees_containers_without_being_anybody(docker, start, map_users):
    """As root of a mapped container, or as nobody: the runtime's socket is closed, cgroups are not."""
    neighbour = docker.run("neighbour", "sleep", "60")
    container = start(
        "--path.procfs=/host/proc", "--path.sysfs=/host/sys", "--path.rootfs=/host",
        "--path.cgroupfs=/host/sys/fs/cgroup", f"--collector.container.docker-socket={docker.socket}",
        binds=["/:/host:ro"], **({"User": "0:0"} if map_users else {}))

    def found():
        return [dict(labels) for name, labels in container.metrics()
                if name == "container_cpu_usage_seconds_total" and neighbour in dict(labels)["id"]]

    labels, = wait_until(found, 20, "the neighbour")
    assert labels["name"] == neighbour[:12]
    uid = pathlib.Path(f"/proc/{container.state()['State']['Pid']}").stat().st_uid
    assert uid == (MAPPED if map_users else 65532)


def test_pushes_by_mounted_socket_and_over_the_bridge(docker, start, tmp_path):
    tmp_path.chmod(0o777)
    container = start(f"--push.allow={SUBNET}", "--push.socket=/push/push.sock",
                      "--push.socket-mode=0666", binds=[f"{tmp_path}:/push"])
    mounts = [f"{tmp_path}:/push", *(f"{path}:{path}:ro" for path in ("/usr", "/lib", "/lib64"))]
    docker.run("pusher", "/usr/bin/python3", "-c", SAY, Binds=mounts)
    ask = (f"printf 'POST /metrics/job/cars HTTP/1.0\\r\\nContent-Length: 9\\r\\n\\r\\nspeed 50\\n' "
           f"| nc {container.url[7:].replace(':', ' ')}")
    docker.run("poster", "sh", "-c", ask, network="bridge")

    def pushed():
        page = container.samples()
        return ({re.match(r"\w+", name)[0] for name in page} >= {"fps", "speed"}) and page

    page = wait_until(pushed, 60, "both pushes")
    assert page['speed{instance="",job="cars"}'] == "50"


def documented_binds(place, pattern):
    """What README mounts by `-v /run/…`, from a directory of the test's."""
    found = re.findall(pattern, (ROOT / "README.md").read_text())
    assert found
    return [f"{place}{bind}" for bind in found]


# Tries to write to what it was given; then pushes, as a plugin does.
INTRUDE = """
import ctypes, json, os, socket
MS_REMOUNT_BIND = 0x1020
done = []

def attempt(name, action):
    try:
        action()
        done.append(name)
    except OSError:
        pass

def remount():
    if ctypes.CDLL(None, use_errno=True).mount(b"none", b"/run/waap", None, MS_REMOUNT_BIND, None) != 0:
        raise OSError

sock = "/run/waap/push.sock"
attempt("remount", remount)
attempt("create", lambda: open("/run/waap/new", "w"))
attempt("chmod", lambda: os.chmod(sock, 0o600))
attempt("link", lambda: os.link(sock, "/run/waap/other.sock"))
attempt("rename", lambda: os.rename(sock, "/run/waap/old.sock"))
attempt("remove", lambda: os.unlink(sock))
attempt("replace", lambda: socket.socket(socket.AF_UNIX).bind(sock))
seen = [path for path in ("/run/waap", "/run/waap-store") if os.path.exists(path)]
plugin = socket.socket(socket.AF_UNIX)
plugin.connect(sock)
plugin.sendall(b'{"seq": 1, "metric": "fps", "type": "gauge", "set": 9}\\n')
print(json.dumps({"done": done, "seen": {path: os.listdir(path) for path in seen},
                  "answer": json.loads(plugin.makefile().readline())}))
"""


def test_a_plugin_can_only_connect_in_the_directory_it_mounts(docker, start, tmp_path, map_users):
    """Root without capabilities, with README's mounts: no file to write, no socket to replace, no table to reach."""
    for path in RUN:
        (tmp_path / path.lstrip("/")).mkdir(parents=True)
    options = {"UsernsMode": "host"} if map_users else {}
    start("--collector.disable-defaults", "--collector.push", "--path.procfs=/proc", User="0:0", **options,
          binds=documented_binds(tmp_path, r" -v (/run/\S+)(?= .*waap serve)"))
    libraries = [f"{path}:{path}:ro" for path in ("/usr", "/lib", "/lib64")]
    id = docker.run("plugin", "/usr/bin/python3", "-c", INTRUDE, CapDrop=["ALL"],
                    Binds=[*documented_binds(tmp_path, r"`-v (/run/\S+)`"), *libraries])
    docker("POST", f"/containers/{id}/wait")
    said = docker("GET", f"/containers/{id}/logs", stdout=1, stderr=1)
    assert "{" in said and "Traceback" not in said, said
    assert json.loads(said[said.index("{"):]) == {"done": [], "seen": {"/run/waap": ["push.sock"]}, "answer": {"ack": 1}}
    assert (tmp_path / "run/waap-store/push.table").exists()


def test_refused_over_the_bridge_unless_allowed(docker, start):
    container = start()
    answer = container.get("/metrics/job/cars", method="POST", body=b"speed 50\n")
    assert (answer.status, "--push.allow" in answer.text) == (403, True)


class Peer(Program):
    """Another container, which asks waap at `url`."""

    def __init__(self, docker, name, network, url):
        self.docker, self.name, self.url = docker, name, url
        docker.run(name, "sleep", "600", network=network)

    def get(self, *arguments, **options):
        with self.docker.network(self.name):
            return super().get(*arguments, **options)

    def push(self):
        return self.get("/metrics/job/cars", method="POST", body=b"speed 50\n")

    def answered(self):
        try:
            return self.push()
        except OSError:  # its address is not there yet
            return None


@pytest.fixture
def publish(docker, start):
    """publish(flag): waap on a published port; a stranger that comes by IPv6 through Docker's proxy, and a neighbour."""
    outside = {"Subnet": "2001:db8::/64", "Gateway": "2001:db8::1"}
    docker("POST", "/networks/create", {"Name": "outside", "EnableIPv6": True, "IPAM": {"Config": [outside]}})

    def run(*flags):
        container = start("--collector.disable-defaults", "--collector.push", *flags,
                          PortBindings={"9090/tcp": [{"HostPort": "9090"}]})
        return Peer(docker, "stranger", "outside", "http://[2001:db8::1]:9090"), Peer(docker, "neighbour", "bridge", container.url)

    yield run
    docker.remove_all()
    docker("DELETE", "/networks/outside")


def test_a_network_does_not_let_strangers_in_through_the_published_port(publish):
    stranger, neighbour = publish(f"--push.allow={SUBNET}")
    answer = wait_until(stranger.answered, 30, "the stranger's answer")
    assert answer.status == 403, answer.text
    assert f"{GATEWAY} may not write as part of its network: it is a gateway" in answer.text
    assert f"--push.allow={GATEWAY} to trust" in answer.text
    assert "it is a gateway" in stranger.get("/").text
    assert neighbour.push().status == 200
    assert "it is a gateway" not in neighbour.get("/").text


def test_a_gateway_that_is_named_is_trusted(publish):
    stranger, neighbour = publish(f"--push.allow={GATEWAY}")
    assert wait_until(stranger.answered, 30, "the stranger's answer").status == 200
    assert neighbour.push().status == 403


class PlaceContainer(Container):
    """`waap place` in its image."""

    name, image, port = "place", PLACEMENT, 7001


@pytest.fixture(scope="module")
def place_root(tmp_path_factory, waap_binary):
    if not PREDICTOR.exists():
        pytest.skip("no predictor in this build: no libxgboost (make deps)")
    directory = tmp_path_factory.mktemp("placement") / "root"
    subprocess.run([ROOT / "deploy/image-root", waap_binary, directory, PREDICTOR.parent], check=True)
    return directory


def test_the_placement_image_runs_as_peppers_does(docker, start, place_root):
    """PROMETHEUS_IP alone, as its documents have it: here it leads to a waap, which is no Prometheus."""
    import_image(docker, PLACEMENT, place_root, "FROM scratch AS placement")
    exporter = start()
    place = PlaceContainer(docker, Env=[f"PROMETHEUS_IP={exporter.url[7:]}"])
    answer = place.get("/api/profiling", method="POST", body=json.dumps(ASKED).encode())
    assert answer.status == 503 and exporter.url in answer.text, answer.text
    assert place.state()["Config"]["User"] == "65532:65532"
    assert "level=error" not in place.output()


def test_the_placement_image_has_what_a_prediction_needs(place_root):
    """The library that is looked for at run time, all that it links, and the predictor."""
    names = {path.name for path in place_root.rglob("*") if path.is_file()}
    assert {"waap", "waap-placement", "predictor.ubj", "libxgboost.so.0", "libgomp.so.1", "libdmlc.so.0"} <= names


def test_the_exporters_image_names_the_one_of_place(docker):
    id = docker.run("place", "place", image=IMAGE)
    docker("POST", f"/containers/{id}/wait")
    assert "image waap-placement" in docker("GET", f"/containers/{id}/logs", stdout=1, stderr=1)
    docker.remove_all()


@pytest.mark.skipif(platform.machine() != "x86_64", reason="looks at this machine's loader")
def test_libraries_are_those_the_binary_asks_for(root, waap_binary):
    wanted = subprocess.run(["ldd", waap_binary], capture_output=True, text=True, check=True).stdout
    for path in re.findall(r"(/\S+) \(0x", wanted):
        assert (root / path.lstrip("/")).is_file(), path
