"""What a plugin author does with the libraries: build them from their own files, install, link, copy."""

import os
import re
import shutil
import subprocess
import sys

import pytest

from push_peer import PushPeer
from running import ROOT

LIBRARY = ROOT / "plugin/c"
EXAMPLE = ROOT / "plugin/examples/objcounter.c"
STRICT = ["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror"]
# To the letter of C99 there are no atomics; gcc and clang have them all the same.
STANDARDS = [["-std=c99"], ["-std=gnu99"], ["-std=c11", "-Wpedantic"], ["-std=gnu11", "-Wpedantic"]]
NEWEST_GLIBC = (2, 27)
ONCE_INLINE = {"fstat", "lstat", "stat"}  # functions of the headers before glibc 2.33


def compiler(name):
    if shutil.which(name) is None:
        pytest.skip(f"SKIP: no {name}")
    return name


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=120, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def run_plugin(tmp_path, *command, **environment):
    """Runs a program to its end; returns the peer that it has spoken to."""
    with PushPeer(tmp_path / "push.sock") as peer:
        run(*command, env={**os.environ, "WAAP_PUSH_SOCKET": peer.path, **environment})
    return peer


def run_example(program, tmp_path, **environment):
    peer = run_plugin(tmp_path, program, "0.3", **environment)
    assert peer.sums["fps"] > 0
    assert peer.sums["inference_seconds_count"] == peer.sums["fps"]
    assert [line["param"] for line in peer.lines if "default" in line] == ["res"]
    assert peer.hellos[0]["plugin"] == os.path.basename(program)


@pytest.mark.parametrize("standard", STANDARDS, ids=lambda flags: flags[0][5:])
@pytest.mark.parametrize("name", ["cc", "clang", "gcc-7"])
def test_the_library_builds_from_its_own_files(tmp_path, name, standard):
    files = shutil.copytree(LIBRARY, tmp_path / "waap")
    include = f"-I{files / 'include'}"
    program = tmp_path / "objcounter"
    run(compiler(name), *STRICT, *standard, include, EXAMPLE, *files.glob("*.c"), "-pthread", "-o", program)
    run_example(program, tmp_path)


PART = """
    #include <waap/plugin.h>
    void work(void);
    void work(void) {
        waap_inc(waap_counter("frames_total", "Frames.", NULL));
        waap_observe(waap_histogram("work_seconds", "Work.", "stage", "one", NULL), 1);
        waap_param_string("model", "yolo", "Network.");
    }
"""


def build_part_and_host(tmp_path, host_text):
    """Compiles the files into a library of the program's own, and the program that loads it."""
    part, host = tmp_path / "part.c", tmp_path / "host.c"
    part.write_text(PART)
    host.write_text(host_text)
    library, program = tmp_path / "part.so", tmp_path / "host"
    include = f"-I{LIBRARY / 'include'}"
    run(compiler("cc"), *STRICT, include, "-fPIC", "-shared", part, *LIBRARY.glob("*.c"), "-pthread", "-o", library)
    run(compiler("cc"), *STRICT, "-fno-strict-aliasing", "-fno-builtin", "-rdynamic", host, "-ldl", "-o",
        program)
    return library, program


@pytest.mark.parametrize("threads, frames", [("", 3), ("int pthread_create(void) { return 11; /* EAGAIN */ }", None)])
def test_a_library_with_it_inside_can_be_unloaded(tmp_path, threads, frames):
    library, program = build_part_and_host(tmp_path, threads + """
        #include <dlfcn.h>
        #include <stdio.h>
        #include <unistd.h>
        int main(int argc, char **argv) {
            for (int i = 0; i < 3 && argc == 2; i++) {
                void *part = dlopen(argv[1], RTLD_NOW);
                void (*work)(void) = NULL;
                *(void **)&work = part != NULL ? dlsym(part, "work") : NULL;
                if (work == NULL) {
                    return 1;
                }
                work();
                dlclose(part);
                void *still; /* its thread may need a moment; the test has a timeout */
                while ((still = dlopen(argv[1], RTLD_NOW | RTLD_NOLOAD)) != NULL) {
                    dlclose(still);
                }
            }
            return dup(0) != 3; /* nothing is left open */
        }
    """)
    peer = run_plugin(tmp_path, program, library)
    assert peer.sums.get("frames_total") == frames


