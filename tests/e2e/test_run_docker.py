"""`waap run` with a real container of Docker's."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import threading

import pytest

from dockerd import IMAGE, docker_of_our_own, root_filesystem
from running import wait_until
from test_originals import SAGE
from test_run import QUICK, Record

MIB = 1 << 20


@pytest.fixture(scope="module")
def docker():
    with docker_of_our_own() as docker:
        yield docker


def nothing_left(docker):
    networks = json.loads(docker("GET", "/networks", filters=json.dumps({"label": ["waap.run"]})))
    return networks == json.loads(docker("GET", "/containers/json", all="1")) == []


@pytest.fixture
def profile(docker, run_waap, tmp_path):
    def run(text, *arguments, code=0, image=IMAGE, file="sage.yaml", **environment):
        (tmp_path / file).write_text(text)
        flags = [f"--image={image}"] if image else []
        with docker.network():
            ended = run_waap("run", tmp_path / file, f"--out={tmp_path / 'out'}", *flags, *arguments,
                             env={**os.environ, "DOCKER_HOST": f"unix://{docker.socket}", **environment})
        assert ended.returncode == code, ended.stderr
        assert nothing_left(docker)
        return (Record(tmp_path / "out") if code in (0, 3) else None), ended

    return run


def test_cost_of_a_container(profile, docker, tmp_path):
    """CPU and memory within 2 % of what the program in it counts; its output and dataset."""
    (tmp_path / "data").mkdir()
    record, _ = profile(f"""
profiling:
  {QUICK}
  dataset: data
  targets:
    - {{name: less, args: [load, /, hold {20 * MIB}, burn 0.5]}}
    - {{name: more, args: [load, /, hold {220 * MIB}, burn 2.5]}}
""")
    less, more = record.ends
    own = float(record.output(1)) - float(record.output(0))
    # What the runtime uses in the same cgroup before the program begins is in both.
    counted = sum(sign * end[f"{kind}_seconds"] for sign, end in ((1, more), (-1, less)) for kind in ("user", "system"))
    assert counted == pytest.approx(own, rel=0.02)
    growth = more["peak_memory_bytes"] - less["peak_memory_bytes"]
    assert growth == pytest.approx(200 * MIB, rel=0.02)
    assert more["wall_seconds"] >= 2.5
    environment = record.run["environment"]
    assert environment["launch"] == "container" and environment["image"] == IMAGE
    assert environment["image_digest"] == json.loads(docker("GET", f"/images/{IMAGE}/json"))["Id"]


def copy_with_libraries(program, folder):
    """Returns the words that start the copy where there is no library but these."""
    needed = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    paths = [pathlib.Path(word) for word in needed.split() if word.startswith("/")]
    for path in (program, *paths):
        shutil.copy(path, folder)
    loader = next(path.name for path in paths if path.name.startswith("ld-"))
    return [f"/dataset/{loader}", "--library-path", "/dataset", f"/dataset/{program.name}"]


def test_plugin_socket_and_dataset(profile, tmp_path, waap_binary, runtime):
    """The application speaks over the mounted socket; the dataset can be read but not written. Another engine, which
    does not know the container, is not asked for its name."""
    runtime(tmp_path / "other.sock", [])
    (tmp_path / "data").mkdir()
    plugin = " ".join(copy_with_libraries(waap_binary.parent.parent / "plugin/objcounter", tmp_path / "data"))
    program = f"(echo x > $WAAP_DATASET/new) 2>/dev/null && echo written; exec {plugin} 1"
    record, _ = profile(f"""
profiling:
  {QUICK}
  dataset: data
  targets: [{{args: {json.dumps(["sh", "-c", program])}}}]
""", WAAP_COLLECTOR_CONTAINER_DOCKER_SOCKET=str(tmp_path / "other.sock"))
    assert record.output() == ""
    assert record.ends[0]["frames"] == record.last("app.fps_total") == record.last("app.inference_seconds_count") > 0
    assert record.last('app.param{param="res"}') == 720


def test_container_that_ignores_signals(profile):
    record, _ = profile(f"""
profiling:
  {QUICK}
  grace: 200ms
  targets: [{{timeout: 500ms, args: [sh, -c, "trap '' INT TERM; sleep 60 & while true; do sleep 1; done"]}}]
""")
    end = record.ends[0]
    assert end["timed_out"] and end["stopped_by"] == "SIGKILL" and end["signal"] == signal.SIGKILL


def need_init(docker):
    if json.loads(docker("GET", "/info"))["InitCommit"]["ID"] == "N/A":
        pytest.skip("Docker has no init: .ci/fetch docker gets tini")


def test_program_without_signal_handlers(profile, docker):
    """The kernel does not end a first process by a signal that it has no handler for; one below an init it does."""
    need_init(docker)
    text = "profiling: {{{QUICK}, grace: {grace}, timeout: 300ms, init: {init}, args: [sleep, '600']}}"
    for init, grace, stopped_by in (("true", "20s", "SIGINT"), ("false", "200ms", "SIGKILL")):
        record, _ = profile(text.format(QUICK=QUICK, grace=grace, init=init), "--force")
        assert record.ends[0]["stopped_by"] == stopped_by
        assert record.ends[0]["wall_seconds"] < 10


def test_mounts(profile, tmp_path):
    """They are read-only unless said otherwise, and come from the folder of the file or an allowed one."""
    for name in ("models", "state", "elsewhere"):
        (tmp_path / name).mkdir()
    (tmp_path / "models/m").write_text("weights\n")
    (tmp_path / "elsewhere/e").write_text("other\n")
    program = "head /models/m; echo kept > /state/new; (echo x > /models/new) 2>/dev/null || echo read-only"
    record, _ = profile(f"""
