"""The Debian packages: that nothing is left out of them; and, as building takes minutes, only in long
runs that they please lintian, install, work and leave nothing behind, under dpkg and under systemd."""

import contextlib
import fnmatch
import json
import os
import re
import shutil
import subprocess

import pytest

from debian import debootstrap
from machine import QEMU, UNPACKED, pack
from running import ROOT, Program, Waap, wait_until

DEBIAN = ROOT / "deploy/debian"
CONFIG = "/etc/waap/waap.yaml"


def paragraphs():
    """The fields of control, one dictionary per paragraph."""
    texts = (DEBIAN / "control").read_text().strip().split("\n\n")
    return [dict(re.findall(r"^(\S+): ?((?:.*(?:\n .*)*))", text, re.M)) for text in texts]


def packages():
    return [fields["Package"] for fields in paragraphs()[1:]]


def patterns():
    """(package, pattern, destination) of all that dh_install puts into packages."""
    for file in sorted(DEBIAN.glob("*.install")):
        for line in file.read_text().splitlines():
            pattern, *destination = line.split()
            yield file.stem, pattern, destination[0] if destination else None


def test_every_installed_file_is_in_one_package(waap_binary):
    build = waap_binary.parents[1]
    if shutil.which("meson") is None or not (build / "meson-info").is_dir():
        pytest.skip("not a build directory of meson")
    text = subprocess.run(["meson", "introspect", "--installed", build], capture_output=True, text=True,
                          check=True, timeout=60).stdout
    installed = {re.sub("^/usr(/local)?/", "usr/", path) for path in json.loads(text).values()}
    assert "usr/bin/waap" in installed
    for path in installed:
        owners = [package for package, pattern, _ in patterns()
                  if fnmatch.fnmatch(path, pattern) or fnmatch.fnmatch(path, pattern + "/*")]
        assert len(owners) == 1, f"{path}: {owners}"


def test_control_and_files_belong_together():
    names = packages()
    assert names[0] == "waap"
    for file in DEBIAN.glob("*.*"):
        assert file.stem in names, file
    for _, pattern, _ in patterns():
        if not pattern.startswith("usr/"):
            assert (ROOT / pattern).exists(), pattern
    for file in (*DEBIAN.glob("*.docs"), *DEBIAN.glob("*.examples")):
        for line in file.read_text().splitlines():
            assert (ROOT / line).exists(), line


def test_chapters_stand_beside_each_other_as_in_the_tree():
    """So that their links work; README itself is put there by dh_installdocs."""
    found = {(pattern, destination) for package, pattern, destination in patterns() if package == "waap-doc"}
    for chapter in ROOT.glob("*/README.md"):
        name = chapter.parent.name
        assert (f"{name}/README.md", f"usr/share/doc/waap/{name}") in found
    assert ("docs", "usr/share/doc/waap") in found


def test_the_service_reads_the_file_of_the_package():
    files = [f"/{destination}/{os.path.basename(pattern)}" for package, pattern, destination in patterns()
             if package == "waap" and destination]
    assert CONFIG in files
    assert f"--config.file={CONFIG}" in (ROOT / "deploy/systemd/waap.service").read_text()
    rules = (DEBIAN / "rules").read_text()
    for unit in (ROOT / "deploy/systemd").glob("waap*.s*t*"):
        assert f" {unit.name}" in rules, unit


def test_builds_need_what_they_say():
    """The libraries of .ci/deps, and no others."""
    lists = re.findall(r"^(?:build|libraries)=\((.*?)\)$", (ROOT / ".ci/deps").read_text(), re.M | re.S)
    listed = set(re.findall(r"\blib\S+-dev\b", " ".join(lists))) - {"libc6-dev"}
    wanted = re.findall(r"\blib\S+-dev\b", paragraphs()[0]["Build-Depends"])
    assert sorted(wanted) == sorted(listed)


def test_packages_are_built_with_what_every_package_is_built_with():
    """Debian's tools want build-essential, which no package lists and a fresh system lacks."""
    tools = re.search(r"^deb=\((.*?)\)$", (ROOT / ".ci/deps").read_text(), re.M | re.S)[1].split()
    assert {"build-essential", "debhelper", "dh-python"} <= set(tools)


