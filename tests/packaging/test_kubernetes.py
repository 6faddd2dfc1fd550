"""The manifests for Kubernetes: valid by its published schemas, and in agreement with the image."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import kubernetes_validate
import pytest
import yaml

from tests.patience import SECONDS
from tests.ports import free_port
from tests.running import command, running_broker

ROOT = Path(__file__).parents[2]
MANIFESTS = ROOT / "packaging" / "kubernetes" / "harebell.yaml"
OBJECTS: list[dict[str, Any]] = list(yaml.safe_load_all(MANIFESTS.read_text()))
BY_KIND = {each["kind"]: each for each in OBJECTS}
POD = BY_KIND["StatefulSet"]["spec"]["template"]["spec"]
(BROKER,) = POD["containers"]


@pytest.mark.parametrize("version", ["1.29", "1.33"])
@pytest.mark.parametrize("kind", list(BY_KIND))
def test_every_manifest_fits_the_schema_of_its_kind(kind: str, version: str) -> None:
    kubernetes_validate.validate(BY_KIND[kind], version, strict=True)


def test_a_mistake_in_a_manifest_is_found() -> None:
    wrong = {**BY_KIND["Service"], "spec": {"ports": [{"prot": 5672}]}}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, "1.33", strict=True)


def test_selectors_names_and_ports_agree() -> None:
    labels = BY_KIND["StatefulSet"]["spec"]["template"]["metadata"]["labels"]
    assert BY_KIND["StatefulSet"]["spec"]["selector"]["matchLabels"] == labels
    assert BY_KIND["Service"]["spec"]["selector"] == labels
    assert BY_KIND["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"] == labels
    assert BY_KIND["StatefulSet"]["spec"]["serviceName"] == BY_KIND["Service"]["metadata"]["name"]
    named = {port["name"]: port["containerPort"] for port in BROKER["ports"]}
    for port in BY_KIND["Service"]["spec"]["ports"]:
        assert named[port["targetPort"]] == port["port"]
    # A Service named harebell would set HAREBELL_PORT.
    assert POD["enableServiceLinks"] is False
    volumes = {volume["name"] for volume in POD["volumes"]} | {
        claim["metadata"]["name"]
        for claim in BY_KIND["StatefulSet"]["spec"]["volumeClaimTemplates"]
    }
    assert {mount["name"] for mount in BROKER["volumeMounts"]} == volumes


def test_the_pod_is_the_user_of_the_image_and_mounts_its_volume() -> None:
    image = (ROOT / "packaging" / "container" / "Containerfile").read_text()
    user = re.search(r"^USER (\d+):(\d+)$", image, re.M)
    volume = re.search(r"^VOLUME (\S+)$", image, re.M)
    exposed = re.search(r"^EXPOSE (.*)$", image, re.M)
    assert user
    assert volume
    assert exposed
    context = POD["securityContext"]
    assert (context["runAsUser"], context["runAsGroup"]) == (int(user[1]), int(user[2]))
    assert volume[1] in {mount["mountPath"] for mount in BROKER["volumeMounts"]}
    ports = {str(port["containerPort"]) for port in BROKER["ports"]}
    assert ports <= set(exposed[1].split())


def test_the_configuration_and_the_probes_are_accepted_by_the_broker(tmp_path: Path) -> None:
    configuration = tmp_path / "rabbitmq.conf"
    configuration.write_text(BY_KIND["ConfigMap"]["data"]["rabbitmq.conf"])
    done = subprocess.run(
        [command(), "config", "check", str(configuration)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert ", 0 warnings" in done.stdout
    port = free_port()
    with running_broker("--metrics-port", str(port)):
        for name in ("startupProbe", "livenessProbe", "readinessProbe"):
            probe = BROKER[name]["httpGet"]
            assert probe["port"] == "metrics"
            url = f"http://127.0.0.1:{port}{probe['path']}"
            with urlopen(url, timeout=SECONDS) as answer:
                assert answer.status == 200, name
