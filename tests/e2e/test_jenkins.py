"""deploy/jenkins without a Jenkins: its shell step with a fake ssh and a fake waap at the edge, its XML, its pipeline."""

import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET

import pytest
import yaml

from running import ROOT
from waiting import LIMIT

JENKINS = ROOT / "deploy/jenkins"
IMAGE = "registry.local/plugins/objcounter:1.2"

# The node: what ssh was called with is kept, and its command runs here, with the waap below.
SSH = r"""#!/bin/sh
printf '%s\0' "$@" >"$FAKES/ssh.argv"
for last; do :; done
exec sh -c "$last"
"""
WAAP = r"""#!/bin/sh
printf '%s\0' "$@" >"$FAKES/waap.argv"
cp "$2" "$FAKES/sage.yaml"
out=${3#--out=}
mkdir -p "$out/output"
echo '{"kind":"run"}' >"$out/samples.jsonl"
echo '<testsuites/>' >"$out/junit.xml"
echo progress
exit "${FAKE_STATUS:-0}"
"""

HOSTILE = [
    "; rm -rf $CANARY",
    "$(touch $CANARY)",
    "`touch $CANARY`",
    "' ; touch $CANARY ; '",
    '" ; touch $CANARY ; "',
    '"}]}\nname: evil\nprofiling: {targets: [{command: [touch, x]}]}\n',
    "a\nb\r\n\tc",
    "\\",
    '\\" \\\\n \\$HOME',
    "--out=/etc --image=evil",
    "*",
    "%s%n %d",
    "{x: y} # not a comment",
    "\x01\x1b[31m\x7f",
    "große Straße 速い 🚗",
    "-n",
    "",
]


@pytest.fixture
def profile(tmp_path):
    """profile(app_name=…, app_args=…): runs the step as Jenkins would; what came out, and what the node saw."""
    fakes = tmp_path / "fakes"
    fakes.mkdir()
    for name, text in (("ssh", SSH), ("waap", WAAP)):
        (fakes / name).write_text(text)
        (fakes / name).chmod(0o755)
    workspace = tmp_path / "workspace"
    workspace.mkdir()

    def run(**variables):
        environment = {"PATH": f"{fakes}:{os.environ['PATH']}", "FAKES": str(fakes), "CANARY": str(tmp_path / "canary"),
                       "TMPDIR": str(tmp_path), "app_name": IMAGE, "WAAP_NODE": "nvidia-nx",
                       "WAAP_IMAGES": "registry.local/plugins/* docker.io/library/busybox", **variables}
        done = subprocess.run([JENKINS / "profile"], cwd=workspace, env=environment, capture_output=True, text=True, timeout=LIMIT)
        assert not (tmp_path / "canary").exists()
        return done

    run.fakes = fakes
    run.workspace = workspace
    return run


def argv_of(fakes, name):
    return (fakes / f"{name}.argv").read_text().split("\0")[:-1]


def test_a_record_comes_back(profile):
    done = profile(app_args="--input sample.mp4")
    assert done.returncode == 0, done.stderr
    out = profile.workspace / "out"
    assert sorted(path.name for path in out.iterdir()) == ["junit.xml", "output", "sage.yaml", "samples.jsonl", "status"]
    assert (out / "junit.xml").read_text() == "<testsuites/>\n"
    argv = argv_of(profile.fakes, "ssh")
    assert argv[:4] == ["-o", "BatchMode=yes", "--", "nvidia-nx"] and len(argv) == 5
    spec = yaml.safe_load((profile.fakes / "sage.yaml").read_text())
    assert spec == {"name": IMAGE, "profiling": {"gates": [], "targets": [
        {"name": "main", "image": IMAGE, "args": "--input sample.mp4", "timeout": 120, "repeats": 4}]}}
    directory = argv_of(profile.fakes, "waap")[1].rsplit("/", 1)[0]
    assert not os.path.exists(directory)  # the node is left as it was


@pytest.mark.parametrize("value", HOSTILE)
def test_hostile_arguments_stay_data(profile, value):
    done = profile(app_args=value)
    assert done.returncode == 0, done.stderr
    spec = yaml.safe_load((profile.fakes / "sage.yaml").read_text())
    assert spec["profiling"]["targets"][0]["args"] == value
    assert list(spec) == ["name", "profiling"] and len(spec["profiling"]["targets"]) == 1
    # The command of the node is the same whatever users type.
    first = argv_of(profile.fakes, "ssh")
    profile()
    assert argv_of(profile.fakes, "ssh") == first
    assert [re.sub(r"^.*/", "", word) for word in argv_of(profile.fakes, "waap")] == ["run", "sage.yaml", "out"]


