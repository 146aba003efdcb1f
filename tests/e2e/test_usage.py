import subprocess


def test_no_command_is_a_usage_error(waap_binary):
    done = subprocess.run([waap_binary], capture_output=True, text=True, timeout=10)
    assert done.returncode == 2
    assert "usage: waap" in done.stderr