def test_maintainer_scripts_are_scripts():
    for file in DEBIAN.glob("*.p*"):
        subprocess.run(["sh", "-n", file], check=True)
        assert "#DEBHELPER#" in file.read_text()


# ---- built, and installed for real ----


@pytest.fixture(scope="module")
def built():
    for program in ("dpkg-buildpackage", "dh", "lintian", "debootstrap"):
        if shutil.which(program) is None:
            pytest.skip(f"no {program} here: .ci/deps deb installs it")
    subprocess.run([ROOT / ".ci/deb"], check=True, timeout=1800)
    return ROOT / "build/deb"


def deb(built, name):
    return next(built.glob(f"{name}_*.deb"))


@pytest.fixture(scope="module")
def system(built, tmp_path_factory):
    """A small Debian with what the packages depend on."""
    root = tmp_path_factory.mktemp("debian") / "root"
    needed = set()
    for name in ("waap", "waap-placement", "python3-waap"):
        fields = subprocess.run(["dpkg-deb", "-f", deb(built, name), "Depends"], capture_output=True,
                                text=True, check=True).stdout
        needed |= {re.split(r"[ :(]", part.strip())[0] for part in fields.split(",")} - {"waap"}
    debootstrap(root, needed | {"curl", "systemd", "systemd-sysv"})
    yield root
    shutil.rmtree(root, ignore_errors=True)


def dpkg(system, *arguments):
    return subprocess.run(["chroot", system, "env", "LC_ALL=C", "dpkg", *arguments], check=True,
                          capture_output=True, text=True, timeout=120).stdout


def files_of(system):
    """All but what dpkg, the loader and the package's scripts keep about themselves."""
    kept = re.compile(r"/(var/(lib/dpkg|cache|log)|etc/ld\.so\.cache|usr/share/doc/waap|run|tmp)(/|$)"
                      "|/etc/mtab$|__pycache__")
    found = {str(path.relative_to(system)) for path in system.rglob("*")}
    return {path for path in found if not kept.search("/" + path)}


@contextlib.contextmanager
def serving(system):
    """The installed daemon, in its root."""
    command = ["chroot", system, "/usr/bin/waap", "serve", f"--config.file={CONFIG}",
               "--web.listen-address=127.0.0.1:0", "--push.socket=", "--push.table="]
    daemon = Waap.__new__(Waap)
    Program.__init__(daemon, command, None)
    with daemon:
        daemon.wait_listening()
        yield daemon


@pytest.mark.long
def test_lintian_has_nothing_to_say(built):
    changes = next(built.glob("*.changes"))
    done = subprocess.run(["lintian", "--allow-root", "--fail-on", "error,warning", changes],
                          capture_output=True, text=True, timeout=600)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.long
def test_install_upgrade_remove_and_purge(built, system):
    before = files_of(system)
    names = ("waap", "waap-placement", "python3-waap")
    for name in names:
        shutil.copy(deb(built, name), system / f"{name}.deb")
    archives = [f"/{name}.deb" for name in names]
    dpkg(system, "--install", *archives)
    wants = system / "etc/systemd/system"
    assert os.path.lexists(wants / "multi-user.target.wants/waap.service")
    assert os.path.lexists(wants / "sockets.target.wants/waap-push.socket")
    assert not os.path.lexists(wants / "sockets.target.wants/waap.socket")
    version = deb(built, "waap").name.split("_")[1]
    for command, words in ((["waap", "version"], f"waap {version}"), (["waap", "help", "control"], "usage: waap control"),
                           (["python3", "-c", "import waap.plugin; print(waap.__version__)"], version)):
        done = subprocess.run(["chroot", system, *command], capture_output=True, text=True, timeout=60)
        assert words in done.stdout + done.stderr
    with serving(system) as daemon:  # there is no /proc: what the machine does is seen under systemd
        assert daemon.samples()['waap_collector_success{collector="push"}'] == "1"

    config = system / CONFIG.lstrip("/")
    own = config.read_text().replace("level: info", "level: debug")
    config.write_text(own)
    dpkg(system, "--install", *archives)
    assert config.read_text() == own, "an upgrade keeps what the operator wrote"
    dpkg(system, "--remove", *reversed(names))
    assert config.read_text() == own
    assert not (system / "usr/bin/waap").exists()
    dpkg(system, "--purge", *names)
    for name in names:
        (system / f"{name}.deb").unlink()
    assert files_of(system) - before == set()


