// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// auditLine is what is read of a line of the audit file. The judge has its own
// eyes: it does not use the code that wrote the file.
type auditLine struct {
	Kind      string    `json:"kind"`
	ID        string    `json:"id"`
	WebhookID string    `json:"webhook_id"`
	Time      time.Time `json:"time"`
	Events    []struct {
		ID string `json:"id"`
	} `json:"events"`
	Receiver    string    `json:"receiver"`
	Body        string    `json:"body_sha256"`
	Attempt     int       `json:"attempt"`
	Outcome     string    `json:"outcome"`
	Status      int       `json:"status"`
	ErrorType   string    `json:"error.type"`
	NextAttempt time.Time `json:"next_attempt"`
}

// auditFiles are the files of the log at path, oldest first: full ones are
// called audit-000001.jsonl, and so on.
func auditFiles(path string) ([]string, error) {
	ext := filepath.Ext(path)
	files, err := filepath.Glob(strings.TrimSuffix(path, ext) + "-*" + ext)
	if err != nil {
		return nil, err
	}
	slices.Sort(files)
	if _, err := os.Stat(path); err == nil {
		files = append(files, path)
	} else if !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	return files, nil
}

// setAside are the files of logs that the collector did not continue because they
// did not verify. No kill is a reason for that.
func setAside(path string) ([]string, error) {
	ext := filepath.Ext(path)
	return filepath.Glob(strings.TrimSuffix(path, ext) + ".set-aside-*" + ext)
}

// readRecords returns the records of these files, and how many lines of other
// kinds there are.
func readRecords(files []string) ([]Record, map[string]int, error) {
	var records []Record
	kinds := map[string]int{}
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			return nil, nil, err
		}
		records, err = appendRecords(records, kinds, f)
		_ = f.Close()
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	return records, kinds, nil
}

func appendRecords(records []Record, kinds map[string]int, r io.Reader) ([]Record, error) {
	in := bufio.NewScanner(r)
	in.Buffer(nil, 1<<20)
	for n := 1; in.Scan(); n++ {
		var line auditLine
		if err := json.Unmarshal(in.Bytes(), &line); err != nil {
			// What a kill left of a line stays in the file, and the next line
			// records it; verify checks that.
			kinds["unreadable"]++
			continue
		}
		if line.Kind != "record" {
			kinds[line.Kind]++
			continue
		}
		record := Record{
			ID: line.ID, WebhookID: line.WebhookID, Time: line.Time, Receiver: line.Receiver, Body: line.Body, Attempt: line.Attempt, Outcome: line.Outcome,
			Status: line.Status, ErrorType: line.ErrorType, NextAttempt: line.NextAttempt,
		}
		if record.ID == "" || len(line.Events) == 0 || line.Outcome == "" {
			return nil, fmt.Errorf("line %d: a record without id, events or outcome", n)
		}
		for _, event := range line.Events {
			record.EventIDs = append(record.EventIDs, event.ID)
		}
		records = append(records, record)
	}
	return records, in.Err()
}