profiling:
  {QUICK}
  args: {json.dumps(["sh", "-c", program])}
  mounts:
    - {{source: models, target: /models}}
    - {{source: ./state, target: /state, writable: true}}
""")
    assert record.output() == "weights\nread-only\n"
    assert (tmp_path / "state/new").read_text() == "kept\n"
    (tmp_path / "app").mkdir()
    (tmp_path / "app/link").symlink_to(tmp_path / "elsewhere")
    for source in ("../elsewhere", "link", str(tmp_path / "elsewhere")):
        text = f"profiling: {{{QUICK}, args: [head, /e/e], mounts: [{{source: {source}, target: /e}}]}}"
        _, ended = profile(text, "--force", file="app/sage.yaml", code=2)
        assert f"target 1: mounts: {tmp_path}/elsewhere is not below {tmp_path}/app, the folder of" in ended.stderr
        record, _ = profile(text, "--force", f"--run.mounts-allow={tmp_path}/elsewhere", file="app/sage.yaml")
        assert record.output() == "other\n"
    record, _ = profile(text, "--force", file="app/sage.yaml",
                        WAAP_RUN_MOUNTS_ALLOW=f"/nonexistent,{tmp_path}/elsewhere")
    assert record.output() == "other\n"
    _, ended = profile(text.replace("elsewhere", "absent"), "--force", file="app/sage.yaml", code=4)
    assert f"target 1: mounts: {tmp_path}/absent: No such file" in ended.stderr
    _, ended = profile(text, "--force", "--", "true", file="app/sage.yaml", code=2, image=None)
    assert "target 1: mounts need an image for the application, too" in ended.stderr


SERVER = ["sh", "-c", "echo began; while true; do head -n 1 /video/v | nc -l -p 8090; done"]
CLIENT = 'until [ "$(nc playback 8090 </dev/null)" = film ]; do sleep 0.1; done; echo seen'


def playback(client, **more):
    """A profiling section with a playback server in a container."""
    service = {"image": IMAGE, "name": "playback", "command": SERVER, "ready": {"tcp": 8090},
               "mounts": [{"source": "video", "target": "/video"}], **more}
    args = json.dumps(["sh", "-c", client])
    return f"profiling: {{{QUICK}, repeats: 2, args: {args}, services: [{json.dumps(service)}]}}\n"


@pytest.fixture
def video(tmp_path):
    (tmp_path / "video").mkdir()
    (tmp_path / "video/v").write_text("film\n")


@pytest.mark.usefixtures("video")
def test_playback_server(profile, tmp_path):
    """It is ready before the application starts, which reaches it by its name; its output is kept."""
    record, _ = profile(playback(CLIENT))
    assert record.output(0) == record.output(1) == "seen\n"
    assert (tmp_path / "out/output/service-playback.log").read_text() == "began\n"


@pytest.mark.usefixtures("video")
@pytest.mark.parametrize("more, complaint", [
    ({"mounts": [{"source": "/etc", "target": "/etc"}]}, "service playback: mounts: /etc is not below"),
    ({"command": ["true"]}, "service playback: ended before it was ready: see its output in"),
    ({"ready": {"tcp": 9, "timeout": "300ms"}}, "service playback: not ready after 0.3 s"),
    ({"image": "local/absent:1"}, "service playback: image local/absent:1 is not on this machine"),
])
def test_playback_server_that_fails(profile, more, complaint):
    _, ended = profile(playback(CLIENT, **more), code=2 if "mounts" in more else 4)
    assert complaint in ended.stderr


@pytest.mark.usefixtures("video")
def test_services_need_a_container(profile):
    _, ended = profile(playback(CLIENT), "--", "true", image=None, code=2)
    assert "services with an image need an image for the application, too" in ended.stderr


@pytest.mark.usefixtures("video")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_playback_server_of_a_run_that_is_stopped(profile, docker, waap_binary, tmp_path, how):
    """Nothing is left of it after an interrupt; what a killed run leaves, the next one removes."""
    (tmp_path / "sleep.yaml").write_text(playback("sleep 600"))
    with docker.network(), subprocess.Popen(
            [waap_binary, "run", tmp_path / "sleep.yaml", f"--image={IMAGE}", "--out", tmp_path / "stopped"],
            env={**os.environ, "DOCKER_HOST": f"unix://{docker.socket}"}) as process:
        wait_until(lambda: len(json.loads(docker("GET", "/containers/json"))) == 2, what="the containers")
        process.send_signal(how)
        process.wait(30)
    if how == signal.SIGINT:
        assert process.returncode == 130
        assert nothing_left(docker)
    else:
        assert not nothing_left(docker)
        profile(f"profiling: {{{QUICK}, args: ['true']}}\n")  # which looks whether anything is left


def test_image_of_name_and_version(profile):
    """The file alone says what to run, as in Waggle's registry."""
    file = f"""
name: busybox
namespace: local
version: "1"
profiling:
  {QUICK}
  targets: [{{args: [sh, -c, echo here]}}]
"""
    record, _ = profile(file, image=None)
    assert record.output() == "here\n"
    assert record.run["environment"]["image"] == IMAGE
    record, _ = profile(file, "--force", "--", "echo", image=None)
    assert record.output() == "sh -c echo here\n"
    _, ended = profile(file.replace("busybox", "absent"), "--force", image=None, code=4)
    assert "image local/absent:1 is not on this machine: pull it first (the image is that of name and version in" \
        in ended.stderr


