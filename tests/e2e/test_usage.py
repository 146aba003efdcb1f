def test_no_command_is_a_usage_error(run_waap):
    done = run_waap()
    assert done.returncode == 2
    assert "usage: waap" in done.stderr
