// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package format // import "github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/format"

import (
	"regexp"
	"strings"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/event"
)

// Limits of a message, as Slack documents them. Of slackTotal, the text of all
// blocks together, only the error msg_blocks_too_long is documented; senders
// met it from about 11000 on.
const (
	slackGroup        = 10
	slackText         = 4000
	slackHeader       = 150
	slackSection      = 3000
	slackFields       = 10
	slackField        = 2000
	slackTotal        = 9000
	slackContext      = 300
	slackLeastOfField = 60 // less room than this is not worth a field
)

var slack = Format{Name: "slack", Group: slackGroup, new: always(encodeSlack)}

// slackBody is a message for an incoming webhook.
type slackBody struct {
	// Text is what notifications show, and receivers that know no blocks.
	Text   string       `json:"text"`
	Blocks []slackBlock `json:"blocks"`
}

type slackBlock struct {
	Type     string           `json:"type"`
	Text     *slackTextObject `json:"text,omitempty"`
	Fields   []any            `json:"fields,omitempty"`
	Elements []any            `json:"elements,omitempty"`
}

// slackTextObject is a text. Verbatim keeps Slack from making links and
// mentions out of what only looks like one.
type slackTextObject struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	Verbatim bool   `json:"verbatim,omitempty"`
}

func slackMarkdown(text string) *slackTextObject {
	return &slackTextObject{Type: "mrkdwn", Text: text, Verbatim: true}
}

func encodeSlack(events []*event.Event) ([]byte, error) {
	var body slackBody
	lines := make([]string, len(events))
	for i, e := range events {
		line := e.Title()
		if sentence := e.Sentence(); sentence != "" {
			line += ": " + sentence
		}
		lines[i] = slackEscape(line, slackText/len(events)-1)
		if i > 0 {
			body.Blocks = append(body.Blocks, slackBlock{Type: "divider"})
		}
		body.Blocks = append(body.Blocks, slackBlocks(e, slackTotal/len(events))...)
	}
	body.Text = strings.Join(lines, "\n")
	return event.JSON(body)
}

// slackBlocks shows one event in at most three blocks, with at most budget of
// text in them.
func slackBlocks(e *event.Event, budget int) []slackBlock {
	header := cut(e.Title(), slackHeader, nil)
	budget -= units(header)

	section := slackBlock{Type: "section"}
	left := budget - slackContext
	if sentence := e.Sentence(); sentence != "" {
		text := slackEscape(sentence, min(slackSection, left*2/3))
		left -= units(text)
		section.Text = slackMarkdown(text)
	}
	shortened := e.Truncated
	for _, f := range facts(e) {
		if len(section.Fields) == slackFields || left < slackLeastOfField {
			shortened = true
			break
		}
		text := slackFact(f, min(slackField, left))
		left -= units(text)
		section.Fields = append(section.Fields, slackMarkdown(text))
	}

	about := e.Time.UTC().Format(time.DateTime) + " UTC, event `" + slackCode(e.ID, slackContext/2) + "`"
	if shortened {
		about += ", more in the event than shown"
	}
	blocks := []slackBlock{{Type: "header", Text: &slackTextObject{Type: "plain_text", Text: header}}}
	if section.Text != nil || len(section.Fields) > 0 {
		blocks = append(blocks, section)
	}
	return append(blocks, slackBlock{Type: "context", Elements: []any{slackMarkdown(about)}})
}

// slackFact writes the text as code: nothing in it is formatting, an emoji, a
// link or a mention.
func slackFact(f fact, limit int) string {
	label := "*" + slackEscape(f.label, slackLeastOfField/2) + "*\n`"
	return label + slackCode(f.text, limit-units(label)-1) + "`"
}

func slackCode(text string, limit int) string {
	return slackEscape(strings.ReplaceAll(text, "`", "'"), limit)
}

// slackMention matches what calls a whole channel, where a receiver that is not
// Slack itself reads the plain text.
var slackMention = regexp.MustCompile(`(?i)@(here|channel|everyone|all)\b`)

// slackEscape makes a text from outside a text that mentions no one and links to
// nothing. The three characters are those that Slack's formatting reserves.
func slackEscape(s string, limit int) string {
	return cut(slackMention.ReplaceAllString(s, "@ $1"), limit, func(r rune) string {
		switch r {
		case '&':
			return "&amp;"
		case '<':
			return "&lt;"
		case '>':
			return "&gt;"
		}
		return string(r)
	})
}