def test_file_of_the_first_users(profile, docker):
    """The form of session profiling, without a word about the image, which has an entry point and takes arguments."""
    need_init(docker)
    entry = 'ENTRYPOINT ["sh", "-c", "echo \\"$@\\"; sleep 60", "app"]'
    docker("POST", "/images/create", root_filesystem(), fromSrc="-", repo="waggle/carcounter", tag="0.0.0",
           changes=entry)
    two = "".join(line for line in SAGE.splitlines(True) if "--use-cpu" not in line)
    record, _ = profile(two.replace("timeout: 60", "timeout: 1"), image=None)
    assert [record.output(0), record.output(1)] == ["-interval 1 --use-gpu\n", "--use-gpu\n"]
    assert all(end["timed_out"] and end["wall_seconds"] < 5 for end in record.ends)
    assert record.run["environment"]["image"] == "waggle/carcounter:0.0.0"


def test_new_gpu_memory(profile, docker, waap_binary, source_root, tmp_path):
    """That of the container's processes, by the fake driver's list."""
    cards = (source_root / "tests/fixtures/nvml/two-cards.txt").read_text()
    scenario = tmp_path / "cards.txt"
    scenario.write_text(f"watch\n{cards}")

    def allocate():
        container = wait_until(lambda: json.loads(docker("GET", "/containers/json")), what="the container")[0]["Id"]
        uses = f"0.compute {docker.pid(container)}:700000000 "
        (tmp_path / "new").write_text(scenario.read_text().replace("0.compute ", uses))
        (tmp_path / "new").rename(scenario)

    thread = threading.Thread(target=allocate)
    thread.start()
    library = waap_binary.parent.parent / "tests/fakes/libnvidia-ml.so.1"
    record, _ = profile(f"profiling: {{{QUICK}, args: [sleep, '3']}}", FAKE_NVML=str(scenario),
                        WAAP_COLLECTOR_NVML_LIBRARY=str(library))
    thread.join()
    assert record.last("gpu.memory.new_bytes") == 700e6


def test_exit_code(profile):
    record, _ = profile(f"profiling: {{{QUICK}, targets: [{{args: [sh, -c, exit 5]}}]}}\n", code=3)
    assert record.ends[0]["exit"] == 5


def test_container_of_a_run_that_was_killed(profile, docker, waap_binary, tmp_path):
    """Nobody is there to remove it; the next run does."""
    environment = {**os.environ, "DOCKER_HOST": f"unix://{docker.socket}"}
    (tmp_path / "sleep.yaml").write_text(f"profiling: {{{QUICK}, args: [sleep, '600']}}")
    with subprocess.Popen([waap_binary, "run", tmp_path / "sleep.yaml", f"--image={IMAGE}", "--out",
                           tmp_path / "killed"], env=environment) as process:
        wait_until(lambda: json.loads(docker("GET", "/containers/json")), what="the container")
        process.kill()
    assert len(json.loads(docker("GET", "/containers/json"))) == 1
    profile(f"profiling: {{{QUICK}, args: ['true']}}\n")  # which looks whether any container is left


def test_what_is_not_there(profile, run_waap, tmp_path):
    _, ended = profile("profiling: {}\n", code=4, image="local/absent:1")
    assert "local/absent:1 is not on this machine" in ended.stderr
    _, ended = profile("profiling: {}\n", code=2, image="a/../b?x=1")
    assert "not the name of an image" in ended.stderr
    ended = run_waap("run", "--image=x", f"--out={tmp_path / 'none'}",
                     env={**os.environ, "DOCKER_HOST": "", "WAAP_COLLECTOR_CONTAINER_DOCKER_SOCKET": "/nonexistent.sock",
                          "WAAP_COLLECTOR_CONTAINER_PODMAN_SOCKET": "", "XDG_RUNTIME_DIR": str(tmp_path)})
    assert ended.returncode == 4
    assert "no container engine responds at" in ended.stderr
