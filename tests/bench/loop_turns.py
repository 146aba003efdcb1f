"""The longest turn of the event loop while a peer sends each kind of line and request, the store at its limits."""

import contextlib
import gzip
import itertools
import json
import pathlib
import tempfile
import threading
import time

from effort import effort
from measure import Watch, running
from paths import BUILD
from large_bodies import BODIES, packed_headers
from plugin import Plugin
from running import Waap
from table import seconds

BUDGET = 5e-3
N_GROUPS = effort(990, 20)
N_SERIES = effort(10000, 200)  # of one plugin: as many as are allowed
N_BATCH = effort(4000, 200)  # of one push: the same
N_FILLED = effort(5, 1)  # plugins that have as many
N_NAMING = 20  # series of each group that name a plugin
CHUNK = 64 << 10


def chunk(*objects):
    """As many lines as one write of a peer brings, over and over the same ones."""
    lines = b"".join(json.dumps(item).encode() + b"\n" for item in objects)
    return lines * max(1, CHUNK // len(lines))


class Bench:
    def __init__(self, daemon, path, watch):
        self.daemon, self.path, self.watch = daemon, path, watch

    def request(self, method, path, body=None, headers={}, status=(200, 202)):
        answer = self.daemon.get(path, method=method, body=body, headers=headers)
        if answer.status not in status:
            raise RuntimeError(f"{method} {path}: {answer.status} {answer.text[:300]}")
        return answer

    def push(self, objects, **options):
        return self.request("POST", "/api/v1/push", json.dumps(objects).encode(), **options)

    def push_parts(self, objects):
        for begin in range(0, len(objects), N_BATCH):
            self.push(objects[begin:begin + N_BATCH])

    def put(self, path, text, method="PUT", **options):
        return self.request(method, path, text.encode(), **options)

    def lines(self, data, hello={"plugin": "liner"}, n=4):
        """Sends the lines over some connections; waits until all were taken."""
        with contextlib.ExitStack() as stack:
            plugins = [stack.enter_context(Plugin(self.path, hello, timeout=120)) for _ in range(n)]
            for plugin in plugins:
                for begin in range(0, len(data), CHUNK):
                    plugin.send(data[begin:begin + CHUNK])
            for plugin in plugins:
                plugin.settle()


def gauges(plugin, n, name="g", **more):
    return [{"plugin": plugin, "metric": name, "type": "gauge", "set": i, "labels": {"i": str(i)}, **more} for i in range(n)]


def text(n, name="t", turn=0, pad=""):
    return "".join(f'{name}{{i="{i}",pad="{pad}"}} {i + turn}\n' for i in range(n))


def naming():
    return "".join(f'named{{plugin="victim",i="{i}"}} {i}\n' for i in range(N_NAMING))


def fill(bench):
    for i in range(N_GROUPS):
        bench.put(f"/metrics/job/group-{i}", naming())
    for i in range(N_FILLED):
        bench.push_parts(gauges(f"filled-{i}", N_SERIES))
    bench.put("/metrics/job/large", text(N_BATCH))


# ---- cases ----


def same_hello(bench):
    bench.lines(chunk({"hello": {"plugin": "victim", "labels": {"cam": "top"}}}))


def changing_hellos(bench):
    bench.lines(chunk(*({"hello": {"plugin": f"v{i}"}} for i in range(100))))


def hellos_beyond_limit(bench):
    with contextlib.ExitStack() as stack:
        for i in range(60):
            stack.enter_context(Plugin(bench.path, {"plugin": f"x{i}"}, timeout=60)).tell(
                {"metric": "x", "type": "gauge", "set": 1})
        bench.lines(chunk(*({"hello": {"plugin": f"beyond{i}"}} for i in range(1000))), n=3)


def evicting_hello(bench):
    with Plugin(bench.path, {"plugin": "victim"}, timeout=60) as plugin:
        plugin.settle()
        time.sleep(effort(4, 0))


def stronger_claim(bench):
    bench.push_parts(gauges("claimed", N_SERIES))
    bench.watch.begin()
    with Plugin(bench.path, {"plugin": "claimed"}, timeout=60) as plugin:
        plugin.settle()


def counters(bench):
    bench.lines(chunk({"metric": "n_total", "type": "counter", "inc": 1}))


def totals(bench):
    bench.lines(chunk({"metric": "n_total", "type": "counter", "total": 1}), hello={"plugin": "l", "start": "s"})


def new_series(bench):
    bench.lines(b"".join(json.dumps({"metric": "fresh", "type": "gauge", "set": i, "labels": {"i": str(i)}}).encode() + b"\n" for i in range(effort(9000, 100))), n=1)
    bench.request("DELETE", "/api/v1/series?match[]=fresh", status=(200, 202, 404))


def wide_labels(bench):
    labels = {f"label{i}": "x" * 1000 for i in range(30)}
    lines = [{"metric": "wide", "type": "gauge", "set": 1, "labels": {**labels, "i": str(i)}} for i in range(effort(200, 5))]
    bench.lines(b"".join(json.dumps(line).encode() + b"\n" for line in lines), n=1)


def observations(bench):
    bench.lines(chunk({"metric": "h", "type": "histogram", "observe": [0.5] * 12000}) * 8, n=1)
    bench.lines(chunk({"metric": "h", "type": "histogram", "observe": 0.1}))


def many_buckets(bench):
    bounds = list(range(1, 200))
    bench.lines(b"".join(json.dumps({"metric": "hb", "type": "histogram", "observe": 3, "buckets": bounds, "labels": {"i": str(i)}}).encode() + b"\n" for i in range(effort(300, 3))), n=1)


def rates(bench):
    bench.lines(chunk({"metric": "fps", "type": "rate", "inc": 1}))


def knobs(bench):
    declare = [{"param": f"k{i}", "type": "int", "default": 1, "min": 0, "max": 9} for i in range(64)]
    bench.lines(chunk(*declare), n=2)
    bench.lines(chunk(*declare, *({"param": f"k{i}", "applied": 2} for i in range(64))), n=2)


def acknowledgements(bench):
    with Plugin(bench.path, {"plugin": "acks"}, timeout=60) as plugin:
        plugin.send(chunk({"seq": 1}))
        while plugin.hear() is not None and plugin.received:
            pass


def refused_lines(bench):
    bench.lines(b"garbage\n" * (CHUNK // 8))
    bench.lines(chunk({"metric": "n_total", "type": "gauge", "set": 1}))


def blank_lines(bench):
    bench.lines(b"\n" * CHUNK)


def comings_and_goings(bench):
    for _ in range(effort(5, 1)):
        with contextlib.ExitStack() as stack:
            for i in range(50):
                stack.enter_context(Plugin(bench.path, {"plugin": f"c{i}"}, timeout=60))


def small_push(bench):
    for turn in range(effort(5, 1)):
        body = json.dumps(gauges("small", effort(1500, 100))).encode()
        bench.request("POST", "/api/v1/push", body)
    bench.push(gauges("small", effort(1500, 100), ttl=1))


def small_push_new(bench):
    bench.push(gauges("smallnew", effort(1400, 50), name="sn"))
    bench.request("DELETE", "/api/v1/series?match[]=sn", status=(200, 202, 404))


def many_owners(bench):
    owners = [{"plugin": f"o{i}", "metric": "o", "type": "gauge", "set": 1} for i in range(effort(800, 10))]
    for i in range(0, len(owners), 100):  # as many as one push may have
        bench.push(owners[i : i + 100])
    time.sleep(0.1)


def alternating_owners(bench):
    bench.push([{"plugin": f"o{i % 3}", "metric": "o", "type": "gauge", "set": 1} for i in range(effort(99, 10))])


def pushes_at_once(bench):
    body = json.dumps(gauges("small", 150)).encode()
    connections = [bench.daemon.connect() for _ in range(effort(30, 3))]
    for connection in connections:
        connection.putrequest("POST", "/api/v1/push")
        connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body[:-1])
    for connection in connections:
        connection.send(body[-1:])
    for connection in connections:
        answer = connection.getresponse()
        if answer.status not in (200, 503):
            raise RuntimeError(answer.read())
        connection.close()


def push_of_new(bench):
    bench.push(gauges("new-0", N_BATCH // 2, name="pn") + gauges("new-1", N_BATCH // 2, name="pn"))
    bench.request("DELETE", "/api/v1/series?match[]=pn", status=(200, 202, 404))


def large_push(bench):
    bench.push(gauges("filled-0", N_BATCH))


def large_push_and_hello(bench):
    body = json.dumps(gauges("filled-0", N_BATCH // 2) + gauges("filled-1", N_BATCH // 2)).encode()
    connection = bench.daemon.connect()
    for _ in range(effort(5, 1)):
        connection.request("POST", "/api/v1/push", body)
        end = time.monotonic() + effort(0.3, 0.01)
        while time.monotonic() < end:
            with Plugin(bench.path, {"plugin": "between"}, timeout=60) as plugin:
                plugin.settle()
            bench.request("DELETE", "/metrics/job/none", status=(202, 404))
            bench.request("GET", "/api/v1/plugins/between", status=(200, 404))
        connection.getresponse().read()
    connection.close()


def packed_push(bench):
    bench.request("POST", "/api/v1/push", gzip.compress(json.dumps(gauges("filled-0", N_BATCH)).encode()),
                  {"Content-Encoding": "gzip"})


def largest_pushes(bench):
    for name in ("json: array", "text: series", "protobuf: families"):
        path, make = BODIES[name]
        bench.request("POST", path, gzip.compress(make()), packed_headers(name), status=(200, 202, 400, 413))


def put_same(bench):
    bench.put("/metrics/job/large", text(N_BATCH, turn=1))


def put_other(bench):
    bench.put("/metrics/job/large", text(N_BATCH // 2, name="other"))
    bench.put("/metrics/job/large", text(N_BATCH))


def put_empty(bench):
    bench.put("/metrics/job/large", "")
    bench.put("/metrics/job/large", text(N_BATCH))


def post_families(bench):
    bench.put("/metrics/job/large", text(N_BATCH // 2), method="POST")
    bench.put("/metrics/job/large", text(N_BATCH))


def refused_put(bench):
    bench.put("/metrics/job/large2", text(10001), status=(413,))


def delete_group(bench):
    bench.request("DELETE", "/metrics/job/large")
    bench.put("/metrics/job/large", text(N_BATCH))


def delete_some(bench):
    bench.request("DELETE", "/api/v1/series?match[]=" + '{__name__=~".*absent.*"}', status=(200, 202, 404))
    bench.request("DELETE", "/api/v1/series?match[]=" + '{job="large"}', status=(200, 202, 404))
    bench.put("/metrics/job/large", text(N_BATCH))


def listings(bench):
    bench.request("GET", "/api/v1/metrics")
    bench.request("GET", "/api/v1/plugins")


def pages(bench):
    for headers in ({}, {"Accept-Encoding": "gzip"}, {"Accept": "application/openmetrics-text;version=1.0.0"}):
        bench.request("GET", "/metrics", headers=headers)


def pages_and_lines(bench):
    data = chunk({"metric": "n_total", "type": "counter", "inc": 1})
    connection = bench.daemon.connect()
    with Plugin(bench.path, {"plugin": "liner"}, timeout=60) as plugin:
        for _ in range(effort(10, 1)):
            connection.request("GET", "/metrics")
            end = time.monotonic() + effort(0.2, 0.01)
            while time.monotonic() < end:
                plugin.send(data)
                plugin.settle()
            connection.getresponse().read()
    connection.close()


def reload(bench):
    for _ in range(effort(3, 1)):
        bench.request("POST", "/-/reload")


def expiry(bench):
    bench.push_parts(gauges("mortal", N_SERIES, ttl=1))
    bench.watch.begin()
    time.sleep(effort(4, 0))


def churn(bench):
    """Until the table has been copied several times."""
    for i in range(effort(30, 1)):
        bench.put("/metrics/job/churn", text(N_SERIES // 4, name=f"churn{i}", pad="x" * 200))
    bench.request("DELETE", "/metrics/job/churn")


def churn_and_writes(bench):
    """Whatever else writes while the table is being copied."""
    with Plugin(bench.path, {"plugin": "knobs"}, timeout=60) as plugin:
        plugin.tell({"param": "k", "type": "int", "default": 1, "min": 0, "max": 9})
        thread = threading.Thread(target=churn, args=(bench,))
        thread.start()
        for i in itertools.count():
            bench.push(gauges("between", 10))
            bench.put("/metrics/job/between", "between_runs 1\n")
            bench.request("DELETE", "/metrics/job/between")
            bench.request("PUT", "/api/v1/plugins/knobs/params/k", json.dumps({"value": i % 10}).encode())
            plugin.settle()
            if not thread.is_alive():
                break
        thread.join()


def refused_new(bench):
    last = {"plugin": "refused-0", "metric": "rn", "type": "counter", "inc": 1}
    bench.push(gauges("refused-0", N_BATCH // 2 - 1, name="rn") + gauges("refused-1", N_BATCH // 2, name="rn") + [last],
               status=(400, 409))


def refused_groups(bench):
    objects = [{"group": {"job": f"group-{i % 2}"}, "metric": "alternating", "type": "gauge", "set": 1} for i in range(effort(99, 10))]
    bench.push(objects + [{**objects[0], "type": "counter", "inc": 1}], status=(400, 409))


def wipe(bench):
    bench.request("PUT", "/api/v1/admin/wipe")


CASES = {
    "hellos of one name": same_hello,
    "hellos of changing names": changing_hellos,
    "hellos beyond the limit": hellos_beyond_limit,
    "counters": counters,
    "totals": totals,
    "new series, one per line": new_series,
    "new series with 30 KiB of labels": wide_labels,
    "observations": observations,
    "new histograms of 200 buckets": many_buckets,
    "rates": rates,
    "knobs": knobs,
    "acknowledgements": acknowledgements,
    "lines that are refused": refused_lines,
    "blank lines": blank_lines,
    "connections that come and go": comings_and_goings,
    "push of 128 KiB": small_push,
    "push of 128 KiB, new series": small_push_new,
    "push of 800 plugins": many_owners,
    "push that alternates between plugins": alternating_owners,
    "many small pushes at once": pushes_at_once,
    "push of new series": push_of_new,
    "push of all series of a plugin": large_push,
    "the same, packed": packed_push,
    "pushes of 10 MiB, packed": largest_pushes,
    "large pushes, and hellos meanwhile": large_push_and_hello,
    "PUT of a large group, the same series": put_same,
    "PUT of a large group, other series": put_other,
    "PUT that empties a large group": put_empty,
    "POST that replaces half of a large group": post_families,
    "PUT beyond the limit": refused_put,
    "DELETE of a large group": delete_group,
    "DELETE by selector": delete_some,
    "listings": listings,
    "scrapes": pages,
    "scrapes, and counters meanwhile": pages_and_lines,
    "reload": reload,
    "series that expire": expiry,
    "series that come and go": churn,
    "the same, and other writes meanwhile": churn_and_writes,
    "push of new series that is refused": refused_new,
    "push of two groups that is refused": refused_groups,
    "a plugin takes over a large one": stronger_claim,
    "a plugin evicts series of groups": evicting_hello,
    "wipe": wipe,
}


def run(table):
    table.heading("longest turn of the event loop")
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory, "push.sock")
        watch = Watch(directory)
        flags = ("--collector.disable-defaults", "--collector.push", f"--push.socket={path}",
                 f"--push.table={directory}/table", f"--push.state-file={directory}/state", "--push.state-interval=1s",
                 "--push.table-size=128MiB", "--push.max-size-per-peer=100MiB", "--web.enable-admin-api", "--web.enable-lifecycle")
        with running(Waap(BUILD / "exporter/waap", *flags, env=watch.env)) as daemon:
            daemon.wait_log("push: listening on")
            bench = Bench(daemon, path, watch)
            watch.begin()
            fill(bench)
            table.line("filling the store", seconds(watch.longest()))
            for name, case in CASES.items():
                watch.begin()
                case(bench)
                for _ in range(2):  # the turn of its last answer ends before that of the next
                    bench.request("GET", "/-/healthy")
                value = watch.longest()
                table.line(name, seconds(value), budget=f"<= {seconds(BUDGET)}", good=value <= BUDGET)