@pytest.mark.parametrize("variables, words", [
    *[({"app_name": value}, "app_name: ") for value in HOSTILE],
    ({"app_name": "-v/:/host"}, "expected the name of an image"),
    ({"app_name": f"{IMAGE} --privileged"}, "expected the name of an image"),
    ({"app_name": f"{IMAGE}\nx"}, "expected the name of an image"),
    ({"app_name": "evil.example.org/plugins/x"}, "no pattern of WAAP_IMAGES allows"),
    ({"WAAP_IMAGES": ""}, "no pattern of WAAP_IMAGES allows"),
    ({"WAAP_NODE": ""}, "WAAP_NODE"),
    ({"WAAP_NODE": "-oProxyCommand=touch"}, "WAAP_NODE"),
    ({"WAAP_TIMEOUT": "1; reboot"}, "WAAP_TIMEOUT"),
    ({"WAAP_REPEATS": "many"}, "WAAP_REPEATS"),
    ({"WAAP_REPEATS": "010"}, "WAAP_REPEATS"),
    ({"WAAP_TIMEOUT": "090"}, "WAAP_TIMEOUT"),
])
def test_what_is_refused_never_reaches_the_node(profile, variables, words):
    done = profile(**variables)
    assert done.returncode == 2 and words in done.stderr
    assert not (profile.fakes / "ssh.argv").exists()


@pytest.mark.parametrize("status, code", [(0, 0), (1, 1), (2, 2), (3, 3), (4, 4), (127, 4), (130, 4)])
def test_exit_codes(profile, status, code):
    assert profile(FAKE_STATUS=str(status)).returncode == code
    assert (profile.workspace / "out/junit.xml").exists()


def test_a_node_that_does_not_answer(profile):
    (profile.fakes / "ssh").write_text("#!/bin/sh\nexit 255\n")
    done = profile()
    assert done.returncode == 4 and "nvidia-nx: no record came back" in done.stderr


def test_waap_run_understands_the_file(profile, run_waap):
    """The real parser reads what the step has written; it stops at a target that is not there."""
    profile(app_args='--text "two words"', WAAP_GATES="[{metric: fps.p50, min: 9.5}, {metric: memory.peak, max_increase: 5%}]")
    done = run_waap("run", profile.fakes / "sage.yaml", "--target=none")
    assert done.returncode == 2
    assert "none" in done.stderr and "sage.yaml:" not in done.stderr.replace(": no target", ""), done.stderr


def test_config_is_what_the_generator_makes():
    made = subprocess.run([sys.executable, JENKINS / "make_config.py", "https://git.example.org/waap.git"],
                          capture_output=True, text=True, check=True, timeout=LIMIT).stdout
    assert (JENKINS / "config.xml").read_text() == made
    job = ET.fromstring(made.encode())
    assert job.tag == "flow-definition"
    names = [element.text for element in job.iter("name")]
    assert names == ["app_name", "app_args", "*/main"]
    assert job.find("definition/scriptPath").text == "deploy/jenkins/Jenkinsfile"
    assert job.find("definition").get("class").endswith("CpsScmFlowDefinition")


def test_a_repository_of_any_name():
    url = "ssh://git@host/<&'\"> x.git"
    made = subprocess.run([sys.executable, JENKINS / "make_config.py", url, "dev"],
                          capture_output=True, text=True, check=True, timeout=LIMIT).stdout
    job = ET.fromstring(made.encode())
    assert job.find(".//url").text == url
    assert job.find(".//hudson.plugins.git.BranchSpec/name").text == "*/dev"


def test_pipeline_interpolates_nothing():
    text = re.sub(r"//.*", "", (JENKINS / "Jenkinsfile").read_text())
    assert re.findall(r"\bsh\b.*", text) == ["sh(script: 'deploy/jenkins/profile', returnStatus: true)"]
    assert '"' not in text and "$" not in text and "`" not in text  # no string of Groovy's that expands
    assert re.findall(r"string\(name: '(\w+)'", text) == ["app_name", "app_args"]
    for pair in ("{}", "()", "[]"):
        assert text.count(pair[0]) == text.count(pair[1])
    for word in ("junit testResults: 'out/junit.xml'", "archiveArtifacts artifacts: 'out/**'", "disableConcurrentBuilds()"):
        assert word in text
