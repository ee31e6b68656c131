"""What the formats of JSON Schema mean here, so that a schema which names another one is seen to differ."""

import base64
import binascii
import datetime
import ipaddress
import re
import uuid

import jsonschema
from jsonschema.validators import Draft202012Validator, extend

DURATION = re.compile(r"[-+]?P(?=.)(\d+W)?(\d+D)?(T(?=.)(\d+H)?(\d+M)?(\d+(\.\d+)?S)?)?")
CHECKER = jsonschema.FormatChecker(formats=())


def asserted(*names):
    def register(check):
        for name in names:
            CHECKER.checks(name, raises=(ValueError, TypeError))(lambda value: not isinstance(value, str) or check(value))
        return check

    return register


@asserted("date-time")
def _moment(text):
    return "T" in text and bool(datetime.datetime.fromisoformat(text.replace("Z", "+00:00")))


@asserted("date")
def _date(text):
    return len(text) == 10 and bool(datetime.date.fromisoformat(text))


@asserted("time")
def _time(text):
    return ":" in text and datetime.time.fromisoformat(text.replace("Z", "+00:00")) is not None


@asserted("duration")
def _duration(text):
    return DURATION.fullmatch(text) is not None


@asserted("uuid")
def _uuid(text):
    return bool(uuid.UUID(text))


@asserted("uuid4")
def _uuid4(text):
    return uuid.UUID(text).version == 4


@asserted("uri")
def _uri(text):
    return re.fullmatch(r"[a-z]+://[^\s/]+\S*", text) is not None


@asserted("ipv4")
def _ipv4(text):
    return bool(ipaddress.IPv4Address(text))


@asserted("ipv6")
def _ipv6(text):
    return bool(ipaddress.IPv6Address(text))


@asserted("regex")
def _regex(text):
    try:
        return bool(re.compile(text))
    except re.error:
        return False


def _encoding(validator, encoding, instance, schema):
    if encoding == "base64" and isinstance(instance, str):
        try:
            base64.b64decode(instance, validate=True)
        except (binascii.Error, ValueError):
            yield jsonschema.ValidationError(f"{instance!r} is not base64")


_Validator = extend(Draft202012Validator, {"contentEncoding": _encoding})


def validator(schema, trusted=False):
    if not trusted:
        Draft202012Validator.check_schema(schema)
    return _Validator(schema, format_checker=CHECKER)