def test_what_is_unloaded_records_to_its_end(tmp_path):
    part, host, program = tmp_path / "part.c", tmp_path / "host.c", tmp_path / "host"
    part.write_text("""
        #include <stdlib.h>
        #include <waap/plugin.h>
        static struct waap_metric *closed;
        static void record(void) {
            waap_inc(closed);
            waap_inc(waap_counter("late_total", NULL, NULL));
        }
        __attribute__((destructor)) static void end(void) { record(); }
        __attribute__((constructor)) static void begin(void) {
            atexit(record);
            closed = waap_counter("closed_total", NULL, NULL);
        }
    """)
    host.write_text("""
        #include <dlfcn.h>
        #include <stddef.h>
        int main(int argc, char **argv) {
            void *part = argc == 2 ? dlopen(argv[1], RTLD_NOW) : NULL;
            return part == NULL || dlclose(part) != 0;
        }
    """)
    library = tmp_path / "part.so"
    sanitized = [compiler("cc"), *STRICT, "-g", "-fsanitize=address"]
    run(*sanitized, f"-I{LIBRARY / 'include'}", "-fPIC", "-shared", part, *LIBRARY.glob("*.c"), "-pthread", "-o", library)
    run(*sanitized, host, "-ldl", "-o", program)
    run_plugin(tmp_path, program, library, ASAN_OPTIONS="detect_leaks=0")


@pytest.mark.parametrize("kilobytes", [1000, 10000])
def test_thread_local_variables_as_large_as_the_threads_stack(tmp_path, kilobytes):
    source = tmp_path / "large.c"
    source.write_text(f"__thread char large[{kilobytes} * 1024];\n")
    program = tmp_path / "objcounter"
    include = f"-I{LIBRARY / 'include'}"
    run(compiler("cc"), *STRICT, include, EXAMPLE, source, *LIBRARY.glob("*.c"), "-pthread", "-o", program)
    run_example(program, tmp_path)


