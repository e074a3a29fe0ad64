"""Compares verdicts with those of the package jsonschema: reads lines {"schema", "value", "valid"} from a file."""

import json
import re
import sys

import jsonschema

checker = jsonschema.FormatChecker(formats=[])


@checker.checks("date-time")
def is_date_time(value):
    if not isinstance(value, str):
        return True
    match = re.fullmatch(r"(\d{4}-\d{2}-\d{2})[Tt](\d{2}):(\d{2}):(\d{2})(\.\d{1,9})?([Zz]|[+-]\d{2}:\d{2})", value)
    if not match or not is_date(match[1]):
        return False
    zone = match[6]
    fits = zone in "Zz" or int(zone[1:3]) < 24 and int(zone[4:]) < 60
    return fits and int(match[2]) < 24 and int(match[3]) < 60 and int(match[4]) < 60


@checker.checks("date")
def is_date(value):
    return not isinstance(value, str) or jsonschema.FormatChecker().conforms(value, "date")


@checker.checks("uuid")
def is_uuid(value):
    return not isinstance(value, str) or jsonschema.FormatChecker().conforms(value, "uuid")


def pattern(_, text, value, __):
    """As in ECMA-262, classes such as \\w have ASCII characters only."""
    if isinstance(value, str) and not re.search(text, value, re.ASCII):
        yield jsonschema.ValidationError("pattern")


Validator = jsonschema.validators.extend(jsonschema.Draft202012Validator, {"pattern": pattern})
count = valid = different = 0
with open(sys.argv[1], encoding="utf-8") as lines:
    for line in lines:
        case = json.loads(line)
        validator = Validator(case["schema"], format_checker=checker)
        verdict = validator.is_valid(case["value"])
        count += 1
        valid += verdict
        if verdict != case["valid"]:
            different += 1
            if different <= 10:
                print(f"jsonschema says {verdict}: {line.strip()[:1000]}")
print(f"{count} pairs, {valid} valid, {different} different")
sys.exit(1 if different else 0)
