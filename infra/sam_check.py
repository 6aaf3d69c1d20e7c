"""What `sam local` would do with the template, as far as that goes without Docker.

SAM's own code finds the functions by the names that the documentation uses, with
binaries for arm64, and sam-env.json gives a value to each variable that refers to
something of AWS: SAM puts the name of the resource there.

    sam_check.py TEMPLATE ENV
"""

import json
import logging
import sys
from pathlib import Path

logging.disable(logging.WARNING)

from samcli.lib.providers.sam_function_provider import SamFunctionProvider
from samcli.lib.providers.sam_stack_provider import SamLocalStackProvider

NAMES = ["Connect", "Message", "Disconnect", "Sweeper"]
RUNTIME = "provided.al2023"
AARCH64 = 183


def refers(value):
    """Whether a value of the template is no plain text."""
    return not isinstance(value, str)


def check(template, env):
    raw = json.loads(Path(template).read_text())["Resources"]
    given = json.loads(Path(env).read_text())
    stacks, _ = SamLocalStackProvider.get_stacks(template)
    functions = SamFunctionProvider(stacks)
    if sorted(given) != sorted(NAMES):
        yield f"{env} is about {sorted(given)}"
    # Of the runtime of ours: the CDK has one for the protection of the table.
    found = sorted(f.name for f in functions.get_all() if f.runtime == RUNTIME)
    if found != sorted(NAMES):
        yield f"sam finds {found}"
    for name in NAMES:
        f = functions.get(name)
        if f is None:
            yield f"sam does not find {name}"
            continue
        if (f.runtime, f.handler, f.architectures) != (RUNTIME, "bootstrap", ["arm64"]):
            yield f"{name} is {f.runtime}, {f.handler}, {f.architectures}"
        binary = Path(f.codeuri or "") / "bootstrap"
        head = binary.read_bytes()[:20] if binary.is_file() else b""
        if head[:4] != b"\x7fELF" or int.from_bytes(head[18:20], "little") != AARCH64:
            yield f"{name}: {binary} is no program for arm64"
        variables = raw[name]["Properties"]["Environment"]["Variables"]
        wanted = {v for v, value in variables.items() if refers(value)}
        for v in sorted(wanted - set(given.get(name, {}))):
            yield f"{env} has no {v} for {name}"
        for v in sorted(set(given.get(name, {})) - set(variables)):
            yield f"{name} has no {v} in the template, so sam would ignore that of {env}"


wrong = list(check(*sys.argv[1:]))
for w in wrong:
    print(w, file=sys.stderr)
sys.exit(1 if wrong else 0)
