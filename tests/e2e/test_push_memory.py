"""What one push may take of memory while it is read and applied, whatever it says."""

import gzip

import pytest

from large_bodies import BODIES, GROUP, JSON, MAX_BODY, packed_headers

ALONE = ("--collector.disable-defaults", "--collector.push")
LONG = "v" * 250
LABELS = '{"b":"%s","c":"%s#"}' % (LONG, LONG[10:])

# As much as one push may have.
ACCEPTED = {
    "json: updates of one series with a long help": (
        JSON,
        lambda i: '{"metric":"a","type":"counter","inc":1,"help":"%s","labels":%s}\n' % ("h" * 1000, LABELS),
    ),
    "json: 4,000 series": (JSON, lambda i: '{"metric":"a","type":"gauge","set":1,"labels":%s}\n' % LABELS.replace("#", str(i))),
    "text: 4,000 series": (GROUP, lambda i: 'a%d{b="%s",c="%s"} 1\n' % (i, LONG, LONG)),
}


def peak_of(program, path, body, headers):
    """Answer, and bytes that the push took at most beyond those that were in use before it."""
    program.reset_peak()
    before = program.rss_kib()
    answer = program.get(path, headers, method="POST", body=gzip.compress(body))
    return answer, (program.rss_kib("VmHWM") - before) * 1024


def check_peak(daemon, name, path, body):
    answer, peak = peak_of(daemon, path, body, packed_headers(name))
    print(f"{name}: {answer.status}, {peak / len(body):.1f} x: {answer.text.strip()[:150]}")
    assert peak < 3 * len(body)
    return answer


@pytest.mark.parametrize("name", BODIES)
def test_the_largest_push_takes_less_than_three_times_its_size(waap, name):
    path, make = BODIES[name]
    daemon = waap(*ALONE)
    body = make()
    assert 0.99 * MAX_BODY < len(body) <= MAX_BODY
    check_peak(daemon, name, path, body)
    assert daemon.get("/-/healthy").status == 200


@pytest.mark.parametrize("name", ACCEPTED)
def test_so_does_one_that_is_accepted_beside_the_series_it_makes(waap, name):
    path, make = ACCEPTED[name]
    daemon = waap(*ALONE, "--push.max-size-per-peer=60MiB")
    lines = [make(i).encode() for i in range(3999)]
    body = b"".join(lines)
    for i in range(20):
        part = b"".join(lines[i::20])
        assert daemon.get(path, method="POST", body=part).status == 200
    assert check_peak(daemon, name, path, body).status == 200
