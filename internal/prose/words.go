// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import "regexp"

// rule is a phrase that the project avoids, and what to write instead.
type rule struct {
	phrase     *regexp.Regexp
	suggestion string
}

// rules are the idioms to avoid. A phrase is a case-insensitive expression over whole words;
// a space in it stands for any white space, a line break included.
var rules = compile([][2]string{
	{`(?:re)?(?:tells?|telling|told)`, "report, log, return, show"},
	{`sa(?:y|ys|ying|id)`, "state, report, contain, mean"},
	{`unsaid|untold`, "not reported, unknown"},
	{`hear|hears|heard|hearing|unheard`, "receive, last seen"},
	{`whose`, "with, of which, that has"},
	{`(?:share)?holders?`, "owner"},
	{`(?:no|some|any)body`, "name the actor, or use the passive"},
	{`whoever|whosoever|whomever`, "name the actor: a client, a caller, an operator"},
	{`(?:that|which|who|it|this|they|these|those|one|ones|what) (?:is|are|was|were) none`, "is not a …"},
	{`there twice|twice there`, "duplicate"},
	{`anew`, "again, from scratch"},
	{`(?:go|goes|going|went|gone) over`, "merge onto, exceed, iterate over"},
	{`mend(?:s|ed|ing)?`, "fix"},
	{`(?:come|comes|came|coming) to`, "reach, connect to, amount to, become"},
	{`come by`, "get, obtain"},
	{`hand(?:s|ed|ing)? on`, "forward, pass"},
	{`(?:take|takes|taken|taking|took) up`, "resume, accept, occupy"},
	{`in the place of`, "instead of"},
	{`over (?:a|the|its|any|every|each)? ?restarts?`, "across restarts"},
	{`in vain`, "without success, after failures"},
	{`(?:dis)?believ(?:e|es|ed|ing)`, "trust, accept, verify"},
})

func compile(list [][2]string) []rule {
	var compiled []rule
	for _, entry := range list {
		expression := regexp.MustCompile(` `).ReplaceAllString(entry[0], `\s+`)
		compiled = append(compiled, rule{regexp.MustCompile(`(?i)\b(?:` + expression + `)\b`), entry[1]})
	}
	return compiled
}
