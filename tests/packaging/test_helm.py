"""The Helm chart: linted and rendered by Helm's own library, valid by the schemas of Kubernetes.

A ServiceMonitor is a kind of Prometheus' operator, whose schema Kubernetes does not have. Its
fields are compared with a list here, and what it selects with the Service.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import helm_python
import kubernetes_validate
import pytest
import yaml

ROOT = Path(__file__).parents[2]
CHART = ROOT / "packaging" / "helm" / "harebell"
PLAIN = ROOT / "packaging" / "kubernetes" / "harebell.yaml"
EVERYTHING: dict[str, Any] = {
    "image": {"repository": "registry.example/harebell", "tag": "1"},
    "pullSecrets": ["registry"],
    "storage": {"size": "5Gi", "className": "fast"},
    "service": {"type": "LoadBalancer", "annotations": {"a.example/b": "c"}},
    "podAnnotations": {"a.example/d": "e"},
    "nodeSelector": {"disk": "nvme"},
    "tolerations": [{"key": "broker", "operator": "Exists"}],
    "affinity": {"podAntiAffinity": {}},
    "priorityClassName": "high",
    "configuration": "heartbeat = 30\nchannel_max = 500\n",
    "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
}
"""Every value of the chart with another one than its own."""


def rendered(values: dict[str, Any], name: str = "harebell") -> dict[str, dict[str, Any]]:
    """The objects that a release has, by their kinds."""
    with helm_python.Chart.load(CHART) as chart:
        files = chart.render(values, name=name, namespace="prod")
    objects = [yaml.safe_load(text) for path, text in files.items() if path.endswith(".yaml")]
    return {each["kind"]: each for each in objects if each}


def test_helm_lints_it_without_an_error() -> None:
    found = helm_python.lint(CHART)
    assert found["errors"] == []
    assert [each["error"] for each in found["messages"]] == ["icon is recommended"]


@pytest.mark.parametrize("values", [{}, EVERYTHING], ids=["its own values", "every value"])
@pytest.mark.parametrize("version", ["1.29", "1.33"])
def test_what_it_renders_fits_the_schemas_of_kubernetes(
    values: dict[str, Any], version: str
) -> None:
    objects = rendered(values, "shop")
    monitor = objects.pop("ServiceMonitor", None)
    assert (monitor is not None) == bool(values)
    assert len(objects) == 5
    for each in objects.values():
        kubernetes_validate.validate(each, version, strict=True)
        assert each["metadata"]["name"] == "shop-harebell"


def test_every_value_reaches_an_object() -> None:
    objects = rendered(EVERYTHING)
    pod = objects["StatefulSet"]["spec"]["template"]["spec"]
    assert pod["containers"][0]["image"] == "registry.example/harebell:1"
    assert pod["imagePullSecrets"] == [{"name": "registry"}]
    assert pod["priorityClassName"] == "high"
    assert pod["nodeSelector"] == EVERYTHING["nodeSelector"]
    assert pod["tolerations"] == EVERYTHING["tolerations"]
    assert pod["affinity"] == EVERYTHING["affinity"]
    claim = objects["StatefulSet"]["spec"]["volumeClaimTemplates"][0]["spec"]
    assert claim["storageClassName"] == "fast"
    assert claim["resources"]["requests"]["storage"] == "5Gi"
    assert objects["Service"]["spec"]["type"] == "LoadBalancer"
    assert objects["Service"]["metadata"]["annotations"] == {"a.example/b": "c"}
    assert objects["ConfigMap"]["data"]["rabbitmq.conf"] == "heartbeat = 30\nchannel_max = 500\n"


def test_a_release_has_the_pod_service_and_budget_of_the_plain_manifests() -> None:
    plain = {each["kind"]: each for each in yaml.safe_load_all(PLAIN.read_text())}
    objects = rendered({})
    wanted = plain["StatefulSet"]["spec"]["template"]["spec"]
    pod = objects["StatefulSet"]["spec"]["template"]["spec"]
    assert pod["containers"][0].pop("imagePullPolicy") == "IfNotPresent"
    assert pod == wanted
    assert objects["Service"]["spec"]["ports"] == plain["Service"]["spec"]["ports"]
    assert objects["ConfigMap"]["data"]["rabbitmq.conf"] == "disk_free_limit.absolute = 1GB\n"
    budget = objects["PodDisruptionBudget"]["spec"]
    assert budget["maxUnavailable"] == plain["PodDisruptionBudget"]["spec"]["maxUnavailable"] == 0


def test_a_service_monitor_selects_the_service_and_its_port_of_metrics() -> None:
    objects = rendered(EVERYTHING)
    monitor, service = objects["ServiceMonitor"], objects["Service"]
    assert monitor["apiVersion"] == "monitoring.coreos.com/v1"
    assert monitor["metadata"]["labels"]["release"] == "prometheus"
    chosen = monitor["spec"]["selector"]["matchLabels"].items()
    assert chosen <= service["metadata"]["labels"].items()
    (endpoint,) = monitor["spec"]["endpoints"]
    assert set(endpoint) <= {"port", "path", "interval", "scrapeTimeout"}
    assert endpoint["port"] in {port["name"] for port in service["spec"]["ports"]}
    labels = objects["StatefulSet"]["spec"]["template"]["metadata"]["labels"].items()
    assert service["spec"]["selector"].items() <= labels
    assert objects["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"].items() <= labels


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"storage": {"size": "much"}}, "/storage/size"),
        ({"replicas": 3}, "replicas"),
        ({"service": {"type": "Ingress"}}, "/service/type"),
    ],
    ids=["a size that is none", "a value that there is not", "a type that there is not"],
)
def test_a_wrong_value_is_refused_by_its_name(values: dict[str, Any], named: str) -> None:
    with pytest.raises(helm_python.HelmError, match=named):
        rendered(values)
