"""Every file under deploy/ and grafana/ is used by a test: which test uses it, and by which words."""

import pathlib
import subprocess

import pytest

from running import ROOT

TESTS = pathlib.Path(__file__).parent
USED = {
    "deploy/Dockerfile": ("test_image.py", "deploy/Dockerfile"),
    "deploy/completion/waap": ("test_completion.py", "deploy/completion/waap"),
    "deploy/compose.yaml": ("test_compose.py", 'DEPLOY / "compose.yaml"'),
    "deploy/control.yaml": ("test_control.py", "deploy/control.yaml"),
    "deploy/debian/**/*": ("test_deb.py", "deploy/debian"),
    "deploy/control.yaml": ("test_control.py", "deploy/control.yaml"),
    "deploy/fleet/central/*.default": ("fleet.py", 'settings("central/'),
    "deploy/fleet/*/*.service": ("test_fleet.py", '["node/vmagent.service", "central/vmalert.service"]'),
    "deploy/fleet/discovery/*.yml": ("test_fleet.py", '"discovery/files.yml", "discovery/kubernetes.yml"'),
    "deploy/fleet/discovery/nodes/chicago.yml": ("test_fleet.py", "discovery/nodes/chicago.yml"),
    "deploy/fleet/node/*.default": ("fleet.py", 'settings("node/'),
    "deploy/fleet/node/prometheus.yml": ("fleet.py", "node/prometheus.yml"),
    "deploy/fleet/node/vmagent-relabel.yml": ("fleet.py", "node/vmagent-relabel.yml"),
    "deploy/image-root": ("test_image.py", "deploy/image-root"),
    "deploy/jenkins/Jenkinsfile": ("test_jenkins.py", 'JENKINS / "Jenkinsfile"'),
    "deploy/jenkins/config.xml": ("test_jenkins.py", 'JENKINS / "config.xml"'),
    "deploy/jenkins/make_config.py": ("test_jenkins.py", 'JENKINS / "make_config.py"'),
    "deploy/jenkins/profile": ("test_jenkins.py", 'JENKINS / "profile"'),
    # A file of a directory that its kustomization does not name is an error there.
    "deploy/kubernetes/**/*.yaml": ("test_kubernetes.py", 'KUBERNETES.rglob("kustomization.yaml")'),
    "deploy/kubernetes/prometheusrule.py": ("test_kubernetes.py", "import prometheusrule"),
    "deploy/man/generate.py": ("test_man.py", "generate.py"),
    "deploy/meson.build": ("test_plugin_build.py", '"meson", "install"'),
    "deploy/prometheus/prometheus.yml": ("test_rules.py", 'PROMETHEUS / "prometheus.yml"'),
    "deploy/prometheus/rules/*.yml": ("test_rules.py", '(PROMETHEUS / "rules").glob("*.yml")'),
    "deploy/README.md": ("test_walk.py", "deploy/README.md"),
    "deploy/screenshots/*.png": ("test_readme.py", "test_links_lead_somewhere"),
    "deploy/systemd/**/*": ("test_systemd.py", "deploy/systemd"),
    "deploy/waap.yaml": ("test_config.py", "deploy/waap.yaml"),
    "grafana/README.md": ("test_dashboards.py", "grafana/README.md"),
    "grafana/dashboards.py": ("test_dashboards.py", "import dashboards"),
    "grafana/dashboards/*.json": ("test_dashboards.py", '"grafana/dashboards" / name'),
    "grafana/kustomization.yaml": ("test_kubernetes.py", 'of_kind("overlays/dashboards", "ConfigMap")'),
    "grafana/panels.py": ("test_dashboards.py", "dashboards.text(name)"),
    "grafana/provisioning/dashboards/waap.yaml": ("test_compose.py", "provisioning/dashboards/waap.yaml"),
    "grafana/provisioning/datasources/prometheus.yaml": ("test_compose.py", "provisioning/datasources/prometheus.yaml"),
}


def shipped():
    """What is in git, or, in a copy without it, what there is."""
    done = subprocess.run(["git", "ls-files", "deploy", "grafana"], cwd=ROOT, capture_output=True, text=True)
    if done.returncode == 0 and done.stdout:
        return set(done.stdout.split())
    found = [path for top in ("deploy", "grafana") for path in (ROOT / top).rglob("*")]
    return {str(path.relative_to(ROOT)) for path in found if path.is_file() and "__pycache__" not in path.parts}


def meant(pattern):
    return {str(path.relative_to(ROOT)) for path in ROOT.glob(pattern) if path.is_file()}


def test_every_file_is_used_by_a_test():
    assert shipped() - set().union(*map(meant, USED)) == set()


@pytest.mark.parametrize("pattern", sorted(USED))
def test_who_uses_it_does(pattern):
    test, words = USED[pattern]
    assert meant(pattern), "there is no such file"
    assert words in (TESTS / test).read_text()
