#!/usr/bin/env python3
"""Compiles every module separately with optimisation, up to SIL, and discards the output.

Tests run without optimisation, and the optimiser can crash although all tests pass: that of Swift 6.3.1 once failed on
a module that deploy/up then could not build. Run it after `swift build --build-tests`, whose commands it repeats.
Imported modules are reused, so this takes less time than a release build.
"""

import concurrent.futures
import json
import os
import re
import subprocess
import sys
import tempfile

MANIFEST = ".build/debug.yaml"
# Only tests import the first two; the others are C.
LEFT_OUT = {"ProjectDocuments", "TestSupport", "CBroker", "CTestNames"}
# Removed arguments of the compiler's command: those that write files, and those of debug builds.
WITH_VALUE = {"-emit-module-path", "-output-file-map", "-index-store-path", "-emit-objc-header-path"}
ALONE = {
    "-emit-dependencies", "-emit-module", "-emit-objc-header", "-incremental", "-enable-batch-mode", "-c", "-DDEBUG",
    "-serialize-diagnostics", "-parseable-output", "-enable-testing", "-Onone",
}


def fail(reason):
    sys.exit(f"error: {reason}")


def commands(manifest):
    """Yields the compiler's command for each module of the package, by the module's name."""
    lines = manifest.split("\n")
    targets = next((line for line in lines if line.startswith('  "main": [')), "")
    modules = [found for found in re.findall(r'"<((\w+)-[^">]*-debug\.module)>"', targets) if found[1] not in LEFT_OUT]
    if not modules:
        fail(f"{MANIFEST} names no module")
    for node, name in modules:
        start = next((index for index, line in enumerate(lines) if line == f'  "C.{node}":'), None)
        built = next((line for line in lines[start:] if line.startswith("    args: ")), None) if start else None
        if built is None:
            fail(f"{MANIFEST} has no compile command for {name}")
        yield name, json.loads(built.removeprefix("    args: "))


def problem(name, built):
    """Returns the compiler's errors and output for a module that it cannot optimise, otherwise None."""
    arguments, rest = [], iter(built)
    for argument in rest:
        if argument in WITH_VALUE:
            next(rest)
        elif argument not in ALONE:
            arguments.append(argument)
    arguments += ["-O", "-whole-module-optimization", "-emit-sil", "-o", os.devnull]
    result = subprocess.run(arguments, capture_output=True, text=True, errors="replace", check=False)
    print(name, flush=True)
    if result.returncode == 0:
        return None
    output = result.stderr.split("\n")
    # deploy/test shows the lines that say "error:".
    why = [f"error: {line.strip()[:400]}" for line in output if re.search(r"error:|While running|Stack dump", line)]
    reason = f"error: {name} cannot be optimised (exit status {result.returncode})"
    return "\n".join([reason, *why, *output])


def main():
    try:
        with open(MANIFEST, encoding="utf-8") as file:
            modules = dict(commands(file.read()))
    except OSError as error:
        fail(f"{MANIFEST} cannot be read; swift build --build-tests creates it: {error}")
    # The compiler does not remove its temporary folders.
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        os.environ["TMPDIR"] = folder
        problems = [found for found in pool.map(problem, modules, modules.values()) if found]
    if problems:
        print("\n".join(problems))
        fail(f"of {len(modules)} modules {len(problems)} cannot be optimised")
    print(f"{len(modules)} modules can be optimised")


main()
