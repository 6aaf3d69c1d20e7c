package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	skaldclient "blindpost/shared/client/skald"
)

// kindChat is a line that a client has typed. Skald has no kind for that: its
// clients answer, they do not chat. A real Skald agent ignores kinds that it
// does not know.
const kindChat skaldclient.Kind = "chat"

// chatText is the body of kindChat.
type chatText struct {
	Text string `json:"text"`
}

// notification is the body of a line that an agent has typed.
type notification struct {
	Title string `json:"title"`
	Body  string `json:"body"`
}

// hello is what a client says first: what it calls itself.
type hello struct {
	Device deviceInfo `json:"device_info"`
}

type deviceInfo struct {
	Platform string `json:"platform"`
	Model    string `json:"model,omitempty"`
	Version  string `json:"app_version,omitempty"`
	Name     string `json:"device_name,omitempty"`
}

// inbox lists the open questions of an agent.
type inbox struct {
	Badge          int         `json:"badge"`
	Approvals      []inboxItem `json:"approvals"`
	Clarifications []inboxItem `json:"clarifications"`
	Elicitations   []inboxItem `json:"elicitations"`
}

// inboxItem is one question, with the parts that are shown here.
type inboxItem struct {
	Summary  string `json:"summary,omitempty"`
	Question string `json:"question,omitempty"`
	Message  string `json:"message,omitempty"`
}

// unslash removes the first of two slashes, which marks a line that is no command.
func unslash(text string) string {
	if strings.HasPrefix(text, "//") {
		return text[1:]
	}
	return text
}

// payloadText is the text to show for a payload: JSON if its kind is not known here.
func payloadText(p skaldclient.Payload) string {
	switch p.Kind {
	case kindChat:
		var c chatText
		if p.Decode(&c) == nil && c.Text != "" {
			return c.Text
		}
	case skaldclient.KindNotification:
		var n notification
		if p.Decode(&n) == nil && n.Body != "" {
			return n.Body
		}
	case skaldclient.KindInboxUpdate:
		var i inbox
		if p.Decode(&i) == nil {
			return i.text()
		}
	}
	var body bytes.Buffer
	if json.Compact(&body, p.Body) != nil {
		return fmt.Sprintf("[%s]", p.Kind)
	}
	return fmt.Sprintf("[%s] %s", p.Kind, body.String())
}

func (i inbox) text() string {
	items := slices.Concat(i.Approvals, i.Clarifications, i.Elicitations)
	if len(items) == 0 {
		return "[the agent has no open questions]"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "[the agent's open questions: %d; a Skald app can answer them]", len(items))
	for _, item := range items {
		b.WriteString("\n- " + item.Summary + item.Question + item.Message)
	}
	return b.String()
}
