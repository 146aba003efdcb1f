"""README's commands do what README says: tests/e2e/readme.sh runs them as a new user would."""

import os
import re
import shutil
import subprocess

import pytest

from running import ROOT, free_port

SCRIPT = ROOT / "tests/e2e/readme.sh"


@pytest.fixture
def walk(tmp_path, waap_binary):
    """walk(text, NAME=value…): exit code and output of the walk through that text."""
    build = waap_binary.parents[1]
    if build != ROOT / "build":
        pytest.skip("README's `make run` starts the optimised build")
    for program in ("cc", "make", "meson", "pkg-config"):
        if shutil.which(program) is None:
            pytest.skip(f"no {program} on this machine")

    def run(text, **more):
        tree = tmp_path / "tree"
        tree.mkdir(exist_ok=True)
        for path in ROOT.iterdir():
            if path.name != "README.md" and not (tree / path.name).exists():
                (tree / path.name).symlink_to(path)
        (tree / "README.md").write_text(text)
        environment = {k: v for k, v in os.environ.items() if not k.startswith("WAAP_")}
        environment.update(PORT=str(free_port()), TMPDIR=str(tmp_path), **more)
        done = subprocess.run([SCRIPT, tree], env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=300)
        print(done.stdout)
        return done.returncode, done.stdout

    return run


def test_readme_does_what_it_says(walk):
    code, said = walk((ROOT / "README.md").read_text())
    assert code == 0
    commands = re.findall(r"^(?:run|look)  +(.*)", said, flags=re.M)
    # The ways a new user goes: start it, look, demo, a plugin in each language, a knob, a push, the Pushgateway's paths.
    for wanted in ("make run", "make run ARGS=--demo", "curl -s localhost:9090/metrics", "python3 objcounter.py", "./a.out",
                   "curl -X PUT", "curl -d", "echo 'files_saved", "waap check-config"):
        assert [command for command in commands if command.startswith(wanted)], wanted


@pytest.mark.parametrize("text, complaint", [
    ("\n    curl -s localhost:9090/nobody-is-there\n\nend\n", "FAIL line 2"),
    ("\n    $ echo one 1\n    two 1\n\nend\n", "FAIL line 2"),
    ("\n    wget localhost:9090\n\nend\n", "what is this: wget"),
], ids=["command", "output", "unknown"])
def test_the_walk_finds_mistakes(walk, text, complaint):
    code, said = walk(text, PATIENCE="3")
    assert code != 0 and complaint in said
