"""The Helm chart: linted and rendered by Helm's own library, valid by the schemas of Kubernetes.

A ServiceMonitor is a kind of Prometheus' operator, whose schema Kubernetes does not have. Its
fields are compared with a list here, and what it selects with the Service.
"""

from __future__ import annotations

import socket
import ssl
from pathlib import Path
from typing import Any

import helm_python
import kubernetes_validate
import pytest
import yaml

from tests.interop.clients.brokers import make_certificate
from tests.patience import SECONDS
from tests.ports import free_port
from tests.running import running_broker

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
    "tls": {"secret": "certificate", "clientAuthority": True},
    "env": [{"name": "HAREBELL_HEARTBEAT", "value": "20"}],
    "envFrom": [{"secretRef": {"name": "more"}}],
    "extraVolumes": [{"name": "more", "configMap": {"name": "definitions"}}],
    "extraVolumeMounts": [{"name": "more", "mountPath": "/more", "readOnly": True}],
    "ingress": {
        "enabled": True,
        "className": "nginx",
        "annotations": {"a.example/f": "g"},
        "host": "broker.example",
        "tlsSecret": "page",
    },
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
def test_the_rendered_chart_fits_the_schemas_of_kubernetes(
    values: dict[str, Any], version: str
) -> None:
    objects = rendered(values, "shop")
    monitor = objects.pop("ServiceMonitor", None)
    assert (monitor is not None) == bool(values)
    assert len(objects) == 5 + bool(values)
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
    configuration = objects["ConfigMap"]["data"]["rabbitmq.conf"]
    assert configuration.startswith("heartbeat = 30\nchannel_max = 500\n")
    assert pod["containers"][0]["env"][-1] == {"name": "HAREBELL_HEARTBEAT", "value": "20"}
    assert pod["containers"][0]["envFrom"] == EVERYTHING["envFrom"]
    assert pod["containers"][0]["volumeMounts"][-1] == EVERYTHING["extraVolumeMounts"][0]
    assert pod["volumes"][-1] == EVERYTHING["extraVolumes"][0]


def test_an_ingress_leads_to_the_http_api_of_the_service() -> None:
    objects = rendered(EVERYTHING)
    ingress, service = objects["Ingress"], objects["Service"]
    assert ingress["metadata"]["annotations"] == {"a.example/f": "g"}
    assert ingress["spec"]["ingressClassName"] == "nginx"
    assert ingress["spec"]["tls"] == [{"hosts": ["broker.example"], "secretName": "page"}]
    (rule,) = ingress["spec"]["rules"]
    assert rule["host"] == "broker.example"
    backend = rule["http"]["paths"][0]["backend"]["service"]
    assert backend["name"] == service["metadata"]["name"]
    ports = {port["name"]: port["port"] for port in service["spec"]["ports"]}
    assert ports[backend["port"]["name"]] == 15672


def test_with_a_secret_the_broker_of_the_chart_speaks_tls(tmp_path: Path) -> None:
    objects = rendered({"tls": {"secret": "certificate"}})
    ports = {port["name"]: port["port"] for port in objects["Service"]["spec"]["ports"]}
    assert (ports["amqps"], ports["management-tls"]) == (5671, 15671)
    pod = objects["StatefulSet"]["spec"]["template"]["spec"]
    (volume,) = (each["secret"] for each in pod["volumes"] if "secret" in each)
    assert volume == {"secretName": "certificate", "defaultMode": 0o440}
    (mount,) = (each for each in pod["containers"][0]["volumeMounts"] if each["name"] == "tls")
    opened = {port["name"]: port["containerPort"] for port in pod["containers"][0]["ports"]}
    assert ports == opened

    certificate, key = make_certificate(tmp_path)
    certificate.rename(tmp_path / "tls.crt")
    key.rename(tmp_path / "tls.key")
    # The Secret is mounted here, and a test has no ports of its own but free ones.
    text = objects["ConfigMap"]["data"]["rabbitmq.conf"].replace(mount["mountPath"], str(tmp_path))
    amqps, https = free_port(), free_port()
    text = text.replace("= 5671", f"= {amqps}").replace("= 15671", f"= {https}")
    file = tmp_path / "rabbitmq.conf"
    file.write_text(text)
    context = ssl.create_default_context(cafile=tmp_path / "tls.crt")
    with running_broker("--config", str(file)):
        for port in (amqps, https):
            address = ("127.0.0.1", port)
            with (
                socket.create_connection(address, SECONDS) as plain,
                context.wrap_socket(plain, server_hostname="localhost") as secured,
            ):
                assert secured.version() in {"TLSv1.2", "TLSv1.3"}


def test_a_changed_configuration_or_tls_makes_another_pod() -> None:
    def checksum(values: dict[str, Any]) -> str:
        template = rendered(values)["StatefulSet"]["spec"]["template"]
        return str(template["metadata"]["annotations"]["checksum/configuration"])

    secured = {"tls": {"secret": "certificate"}}
    changed = {"configuration": "heartbeat = 30"}
    assert len({checksum(each) for each in ({}, secured, changed)}) == 3


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
        ({"tls": {"secrets": "certificate"}}, "secrets"),
        ({"env": ["A=B"]}, "/env/0"),
        ({"ingress": {"enabled": True}}, "ingress.host is missing"),
    ],
    ids=[
        "a size that is none",
        "a value that there is not",
        "a type that there is not",
        "a key of tls that there is not",
        "a variable that is no object",
        "an ingress without a host",
    ],
)
def test_a_wrong_value_is_refused_by_its_name(values: dict[str, Any], named: str) -> None:
    with pytest.raises(helm_python.HelmError, match=named):
        rendered(values)
