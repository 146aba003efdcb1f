"""`from waggle import plugin` as the first sketch of metrics and knobs had it: with pywaggle, and without."""

import hashlib
import json
import os
import pathlib
import subprocess
import sys
import venv

import pytest

from running import ROOT
from test_plugin_client import old_pythons
from waiting import LIMIT, wait_until

PYWAGGLE = ROOT / "build/deps/pywaggle"
DOOR = ROOT / "plugin/python/waap/with-waggle"

SKETCH = """
from waggle import plugin

fps = plugin.metric("fps")
acc = plugin.metric("acc")
res = plugin.param("res")
while True:
    lines = res.get()
    # ... get image, process frame, publish ...
    fps.inc()
    acc.update(0.5)
    if lines == 480:
        break
"""


def pywaggle():
    if not PYWAGGLE.is_dir():
        pytest.skip("SKIP: no pywaggle: .ci/deps test")
    return PYWAGGLE


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """An environment with `pip install ./plugin/python[waggle]`; without a network, setuptools is the tests' own."""
    place = tmp_path_factory.mktemp("environment")
    source = place / "source"
    subprocess.run(["cp", "-r", ROOT / "plugin/python", source], check=True)
    venv.create(place / "venv")
    python = place / "venv/bin/python"
    [site] = (place / "venv/lib").glob("python*/site-packages")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-cache-dir"]
    if subprocess.run([*pip, "--version"], capture_output=True).returncode != 0:
        pytest.skip("SKIP: no pip")
    offline = ["--no-index", "--no-build-isolation", "--target", str(site)]
    done = subprocess.run([*pip, "install", *offline, f"{source}[waggle]"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return python


class Place:
    """One way to have the hooks, with pywaggle or without."""

    def __init__(self, python, *paths, **environment):
        self.python = python
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith(("WAAP_", "PY"))}
        self.environment.update(PYTHONPATH=":".join(map(str, paths)), PYTHONDONTWRITEBYTECODE="1", **environment)

    def start(self, program, **environment):
        pipes = dict.fromkeys(("stdout", "stderr"), subprocess.PIPE)
        return subprocess.Popen([self.python, "-c", program], text=True, env={**self.environment, **environment},
                                **pipes)

    def run(self, program, **environment):
        """What it prints; it ends well."""
        process = self.start(program, **environment)
        output, errors = process.communicate(timeout=LIMIT)
        assert (process.returncode, errors) == (0, ""), errors
        return output


@pytest.fixture(params=["pip with pywaggle", "pip alone", "path with pywaggle", "path alone"])
def place(request):
    paths = [pywaggle()] if "with" in request.param else []
    if "pip" in request.param:
        return Place(request.getfixturevalue("installed"), *paths)
    return Place(sys.executable, DOOR, *paths)


def test_the_sketch_runs_as_it_was_written(place, waap, tmp_path):
    program = waap("--collector.disable-defaults", "--collector.push", f"--push.socket={tmp_path}/push.sock")
    process = place.start(SKETCH, WAAP_PUSH_SOCKET=f"{tmp_path}/push.sock", WAAP_PLUGIN_NAME="sketch")

    def page():
        return program.samples(path="/metrics?collect[]=push")

    wait_until(lambda: float(page().get('fps_total{plugin="sketch"}', 0)) > 0, what="fps")
    assert page()['acc{plugin="sketch"}'] == "0.5"
    knob = "/api/v1/plugins/sketch/params/res"
    assert json.loads(program.get(knob).text)["data"]["applied"] is None
    assert program.get(knob, method="PUT", body=b'{"value": 480}').status == 200
    assert process.communicate(timeout=LIMIT) == ("", "") and process.returncode == 0
    assert page()['plugin_param{param="res",plugin="sketch"}'] == "480"


def test_every_hook_is_there(place):
    place.run("""
import waggle.plugin
from waggle import plugin
from waggle.plugin import Plugin
from waap import plugin as hooks
assert plugin is waggle.plugin
for name in "counter", "gauge", "histogram", "metric", "metrics", "param", "timeit":
    assert getattr(plugin, name) is getattr(hooks, name), name
    assert name == "timeit" or getattr(Plugin, name) is getattr(hooks, name), name
""")


def test_objects_of_pywaggle_have_the_hooks_too(installed, waap, tmp_path):
    """What they publish themselves is what they published before."""
    program = waap("--collector.disable-defaults", "--collector.push", f"--push.socket={tmp_path}/push.sock")
    place = Place(installed, pywaggle(), WAAP_PUSH_SOCKET=f"{tmp_path}/push.sock", WAAP_PLUGIN_NAME="cars",
                  PYWAGGLE_LOG_DIR=str(tmp_path / "log"), WAGGLE_PLUGIN_HOST="127.0.0.1", WAGGLE_PLUGIN_PORT="1")
    place.run("""
from waggle.plugin import Plugin
import os
plugin = Plugin()
with plugin:
    plugin.metric("fps").inc()
    plugin.metric.update("acc", 0.5)
    assert plugin.param("res", 720).get() == 720
    with plugin.timeit("plugin.duration.inference"):
        plugin.publish("env.count.car", 3)
    with plugin.timeit("upload_time"):
        pass
    for wrong in None, "A b":
        try:
            with plugin.timeit(wrong):
                pass
        except (TypeError, ValueError) as error:
            assert "publish name" in str(error), error
        else:
            raise SystemExit("pywaggle took it")
    from waap import plugin as hooks
    assert hooks.flush()
    os._exit(0)  # pywaggle waits for its broker
""")
    page = program.samples(path="/metrics?collect[]=push")
    assert page['fps_total{plugin="cars"}'] == "1" and page['acc{plugin="cars"}'] == "0.5"
    assert page['plugin_duration_seconds_count{name="inference",plugin="cars"}'] == "1"
    assert page['upload_time_seconds_count{plugin="cars"}'] == "1"
    log = [json.loads(line) for line in (tmp_path / "log/data.ndjson").read_text().splitlines()]
    assert [entry["name"] for entry in log] == ["env.count.car", "plugin.duration.inference", "upload_time"]
    assert isinstance(log[1]["value"], int)


def test_a_stand_in_does_not_pretend_to_publish(installed):
    for place in (Place(installed), Place(sys.executable, DOOR)):
        place.run("""
from waggle.plugin import Plugin
with Plugin() as plugin:
    plugin.metric("fps")
    try:
        plugin.publish("env.count.car", 3)
    except AttributeError as error:
        assert str(error).startswith("publish: needs pywaggle, which is not installed"), error
    else:
        raise SystemExit("published to nobody")
try:
    import waggle.data
except ImportError as error:
    assert error.name == "waggle.data"
else:
    raise SystemExit("made up")
""")


def test_nothing_happens_by_accident(tmp_path):
    """The package alone is not enough, and neither is a module of that name shadowed."""
    package = ROOT / "plugin/python"
    alone = Place(sys.executable, package)
    alone.run("""
import waap.plugin
try:
    import waggle
except ImportError:
    pass
else:
    raise SystemExit("there is a waggle")
""")
    beside = Place(sys.executable, package, pywaggle())
    beside.run("import waap.plugin; from waggle import plugin; assert not hasattr(plugin, 'metric')")
    (tmp_path / "waggle.py").write_text("plugin = 'mine'\n")
    mine = Place(sys.executable, DOOR, tmp_path)
    mine.run("from waggle import plugin; assert plugin == 'mine'")


def test_pywaggle_stays_as_it_is(installed):
    def digest():
        files = sorted((pywaggle() / "waggle").rglob("*.py"))
        return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()

    before = digest()
    for place in (Place(installed, pywaggle()), Place(sys.executable, DOOR, pywaggle())):
        where = place.run("from waggle import plugin; print(plugin.__file__)")
        assert pathlib.Path(where.strip()) == pywaggle() / "waggle/plugin/__init__.py"
        place.run("import inspect; from waggle import plugin; assert 'Uploader' in inspect.getsource(plugin)")
    assert digest() == before


def test_a_hook_that_pywaggle_has_itself_is_its_own(tmp_path):
    (tmp_path / "waggle/plugin").mkdir(parents=True)
    (tmp_path / "waggle/__init__.py").touch()
    (tmp_path / "waggle/plugin/__init__.py").write_text("def metric(name):\n    return 'its own'\n")
    Place(sys.executable, DOOR, tmp_path).run("""
from waggle import plugin
assert plugin.metric("fps") == "its own" and plugin.param("res").get() is None
""")


@pytest.mark.parametrize("python", old_pythons())
def test_other_pythons(python):
    if python is None:
        pytest.skip("SKIP: no such Python here")
    Place(python, DOOR).run("from waggle import plugin; plugin.Plugin; assert plugin.param('res').get() is None")
