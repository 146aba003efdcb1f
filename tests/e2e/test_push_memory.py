"""What one push may take of memory while it is read and applied, whatever it says."""

import gzip

import pytest

from large_bodies import BODIES, GROUP, JSON, MAX_BODY, filled, numbered, packed_headers

ALONE = ("--collector.disable-defaults", "--collector.push")
LONG = "v" * 560

ACCEPTED = {
    "json: updates with a long help": (
        JSON,
        lambda: filled(b'{"metric":"a","type":"counter","inc":1,"help":"%s"}\n' % (b"h" * 100)),
    ),
    "json: 9,000 series": (
        JSON,
        lambda: numbered(
            '{"metric":"a","type":"gauge","set":1,"labels":{"b":"%s","c":"%s#"}}\n' % (LONG, LONG)
        ),
    ),
    "text: 9,000 series": (GROUP, lambda: numbered('a#{b="%s",c="%s"} 1\n' % (LONG, LONG))),
}


def peak_of(program, path, body, headers):
    """Answer, and bytes that the push took at most beyond those that were in use before it."""
    program.reset_peak()
    before = program.rss_kib()
    answer = program.get(path, headers, method="POST", body=gzip.compress(body))
    return answer, (program.rss_kib("VmHWM") - before) * 1024


def check_peak(daemon, name, path, body):
    assert 0.99 * MAX_BODY < len(body) <= MAX_BODY
    answer, peak = peak_of(daemon, path, body, packed_headers(name))
    print(f"{name}: {answer.status}, {peak / len(body):.1f} x: {answer.text.strip()[:150]}")
    assert peak < 3 * len(body)
    return answer


@pytest.mark.parametrize("name", BODIES)
def test_the_largest_push_takes_less_than_three_times_its_size(waap, name):
    path, make = BODIES[name]
    daemon = waap(*ALONE)
    check_peak(daemon, name, path, make())
    assert daemon.get("/-/healthy").status == 200


@pytest.mark.parametrize("name", ACCEPTED)
def test_so_does_one_that_is_accepted_beside_the_series_it_makes(waap, name):
    path, make = ACCEPTED[name]
    daemon = waap(*ALONE)
    body = make()
    lines = body.splitlines(keepends=True)
    for i in range(20):
        part = b"".join(lines[i::20])
        assert daemon.get(path, method="POST", body=part).status == 200
    assert check_peak(daemon, name, path, body).status == 200
