#!/usr/bin/python3
"""Writes the config.xml of a Jenkins job that runs the Jenkinsfile beside this program:

    make_config.py REPOSITORY [BRANCH] > config.xml

The job takes the Jenkinsfile from the repository; its parameters stand in both, so that the first build
already knows them, and are read from the Jenkinsfile here."""

import pathlib
import re
import sys
import xml.etree.ElementTree as ET

HERE = pathlib.Path(__file__).resolve().parent
PARAMETER = re.compile(r"^\s*string\(name: '(\w+)', defaultValue: '([^']*)', description: '([^']*)'(, trim: true)?\)$", re.MULTILINE)


def add(parent, tag, text=None, **attributes):
    element = ET.SubElement(parent, tag, {name.rstrip("_"): value for name, value in attributes.items()})
    element.text = text
    return element


def add_parameters(properties, jenkinsfile):
    prefix = "hudson.model."
    definitions = add(add(properties, prefix + "ParametersDefinitionProperty"), "parameterDefinitions")
    for name, default, description, trim in PARAMETER.findall(jenkinsfile):
        parameter = add(definitions, prefix + "StringParameterDefinition")
        add(parameter, "name", name)
        add(parameter, "description", description)
        add(parameter, "defaultValue", default)
        add(parameter, "trim", "true" if trim else "false")


def add_source(definition, repository, branch):
    scm = add(definition, "scm", class_="hudson.plugins.git.GitSCM")
    add(scm, "configVersion", "2")
    remotes = add(scm, "userRemoteConfigs")
    add(add(remotes, "hudson.plugins.git.UserRemoteConfig"), "url", repository)
    add(add(add(scm, "branches"), "hudson.plugins.git.BranchSpec"), "name", f"*/{branch}")


def make(repository, branch="main"):
    jenkinsfile = (HERE / "Jenkinsfile").read_text(encoding="utf-8")
    job = ET.Element("flow-definition", plugin="workflow-job")
    add(job, "description", "Profiles an image on an edge node with waap.")
    add(job, "keepDependencies", "false")
    properties = add(job, "properties")
    disable = "org.jenkinsci.plugins.workflow.job.properties.DisableConcurrentBuildsJobProperty"
    add(add(properties, disable), "abortPrevious", "false")
    add_parameters(properties, jenkinsfile)
    definition = add(job, "definition", class_="org.jenkinsci.plugins.workflow.cps.CpsScmFlowDefinition", plugin="workflow-cps")
    add_source(definition, repository, branch)
    add(definition, "scriptPath", "deploy/jenkins/Jenkinsfile")
    add(definition, "lightweight", "true")
    add(job, "triggers")
    add(job, "disabled", "false")
    ET.indent(job)
    return "<?xml version='1.0' encoding='UTF-8'?>\n" + ET.tostring(job, encoding="unicode") + "\n"


if __name__ == "__main__":
    if not 2 <= len(sys.argv) <= 3:
        sys.exit(f"usage: {sys.argv[0]} REPOSITORY [BRANCH] > config.xml")
    sys.stdout.write(make(*sys.argv[1:]))
