#!/usr/bin/env python3
"""Compares the ScaledObjects among Kubernetes documents with KEDA's definition of them.

    .build/deploy-check/bin/python deploy/check_scaled_objects.py FILE

The definition is that of cloudcoil-models-keda, which is generated from the one that KEDA publishes. Unknown fields are
rejected here; a cluster would ignore them.
"""

import sys

import jsonschema
import yaml
from cloudcoil.models.keda.v1alpha1 import ScaledObject


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


def main():
    validator = jsonschema.Draft202012Validator(strict(ScaledObject.model_json_schema()))
    with open(sys.argv[1], encoding="utf-8") as file:
        objects = [document for document in yaml.safe_load_all(file) if document["kind"] == "ScaledObject"]
    problems = [
        f"{scaled['metadata']['name']}: {error.json_path}: {error.message}"
        for scaled in objects
        for error in validator.iter_errors(scaled)
    ]
    if not objects:
        problems.append("no ScaledObject found")
    for problem in problems:
        print(problem, file=sys.stderr)
    sys.exit(1 if problems else 0)


main()