# What systemd does with the installed units; ends the machine when it is through.
GUEST = r"""
exec >/dev/ttyS0 2>&1
set -eux
until curl -sf localhost:9090/-/ready; do sleep 1; done
test "$(systemctl show waap -p Type --value)" = notify
test "$(systemctl show waap -p StatusText --value)" = serving
pid=$(systemctl show waap -p MainPID --value)
grep -q "^CapEff:.0000000000000000$" /proc/$pid/status
test "$(stat -c %u /proc/$pid)" -ge 61184
curl -sf localhost:9090/metrics | grep -c '^waap_collector_success.* 1$'
inode=$(stat -c %i /run/waap/push.sock)
systemctl reload waap
echo 'wbe: {}' >>/etc/waap/waap.yaml
systemctl reload waap
until systemctl show waap -p StatusText --value | grep refused; do sleep 1; done
sed -i '$d' /etc/waap/waap.yaml
systemctl restart waap
test "$(stat -c %i /run/waap/push.sock)" = "$inode"
test "$(stat -c %a /run/waap/push.sock)" = 666
test -s /run/waap-store/push.table
test "$(stat -Lc %a /run/waap-store)" = 700
test "$(ls /run/waap)" = push.sock
systemctl stop waap
systemctl enable --now waap.socket
test "$(systemctl is-active waap)" != active
curl -sf localhost:9090/-/healthy
systemctl is-active waap
mkdir -p /run/systemd/system/waap.service.d
printf '[Service]\nWatchdogSec=5s\nRestartSec=100ms\n' >/run/systemd/system/waap.service.d/test.conf
systemctl daemon-reload
systemctl restart waap
kill -STOP "$(systemctl show waap -p MainPID --value)"
until test "$(systemctl show waap -p NRestarts --value)" = 1; do sleep 1; done
curl -sf localhost:9090/-/healthy
journalctl -u waap -o cat --no-pager | grep -i watchdog
set +x
echo "all is w""ell"
"""
UNIT = """[Unit]
After=waap.service
SuccessAction=poweroff-force
FailureAction=poweroff-force
[Service]
Type=oneshot
TimeoutStartSec=600
ExecStart=/bin/bash /root/guest
"""


@pytest.mark.long
def test_under_systemd(built, system, tmp_path):
    kernels = sorted(UNPACKED.glob("boot/vmlinuz-*"))
    if QEMU is None or not kernels:
        pytest.skip("no qemu, or no kernel: .ci/fetch vm has not been run, or could not")
    root = tmp_path / "root"
    subprocess.run(["cp", "-a", system, root], check=True)
    shutil.copy(deb(built, "waap"), root / "waap.deb")
    dpkg(root, "--install", "/waap.deb")
    (root / "root/guest").write_text(GUEST)
    units = root / "etc/systemd/system"
    (units / "guest.service").write_text(UNIT)
    (units / "multi-user.target.wants/guest.service").symlink_to("/etc/systemd/system/guest.service")
    (root / "init").symlink_to("sbin/init")
    for unneeded in ("usr/share/doc", "usr/share/locale", "var/cache/apt", "waap.deb"):
        path = root / unneeded
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    pack(root, tmp_path / "initrd")
    masked = " ".join(f"systemd.mask={unit}.service" for unit in ("serial-getty@ttyS0", "getty@tty1"))
    machine = Program(
        [QEMU, "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2", "-m", "2048", "-nographic", "-no-reboot",
         "-nic", "none", "-kernel", kernels[-1], "-initrd", tmp_path / "initrd", "-append",
         f"console=ttyS0 quiet panic=-1 {masked}"], None)
    with machine:
        wait_until(lambda: machine.process.poll() is not None, 900, "the machine's end")
        assert "all is well" in machine.output()
