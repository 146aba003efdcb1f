"""What bash offers behind `waap`, with its own completion machinery."""

import subprocess

import pytest

from running import ROOT
from waiting import LIMIT

SCRIPT = ROOT / "deploy/completion/waap"
# As readline calls it: the words are split at "=" and ":", too.
ASK = r"""
source "$0"
COMP_LINE=$2 COMP_POINT=${#2}
read -ra COMP_WORDS <<<"${COMP_LINE//=/ = }"
[[ $COMP_LINE != *[[:space:]] ]] || COMP_WORDS+=("")
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
function=$(complete -p waap | sed 's/.*-F \(\S*\).*/\1/')
"$function" "$1" "${COMP_WORDS[-1]}" "${COMP_WORDS[-2]}"
printf '%s\n' "${COMPREPLY[@]}"
"""


@pytest.fixture
def offered(waap_binary, tmp_path):
    def ask(line, place=None):
        done = subprocess.run(["bash", "-c", ASK, SCRIPT, waap_binary, line], capture_output=True, text=True,
                              cwd=place or tmp_path, timeout=LIMIT, check=True)
        assert done.stderr == ""
        return set(done.stdout.splitlines()) - {""}

    return ask


def commands(run_waap):
    return {line.split()[0] for line in run_waap("help").stdout.splitlines() if line.startswith("  ")}


def test_commands(offered, run_waap):
    assert {"serve", "check-config"} < commands(run_waap)
    assert offered("waap ") == commands(run_waap) | {"--help", "--version"}
    assert offered("waap s") == {name for name in commands(run_waap) if name.startswith("s")}
    assert offered("waap --v") == {"--version"}
    assert offered("waap help ") == commands(run_waap)
    assert offered("waap help serv") == {"serve"}
    assert offered("waap no-such-command ") == set()


def test_every_setting_is_offered(offered, run_waap):
    rows = [line.split() for line in run_waap("serve", "--list-settings").stdout.splitlines()[1:]]
    flags = offered("waap serve --")
    names = {flag.rstrip("=") for flag in flags}
    assert names >= {f"--{row[0]}" for row in rows}
    for row in rows:
        switch = row[3:6] == ["true", "or", "false"]
        assert (f"--no-{row[0]}" in flags, f"--{row[0]}" in flags) == (switch, switch or row[0] == "demo"), row


@pytest.mark.parametrize("line, expected", [
    ("waap serve --log.le", {"--log.level="}),
    ("waap serve --log.level=", {"debug", "info", "warn", "error"}),
    ("waap serve --log.level=w", {"warn"}),
    ("waap serve --log.level w", {"warn"}),
    ("waap serve --demo", {"--demo", "--demo="}),
    ("waap serve --demo ", set()),
    ("waap serve --demo=", {"off", "jetson", "dgpu"}),
    ("waap serve --web.enable-l", {"--web.enable-lifecycle"}),
    ("waap serve --no-collector.te", {"--no-collector.textfile"}),
    ("waap serve --web.systemd-socket=t", {"true"}),
    ("waap serve --web.listen-address=:9091 --log.f", {"--log.format="}),
    ("waap serve --list-m", {"--list-metrics"}),
    ("waap healthcheck --web.listen-a", {"--web.listen-address="}),
    ("waap check-config na", {"name with blanks", "names.yaml"}),
    ("waap serve --config.file=names", {"names.yaml"}),
    ("waap serve --config.file names", {"names.yaml"}),
    ("waap version ", set()),
    ("waap compare --thres", {"--threshold="}),
    ("waap compare na", {"name with blanks", "names.yaml"}),
    ("waap control --dry", {"--dry-run"}),
    ("waap model --js", {"--json"}),
    ("waap place simul", {"simulate"}),
    ("waap place simulate simul", set()),
    ("waap run --ou", {"--out="}),
    ("waap run names", {"names.yaml"}),
])
def test_the_rest_of_a_line(offered, tmp_path, line, expected):
    (tmp_path / "names.yaml").touch()
    (tmp_path / "name with blanks").touch()
    (tmp_path / "other").mkdir()
    assert offered(line) == expected
