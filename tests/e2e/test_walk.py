"""The commands of README, docs/ and the chapters work as shown: tests/e2e/readme.sh runs them as a new user would."""

import os
import re
import shutil
import subprocess

import pytest

from running import ROOT, free_port

SCRIPT = ROOT / "tests/e2e/readme.sh"
CHAPTERS = ["docs/architecture.md", "docs/coming-from.md", "docs/comparison.md", "docs/control.md",
            "docs/getting-started.md", "docs/plugin.md", "docs/profile.md", "docs/prometheus.md",
            "collectors/README.md", "deploy/README.md", "grafana/README.md", "placement/README.md", "plugin/README.md",
            "profiler/README.md"]


@pytest.fixture
def walk(tmp_path, waap_binary):
    """walk(text, NAME=value…): exit code and output of the walk through that text, or through all that the tree has."""
    build = waap_binary.parents[1]
    if build != ROOT / "build":
        pytest.skip("README's `make run` starts the optimised build")
    for program in ("cc", "make", "meson", "pkg-config"):
        if shutil.which(program) is None:
            pytest.skip(f"no {program} on this machine")

    def run(text=None, **more):
        command = [SCRIPT, ROOT]
        if text is not None:
            tree = tmp_path / "tree"
            tree.mkdir(exist_ok=True)
            for path in ROOT.iterdir():
                if path.name != "README.md" and not (tree / path.name).exists():
                    (tree / path.name).symlink_to(path)
            (tree / "README.md").write_text(text)
            command = [SCRIPT, tree, "README.md"]
        environment = {k: v for k, v in os.environ.items() if not k.startswith("WAAP_")}
        environment.update(PORT=str(free_port()), TMPDIR=str(tmp_path), **more)
        done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=300)
        print(done.stdout)
        return done.returncode, done.stdout

    return run


def test_readme_does_what_it_says(walk):
    code, said = walk()
    assert code == 0
    assert re.findall(r"^walk  +(.*)", said, flags=re.M) == ["README.md", *CHAPTERS]
    commands = re.findall(r"^(?:run|look)  +(.*)", said, flags=re.M)
    # The ways a new user goes: start it, look, demo, a plugin in each language, a knob, a push, the Pushgateway's paths.
    for wanted in ("make run", "make run ARGS=--demo", "curl -s localhost:9090/metrics", "python3 objcounter.py", "./objcounter",
                   "curl -X PUT", "curl -d", "echo 'files_saved", "waap check-config"):
        assert [command for command in commands if command.startswith(wanted)], wanted


@pytest.mark.parametrize("text, complaint", [
    ("\n    curl -s localhost:9090/nobody-is-there\n\nend\n", "FAIL line 2 of README.md"),
    ("\n    $ echo one 1\n    two 1\n", "FAIL line 2 of README.md"),
    ("\n    wget localhost:9090\n\nend\n", "what is this: wget"),
], ids=["command", "output", "unknown"])
def test_the_walk_finds_mistakes(walk, text, complaint):
    code, said = walk(text, PATIENCE="3")
    assert code != 0 and complaint in said
