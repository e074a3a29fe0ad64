#!/usr/bin/env python3
"""Has the compiler optimise every module by itself, up to where LLVM would begin, and keeps nothing.

Tests run without optimisation, and an optimiser can fail where all tests pass: that of Swift 6.3.1 once gave up on a
module that deploy/up then could not build. Run it after `swift build --build-tests`, whose commands it repeats: what
modules import stays as it was built, so this takes a part of the time of a release build.
"""

import concurrent.futures
import json
import os
import re
import subprocess
import sys
import tempfile

MANIFEST = ".build/debug.yaml"
# Only tests import the first two; the last is C.
LEFT_OUT = {"ProjectDocuments", "TestSupport", "CBroker"}
# Of the built command: what writes files, and what makes a debug build.
WITH_VALUE = {"-emit-module-path", "-output-file-map", "-index-store-path", "-emit-objc-header-path"}
ALONE = {
    "-emit-dependencies", "-emit-module", "-emit-objc-header", "-incremental", "-enable-batch-mode", "-c", "-DDEBUG",
    "-serialize-diagnostics", "-parseable-output", "-enable-testing", "-Onone",
}


def fail(reason):
    sys.exit(f"error: {reason}")


def commands(manifest):
    """The compiler's command for each module of the package, by the module's name."""
    lines = manifest.split("\n")
    targets = next((line for line in lines if line.startswith('  "main": [')), "")
    modules = [found for found in re.findall(r'"<((\w+)-[^">]*-debug\.module)>"', targets) if found[1] not in LEFT_OUT]
    if not modules:
        fail(f"{MANIFEST} names no module")
    for node, name in modules:
        start = next((index for index, line in enumerate(lines) if line == f'  "C.{node}":'), None)
        built = next((line for line in lines[start:] if line.startswith("    args: ")), None) if start else None
        if built is None:
            fail(f"{MANIFEST} does not say how {name} is compiled")
        yield name, json.loads(built.removeprefix("    args: "))


def problem(name, built):
    """What the compiler says of a module that it cannot optimise, the end of it last."""
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
    said = result.stderr.split("\n")
    # deploy/test shows the lines that say "error:".
    why = [f"error: {line.strip()[:400]}" for line in said if re.search(r"error:|While running|Stack dump", line)]
    reason = f"error: {name} cannot be optimised (exit status {result.returncode})"
    return "\n".join([reason, *why, *said])


def main():
    try:
        with open(MANIFEST, encoding="utf-8") as file:
            modules = dict(commands(file.read()))
    except OSError as error:
        fail(f"{MANIFEST} cannot be read; it is made by swift build --build-tests: {error}")
    # The compiler leaves empty folders behind.
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        os.environ["TMPDIR"] = folder
        problems = [found for found in pool.map(problem, modules, modules.values()) if found]
    if problems:
        print("\n".join(problems))
        fail(f"of {len(modules)} modules {len(problems)} cannot be optimised")
    print(f"{len(modules)} modules can be optimised")


main()
