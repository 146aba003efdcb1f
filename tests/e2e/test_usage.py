import os

import pytest

from running import Program, free_port


def test_no_command_is_a_usage_error(run_waap):
    done = run_waap()
    assert done.returncode == 2
    assert "usage: waap" in done.stderr


@pytest.mark.parametrize("command", ["collect", "import", "simulate", "train"])
def test_commands_of_a_command_have_a_help_of_their_own(run_waap, command):
    done = run_waap("place", command, "--help")
    assert done.returncode == 0 and done.stdout.startswith(f"usage: waap place {command} "), done
    assert f"waap place {command} " in run_waap("place", "--help").stdout


def test_closed_standard_descriptors_are_taken_by_nothing_else(waap_binary, started):
    address = f"127.0.0.1:{free_port()}"
    command = ["sh", "-c", 'exec "$0" "$@" 0<&- 1>&- 2>&-', waap_binary]
    command += ["serve", "--push.table=", f"--web.listen-address={address}"]
    running = started(Program(command, f"http://{address}")).wait_ready()
    places = [os.readlink(f"/proc/{running.process.pid}/fd/{fd}") for fd in range(3)]
    assert places == ["/dev/null"] * 3
    assert running.stop()[0] == 0
