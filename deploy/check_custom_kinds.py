#!/usr/bin/env python3
"""Compares objects of kinds that are not Kubernetes' own with the definitions of their operators.

    .build/deploy-check/bin/python deploy/check_custom_kinds.py FILE...

The definitions of KEDA and of the Prometheus Operator are those of cloudcoil's packages, which are generated from the
published ones. There is no package of the External Secrets Operator: its schema here has the fields that
deploy/kubernetes uses, as of its v1. Unknown fields are rejected; a cluster would ignore them.
"""

import sys

import jsonschema
import yaml
from cloudcoil.models.keda.v1alpha1 import ScaledObject
from cloudcoil.models.prometheus_operator.v1 import PrometheusRule, ServiceMonitor


def strict(schema):
    """Returns the schema with additional properties forbidden."""
    if isinstance(schema, dict):
        if "properties" in schema:
            schema.setdefault("additionalProperties", False)
        for part in schema.values():
            strict(part)
    elif isinstance(schema, list):
        for part in schema:
            strict(part)
    return schema


def fields(required=(), **properties):
    """Returns the schema of an object."""
    return {"type": "object", "required": list(required), "properties": properties}


TEXT = {"type": "string", "minLength": 1}
REMOTE = fields(["key"], key=TEXT, property=TEXT, version=TEXT)
EXTERNAL_SECRET = fields(
    ["apiVersion", "kind", "metadata", "spec"],
    apiVersion={"const": "external-secrets.io/v1"},
    kind={"const": "ExternalSecret"},
    metadata={"type": "object"},
    spec=fields(
        ["secretStoreRef"],
        refreshInterval={"type": "string", "pattern": "^[0-9]+(s|m|h)$"},
        secretStoreRef=fields(["name"], kind={"enum": ["SecretStore", "ClusterSecretStore"]}, name=TEXT),
        target=fields(name=TEXT, creationPolicy={"enum": ["Owner", "Orphan", "Merge", "None"]}),
        data={
            "type": "array",
            "items": fields(
                ["secretKey", "remoteRef"],
                secretKey={"type": "string", "pattern": "^[-._a-zA-Z0-9]{1,253}$"},
                remoteRef=REMOTE,
            ),
        },
        dataFrom={"type": "array", "items": fields(["extract"], extract=REMOTE)},
    ),
)
SCHEMAS = {
    ("keda.sh/v1alpha1", "ScaledObject"): ScaledObject.model_json_schema(),
    ("monitoring.coreos.com/v1", "ServiceMonitor"): ServiceMonitor.model_json_schema(),
    ("monitoring.coreos.com/v1", "PrometheusRule"): PrometheusRule.model_json_schema(),
    ("external-secrets.io/v1", "ExternalSecret"): EXTERNAL_SECRET,
}


def is_builtin(version):
    """Returns whether kubernetes-validate has the schema."""
    group = version.rpartition("/")[0]
    return "." not in group or group.endswith(".k8s.io")


def main():
    validators = {kind: jsonschema.Draft202012Validator(strict(schema)) for kind, schema in SCHEMAS.items()}
    unused, problems = set(SCHEMAS), []
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as file:
            documents = list(yaml.safe_load_all(file))
        for document in documents:
            version, kind = document["apiVersion"], document["kind"]
            name = f"{kind} {document['metadata']['name']}"
            if (version, kind) in validators:
                unused.discard((version, kind))
                error = jsonschema.exceptions.best_match(validators[version, kind].iter_errors(document))
                if error:
                    problems.append(f"{name}: {error.json_path}: {error.message}")
            elif not is_builtin(version):
                problems.append(f"{name}: no schema of {version}")
    problems += [f"no {kind} found" for _, kind in unused]
    for problem in problems:
        print(problem, file=sys.stderr)
    sys.exit(1 if problems else 0)


main()
