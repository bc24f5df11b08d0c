// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Checks a webhook: WEBHOOK_SECRET=whsec_… node verify.mjs ID TIMESTAMP SIGNATURES < body

import { createHmac, timingSafeEqual } from "node:crypto";
import { readFileSync } from "node:fs";

// verify throws unless the body, a Buffer as received, was signed with the
// secret within the last five minutes. Header names are lower-case.
export function verify(secret, headers, body) {
  const key = Buffer.from(secret.replace(/^whsec_/, ""), "base64");
  if (key.length < 24) throw new Error("no usable secret");
  const { "webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": signatures = "" } = headers;
  if (!(Math.abs(Date.now() / 1000 - Number(timestamp)) <= 5 * 60)) {
    throw new Error("the timestamp is not within five minutes");
  }
  const digest = createHmac("sha256", key).update(`${id}.${timestamp}.`).update(body).digest("base64");
  const want = Buffer.from(`v1,${digest}`);
  for (const entry of signatures.split(" ")) { // one for each key of the sender
    const got = Buffer.from(entry);
    if (got.length === want.length && timingSafeEqual(got, want)) return; // same time for every wrong one
  }
  throw new Error("no signature is right");
}

if (process.argv.length > 2) {
  const [, , id, timestamp, signatures] = process.argv;
  const headers = { "webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": signatures };
  try {
    verify(process.env.WEBHOOK_SECRET ?? "", headers, readFileSync(0));
    console.log("accepted");
  } catch (err) {
    console.error(`refused: ${err.message}`);
    process.exit(1);
  }
}
