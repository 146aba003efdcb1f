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


@pytest.mark.parametrize("name", ["cc", "clang"])
def test_the_library_builds_from_its_own_files(tmp_path, name):
    files = shutil.copytree(LIBRARY, tmp_path / "waap")
    include = f"-I{files / 'include'}"
    program = tmp_path / "objcounter"
    run(compiler(name), *STRICT, include, EXAMPLE, *files.glob("*.c"), "-pthread", "-o", program)
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


def test_install_gives_what_pkg_config_needs(tmp_path, waap_binary):
    build = waap_binary.parent.parent
    run("meson", "install", "-C", build, "--no-rebuild", env={**os.environ, "DESTDIR": str(tmp_path)})
    folders = [str(path.parent) for path in tmp_path.rglob("waap-plugin.pc")]
    assert len(folders) == 1
    environment = {**os.environ, "PKG_CONFIG_PATH": folders[0], "PKG_CONFIG_SYSROOT_DIR": str(tmp_path)}

    def flags(*packages):
        return run("pkg-config", "--cflags", "--libs", *packages, env=environment).split()

    program = tmp_path / "objcounter"
    sanitizers = ["-fsanitize=address,undefined"] if "asan" in str(build) else []
    run(compiler("cc"), *STRICT, *sanitizers, EXAMPLE, *flags("waap-plugin"), "-o", program)
    here = {"LD_LIBRARY_PATH": os.path.dirname(folders[0])}
    run_example(program, tmp_path, **here)

    source = tmp_path / "prom.c"
    source.write_text("""
        #include <stdio.h>
        #include "prom.h"
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
