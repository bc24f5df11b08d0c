# Copyright The otelcol-gpu Authors
# SPDX-License-Identifier: Apache-2.0

"""Checks a webhook: WEBHOOK_SECRET=whsec_... verify.py ID TIMESTAMP SIGNATURES < body"""

import base64
import hashlib
import hmac
import os
import sys
import time


def verify(secret, headers, body):
    """Raises ValueError unless the body, the bytes as received, was signed with
    the secret within the last five minutes. Header names are lower-case."""
    key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    if len(key) < 24:
        raise ValueError("no usable secret")
    msg_id, timestamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if abs(time.time() - int(timestamp)) > 5 * 60:
        raise ValueError("the timestamp is not within five minutes")
    signed = f"{msg_id}.{timestamp}.".encode() + body
    want = b"v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest())
    for got in headers.get("webhook-signature", "").split():  # one for each key of the sender
        if hmac.compare_digest(got.encode(), want):  # takes the same time for every wrong one
            return
    raise ValueError("no signature is right")


if __name__ == "__main__":
    names = ("webhook-id", "webhook-timestamp", "webhook-signature")
    try:
        verify(os.environ.get("WEBHOOK_SECRET", ""), dict(zip(names, sys.argv[1:])), sys.stdin.buffer.read())
    except ValueError as err:
        sys.exit(f"refused: {err}")
    print("accepted")