@pytest.mark.parametrize("standard", ["c++11", "c++17"])
def test_its_headers_are_cpp_too(tmp_path, standard):
    source = tmp_path / "plugin.cc"
    source.write_text("""
        #include <waap/plugin.h>
        #include <prom.h>
        int main() {
            waap_metric *seconds = waap_histogram("work_seconds", "Work.", "stage", "one", NULL);
            {
                WAAP_TIMEIT(seconds);
            }
            waap_param_spec spec = {};
            spec.name = "res";
            waap_metric *by_use = waap_metric("by_use");
            waap_set(by_use, 1);
            return waap_get_int(waap_param_new(&spec)) + prom_counter_inc(NULL, NULL);
        }
    """)
    includes = [f"-I{LIBRARY / 'include'}", f"-I{LIBRARY / 'include/waap/prom'}"]
    run(compiler("c++"), f"-std={standard}", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", *includes, source)


def test_it_asks_nothing_of_a_newer_glibc(tmp_path):
    """By name: what this machine's C library has taken up since 2.27 stands there with a later version."""
    objects = []
    for source in LIBRARY.glob("*.c"):
        objects.append(tmp_path / f"{source.stem}.o")
        run(compiler("cc"), "-O2", "-fPIC", "-c", source, "-o", objects[-1])
    wanted = set(re.findall(r" U (\w+)", run("nm", "-u", *objects)))
    libc = run(compiler("cc"), "-print-file-name=libc.so.6").strip()
    # A name that moved between libraries has old versions beside the default one.
    versions = {}
    for name, version in re.findall(r"\b(\w+)@+GLIBC_([\d.]+)$", run("nm", "-D", "--defined-only", libc), re.M):
        versions.setdefault(name, []).append(tuple(map(int, version.split("."))))
    too_new = {name for name in (wanted & versions.keys()) - ONCE_INLINE if min(versions[name]) > NEWEST_GLIBC}
    assert not too_new
    assert "pthread_create" in versions and "getrandom" in versions


def build_and_run(tmp_path, text, **environment):
    """What a program without an exporter writes to standard error, by line."""
    source, program = tmp_path / "mistakes.c", tmp_path / "mistakes"
    source.write_text(text)
    run(compiler("cc"), *STRICT, f"-I{LIBRARY / 'include'}", source, *LIBRARY.glob("*.c"), "-pthread", "-o", program)
    environment = {**os.environ, "WAAP_PUSH_SOCKET": "/nonexistent/push.sock", **environment}
    done = subprocess.run([program], env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0
    return done.stderr.splitlines()


MISTAKES = """
    #include <math.h>
    #include <waap/plugin.h>
    int main(void) {
        struct waap_metric *acc = waap_metric("acc"), *fps = waap_metric("fps");
        for (int i = 0; i < 3; i++) {
            waap_add(waap_counter("a_total", NULL, "x", i == 0 ? "1" : "2", NULL), -3);
            waap_set(waap_counter("b_total", NULL, NULL), 5);
            waap_inc(waap_histogram("c_seconds", NULL, NULL));
            waap_observe(waap_gauge("d", NULL, NULL), 1);
            waap_add(waap_gauge("e", NULL, NULL), NAN);
            waap_set(acc, 0.5);
            waap_inc(acc);
            waap_inc(fps);
            waap_set(fps, 2);
            waap_observe(waap_metric("unused"), 1);
            waap_gauge("a_total", NULL, NULL);
            waap_gauge("", NULL, NULL);
            waap_param_int("low", 5, 10, 20, NULL);
            waap_set(NULL, 7);
        }
        return waap_get_int(NULL);
    }
"""


@pytest.mark.parametrize("debug", ["", "1"])
def test_mistakes_are_told_once_per_metric(tmp_path, debug):
    told = build_and_run(tmp_path, MISTAKES, WAAP_DEBUG=debug)
    at_once = [
        "waap: metric a_total: there is another of that name",
        "waap: metric : its name, labels, bounds or ttl are not valid",
        "waap: param low: its default is not within its range or values, or these are not valid",
    ]
    later = [
        "waap: NULL: waap_set(7): there is no such metric",
        "waap: acc: waap_inc(1): is a gauge: use waap_set()",
        "waap: fps: waap_set(2): is a rate: use waap_inc()",
        "waap: a_total: waap_add(-3): a counter cannot go down",
        "waap: b_total: waap_set(5): is a counter: use waap_inc()",
        "waap: c_seconds: waap_inc(1): is a histogram: use waap_observe()",
        "waap: d: waap_observe(1): is a gauge: use waap_set()",
        "waap: e: waap_add(nan): is not a finite number",
        "waap: unused: waap_observe(1): is a metric without a type: use waap_inc() or waap_set()",
    ]
    told = [line for line in told if "connect " not in line]
    assert [line for line in told if line in at_once] == at_once
    assert sorted(line for line in told if line not in at_once) == sorted(later)


def test_an_exporter_that_stays_away_is_told_once(tmp_path):
    assert build_and_run(tmp_path, """
        #include <unistd.h>
        #include <waap/plugin.h>
        int main(void) {
            waap_inc(waap_metric("fps"));
            waap_flush(8000);
            return 0;
        }
    """) == [
        "waap: nobody listens on /nonexistent/push.sock (No such file or directory): is waap running, is /nonexistent "
        "mounted into this container, and is WAAP_PUSH_SOCKET right?"
    ]


def test_a_program_that_traps_divisions_by_zero(tmp_path):
    source, program = tmp_path / "traps.c", tmp_path / "traps"
    source.write_text("""
        #define _GNU_SOURCE 1
        #include <fenv.h>
        #include <waap/plugin.h>
        int main(void) {
            feenableexcept(FE_DIVBYZERO | FE_INVALID);
            return waap_get_int(waap_param_int("res", 720, 240, 1080, NULL)) != 720;
        }
    """)
    run(compiler("cc"), *STRICT, "-O0", f"-I{LIBRARY / 'include'}", source,
        *LIBRARY.glob("*.c"), "-pthread", "-lm", "-o", program)
    run_plugin(tmp_path, program)


@pytest.mark.long
@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_it_builds_with_the_glibc_of_jetpack_4(tmp_path, machine):
    """zig has the headers and the symbols of every C library: 2.27's are those of such images."""
    zig = ROOT / "build/deps/zig/node_modules/.bin/zig"
    if not zig.exists():
        pytest.skip("SKIP: no zig: .ci/deps long")
    program = tmp_path / "objcounter"
    run(zig, "cc", "-target", f"{machine}-linux-gnu.2.27", *STRICT, f"-I{LIBRARY / 'include'}", EXAMPLE,
        *LIBRARY.glob("*.c"), "-pthread", "-o", program,
        env={**os.environ, "ZIG_GLOBAL_CACHE_DIR": str(tmp_path / "cache")})
    if os.uname().machine == machine:
        run_example(program, tmp_path)


def test_install_gives_what_pkg_config_needs(tmp_path, waap_binary):
    build = waap_binary.parent.parent
    run("meson", "install", "-C", build, "--no-rebuild", env={**os.environ, "DESTDIR": str(tmp_path)})
    folders = [str(path.parent) for path in tmp_path.rglob("waap-plugin.pc")]
    assert len(folders) == 1
    for name in ["waap-plugin", "waap-prom"]:  # a thread runs in them, whatever dlclose() wants
        assert "NODELETE" in run("readelf", "-d", f"{folders[0]}/../lib{name}.so")
    environment = {**os.environ, "PKG_CONFIG_PATH": folders[0], "PKG_CONFIG_SYSROOT_DIR": str(tmp_path)}

    def flags(*packages):
        return run("pkg-config", "--cflags", "--libs", *packages, env=environment).split()

    program = tmp_path / "objcounter"
    sanitizers = ["-fsanitize=address,undefined"] if "asan" in str(build) else []
    run(compiler("cc"), *STRICT, *sanitizers, EXAMPLE, *flags("waap-plugin"), "-o", program)
    here = {"LD_LIBRARY_PATH": os.path.dirname(folders[0])}
    run_example(program, tmp_path, **here)

    places = sorted(path.parents[1] for path in tmp_path.rglob("waap/plugin.py"))
    assert len(places) == 1
    run("/usr/bin/python3", "-S", "-c", "import waap.plugin", env={"PYTHONPATH": str(places[0])})
    if "/usr/local" in str(places[0]):
        assert str(places[0]).removeprefix(str(tmp_path)) in run("/usr/bin/python3", "-c", "import sys; print(sys.path)")
    dashboards = {path.name for path in tmp_path.rglob("grafana/dashboards/*.json")}
    assert dashboards == {path.name for path in (ROOT / "grafana/dashboards").glob("*.json")}

    installed = {path.name for path in tmp_path.rglob("waap/prom/*.h")}
    assert installed == {path.name for path in (LIBRARY / "include/waap/prom").glob("*.h")}
    source = tmp_path / "prom.c"
    source.write_text("""
        #include <stdio.h>
        #include "prom_counter.h"
        #include "prom_collector_registry.h"
        int main(void) {
            prom_collector_registry_default_init();
            prom_counter_t *hits = prom_collector_registry_must_register_metric(
                prom_counter_new("hits", "Hits.", 0, NULL));
            return prom_counter_inc(hits, NULL);
        }
    """)
    program = tmp_path / "prom"
    run(compiler("cc"), *STRICT, *sanitizers, source, *flags("waap-prom"), "-o", program)
    assert run_plugin(tmp_path, program, **here).sums["hits"] == 1


# libprom 0.1.3, its folder prom/include: the headers, and all that they name.
PROM_HEADERS = """
    prom prom_alloc prom_collector prom_collector_registry prom_counter prom_gauge prom_histogram
    prom_histogram_buckets prom_linked_list prom_map prom_metric prom_metric_sample
    prom_metric_sample_histogram
""".split()
PROM_TYPES = """
    prom_collector_registry_t prom_collector_t prom_counter_t prom_gauge_t prom_histogram_buckets_t
    prom_histogram_t prom_linked_list_t prom_map_node_t prom_map_t prom_metric_sample_histogram_t
    prom_metric_sample_t prom_metric_t
""".split()
PROM_CALLS = """
    prom_collector_add_metric prom_collector_destroy prom_collector_destroy_generic
    prom_collector_free_generic prom_collector_new prom_collector_process_new
    prom_collector_registry_bridge prom_collector_registry_default_init
    prom_collector_registry_destroy prom_collector_registry_enable_process_metrics
    prom_collector_registry_must_register_metric prom_collector_registry_new
    prom_collector_registry_register_collector prom_collector_registry_register_metric
    prom_collector_registry_validate_metric_name prom_collector_set_collect_fn prom_counter_add
    prom_counter_destroy prom_counter_inc prom_counter_new prom_free prom_gauge_add prom_gauge_dec
    prom_gauge_destroy prom_gauge_inc prom_gauge_new prom_gauge_set prom_gauge_sub
    prom_histogram_buckets_count prom_histogram_buckets_destroy prom_histogram_buckets_exponential
    prom_histogram_buckets_linear prom_histogram_buckets_new prom_histogram_destroy
    prom_histogram_new prom_histogram_observe prom_malloc prom_metric_sample_add
    prom_metric_sample_from_labels prom_metric_sample_histogram_from_labels
    prom_metric_sample_histogram_observe prom_metric_sample_set prom_metric_sample_sub prom_realloc
    prom_strdup
""".split()


def test_every_name_of_libprom_is_there(tmp_path):
    """By a program that includes what libprom's users include, and the C headers that come with it."""
    body = "".join(f"    {name} *t{i} = NULL;\n    calls[0] = t{i};\n" for i, name in enumerate(PROM_TYPES))
    body += "".join(f"    calls[{i}] = (const void *){name};\n" for i, name in enumerate(PROM_CALLS))
    source = tmp_path / "names.c"
    source.write_text("".join(f"#include <{name}.h>\n" for name in PROM_HEADERS) + f"""
int main(void) {{
    const void *calls[{len(PROM_CALLS)}];
{body}
    prom_collect_fn *collect = NULL;
    prom_histogram_buckets_t buckets = {{.count = 0, .upper_bounds = NULL}};
    char *copy = prom_strdup("copied");
    prom_free(copy);
    return calls[0] == NULL || collect != NULL || prom_histogram_default_buckets == &buckets ||
           PROM_COLLECTOR_REGISTRY_DEFAULT != NULL || strlen(getenv("PATH")) == 0;
}}
""")
    include = f"-I{LIBRARY / 'include/waap/prom'}"
    program = tmp_path / "names"
    run(compiler("cc"), *STRICT, include, source, *LIBRARY.glob("*.c"), "-pthread", "-o", program)
    run(program)


@pytest.mark.parametrize("header", PROM_HEADERS)
def test_every_header_of_libprom_stands_alone(tmp_path, header):
    source = tmp_path / "one.c"
    source.write_text(f"#include <{header}.h>\nint main(void) {{ return 0; }}\n")
    run(compiler("cc"), *STRICT, "-fsyntax-only", f"-I{LIBRARY / 'include/waap/prom'}", source)


def test_pip_installs_the_python_package(tmp_path):
    source = shutil.copytree(ROOT / "plugin/python", tmp_path / "source")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    if subprocess.run([*pip, "--version"], capture_output=True).returncode != 0:
        pytest.skip("SKIP: no pip")
    site = tmp_path / "site"
    # Without a network it can take setuptools only from here.
    run(*pip, "install", "--no-index", "--no-build-isolation", "--target", site, source)
    example = ROOT / "plugin/examples/objcounter.py"
    peer = run_plugin(tmp_path, sys.executable, example, "--seconds", "0.3", PYTHONPATH=str(site))
    assert peer.sums["fps"] > 0
    assert sorted(line["param"] for line in peer.lines if "default" in line) == ["mode", "res"]
