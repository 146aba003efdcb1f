"""`waap run` with a real container of Docker's."""

import json
import os
import pathlib
import shutil
import signal
import subprocess

import pytest

from dockerd import IMAGE, docker_of_our_own
from running import wait_until
from test_run import QUICK, Record

MIB = 1 << 20


@pytest.fixture(scope="module")
def docker():
    with docker_of_our_own() as docker:
        yield docker


@pytest.fixture
def profile(docker, run_waap, tmp_path):
    def run(text, *arguments, code=0, image=IMAGE, **environment):
        (tmp_path / "sage.yaml").write_text(text)
        ended = run_waap("run", tmp_path / "sage.yaml", f"--out={tmp_path / 'out'}", f"--image={image}", *arguments,
                         env={**os.environ, "DOCKER_HOST": f"unix://{docker.socket}", **environment})
        assert ended.returncode == code, ended.stderr
        assert json.loads(docker("GET", "/containers/json", all="1")) == []
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
