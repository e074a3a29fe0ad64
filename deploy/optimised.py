#!/usr/bin/env python3
"""Compiles every module as deploy/up does, with optimisation, and keeps nothing.

Tests run without it, and a compiler that optimises can fail where the other one does not: Swift 6.3.1 once gave up on a
module that all tests had passed. After `swift build --build-tests`, whose commands are repeated: what modules import
stays as it was built, so this takes a part of the time of a build.
"""

import concurrent.futures
import json
import os
import re
import subprocess
import sys

MANIFEST = ".build/debug.yaml"
# Only tests import them.
LEFT_OUT = {"ProjectDocuments", "TestSupport"}
# Of the built command: what writes files, and what makes a debug build.
WITH_VALUE = {"-emit-module-path", "-output-file-map", "-index-store-path", "-emit-objc-header-path"}
ALONE = {
    "-emit-dependencies", "-emit-module", "-emit-objc-header", "-incremental", "-enable-batch-mode", "-c", "-DDEBUG",
    "-serialize-diagnostics", "-parseable-output", "-enable-testing", "-Onone",
}


def commands(manifest):
    """The compiler's command for each module of the package, by the module's name."""
    lines = manifest.split("\n")
    targets = next(line for line in lines if line.startswith('  "main": ['))
    for node, name in re.findall(r'"<((\w+)-[^">]*-debug\.module)>"', targets):
        if name in LEFT_OUT:
            continue
        start = lines.index(f'  "C.{node}":') if f'  "C.{node}":' in lines else None
        if start is None:
            continue  # C
        built = next(line for line in lines[start:] if line.startswith("    args: "))
        yield name, json.loads(built.removeprefix("    args: "))


def compile_module(name, built):
    arguments, rest = [], iter(built)
    for argument in rest:
        if argument in WITH_VALUE:
            next(rest)
        elif argument not in ALONE:
            arguments.append(argument)
    arguments += ["-O", "-whole-module-optimization", "-emit-sil", "-o", os.devnull]
    result = subprocess.run(arguments, capture_output=True, text=True, errors="replace", check=False)
    if result.returncode == 0:
        return None
    said = [line[:400] for line in result.stderr.split("\n") if re.search(r"error:|While running", line)]
    return "\n".join([f"error: {name} does not compile with optimisation", *said])


def main():
    with open(MANIFEST, encoding="utf-8") as file:
        modules = dict(commands(file.read()))
    if not modules:
        sys.exit(f"error: {MANIFEST} names no module")
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = [problem for problem in pool.map(compile_module, modules, modules.values()) if problem]
    print("\n".join(found) if found else f"{len(modules)} modules compile with optimisation")
    sys.exit(1 if found else 0)


main()
