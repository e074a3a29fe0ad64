#!/usr/bin/env python3
"""Makes pods for `podman kube play` of rendered Kubernetes objects.

    .build/deploy-check/bin/python deploy/kube_pods.py FOLDER PREFIX <objects.yaml

Writes into the folder:

- NAME.yaml: the ConfigMaps, and the pod template of a Deployment or Job, with the fields that podman 4.3 applies
- PREFIXlimit.yaml: a pod like the first service's, with a program that takes 1 GiB of memory
- NAME.secret: each Secret in the form that podman 4.3 reads, for `podman secret create`
- jobs: the names of the jobs
- services: a line for each service, separated by tabs: name, port and path of the readiness probe, limit and request
  of memory in bytes, user id, seconds of the grace period

Prints the fields and kinds that were left out.
"""

import json
import pathlib
import sys

import yaml

# What podman 4.3 applies. Of probes it applies only livenessProbe, and only with a number as its port.
POD = {"containers", "restartPolicy", "securityContext"}
CONTAINER = {"name", "image", "args", "env", "envFrom", "ports", "resources", "securityContext"}
RESOURCES = {"limits.memory", "requests.memory"}
UNITS = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30}

left_out = set()


def kept(fields, names, prefix):
    """Returns the named fields, and notes the others."""
    left_out.update(prefix + name for name in fields if name not in names)
    return {name: value for name, value in fields.items() if name in names}


def byte_count(text):
    """Returns the number of bytes of a quantity such as 64Mi."""
    return int(text[:-2]) * UNITS[text[-2:]]


def pod(owner):
    """Returns the pod of a Deployment or a Job. It listens only on 127.0.0.1."""
    template = owner["spec"]["template"]
    left_out.update("spec." + name for name in owner["spec"] if name not in ("template", "selector"))
    spec = kept(template["spec"], POD, "pod: ")
    spec["containers"] = [kept(container, CONTAINER, "container: ") for container in spec["containers"]]
    for container in spec["containers"]:
        for kind, amounts in container["resources"].items():
            kept({f"{kind}.{name}": amount for name, amount in amounts.items()}, RESOURCES, "container: resources.")
        for port in container.get("ports", []):
            port["hostIP"] = "127.0.0.1"
    metadata = {"name": owner["metadata"]["name"], "labels": template["metadata"]["labels"]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def limit_pod(service):
    """Returns a pod with a program that takes 1 GiB of memory, a line without an end."""
    limited = pod(service)
    limited["metadata"]["name"] = f"{sys.argv[2]}limit"
    limited["spec"]["restartPolicy"] = "Never"
    container = limited["spec"]["containers"][0]
    container.update(name="limit", args=["sh", "-c", "head -c 1G /dev/zero | tail >/dev/null"])
    for name in ("ports", "env", "envFrom"):
        container.pop(name, None)
    return limited


def facts(owner):
    """Returns what is checked of a Deployment."""
    spec = owner["spec"]["template"]["spec"]
    container = spec["containers"][0]
    probe = container["readinessProbe"]["httpGet"]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    resources = container["resources"]
    return [
        owner["metadata"]["name"],
        ports[probe["port"]],
        probe["path"],
        byte_count(resources["limits"]["memory"]),
        byte_count(resources["requests"]["memory"]),
        spec["securityContext"]["runAsUser"],
        spec["terminationGracePeriodSeconds"],
    ]


def main():
    folder = pathlib.Path(sys.argv[1])
    objects = list(yaml.safe_load_all(sys.stdin))
    by_kind = {}
    for item in objects:
        by_kind.setdefault(item["kind"], []).append(item)
    jobs, services = by_kind.pop("Job"), by_kind.pop("Deployment")
    maps = by_kind.pop("ConfigMap")
    for made in [pod(owner) for owner in jobs + services] + [limit_pod(services[0])]:
        (folder / f"{made['metadata']['name']}.yaml").write_text(yaml.safe_dump_all(maps + [made]))
    for secret in by_kind.pop("Secret"):
        (folder / f"{secret['metadata']['name']}.secret").write_text(json.dumps(secret["data"]))
    (folder / "jobs").write_text("".join(f"{job['metadata']['name']}\n" for job in jobs))
    lines = ["\t".join(map(str, facts(service))) + "\n" for service in services]
    (folder / "services").write_text("".join(lines))
    print("fields that podman does not apply:", ", ".join(sorted(left_out)))
    print("kinds that podman does not start:", ", ".join(sorted(by_kind)))


main()
