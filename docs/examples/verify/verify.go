// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// verify checks a webhook: WEBHOOK_SECRET=whsec_… verify ID TIMESTAMP SIGNATURES < body
package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

// Verify returns nil if the body, byte for byte as received, was signed with
// the secret within the last five minutes.
func Verify(secret string, header http.Header, body []byte) error {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil || len(key) < 24 {
		return errors.New("no usable secret")
	}
	id, timestamp := header.Get("webhook-id"), header.Get("webhook-timestamp")
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil || time.Since(time.Unix(seconds, 0)).Abs() > 5*time.Minute {
		return errors.New("the timestamp is not within five minutes")
	}
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.%s", id, timestamp, body)
	want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	for _, got := range strings.Fields(header.Get("webhook-signature")) { // one for each key of the sender
		if hmac.Equal([]byte(got), []byte(want)) { // takes the same time for every wrong one
			return nil
		}
	}
	return errors.New("no signature is right")
}

func main() {
	header := http.Header{}
	for i, name := range []string{"webhook-id", "webhook-timestamp", "webhook-signature"} {
		if i+1 < len(os.Args) {
			header.Set(name, os.Args[i+1])
		}
	}
	body, err := io.ReadAll(os.Stdin)
	if err == nil {
		err = Verify(os.Getenv("WEBHOOK_SECRET"), header, body)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "refused:", err)
		os.Exit(1)
	}
	fmt.Println("accepted")
}
