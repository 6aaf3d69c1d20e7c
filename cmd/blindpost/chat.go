package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	skaldclient "blindpost/shared/client/skald"
)

// session is an agent or a client of the library.
type session interface {
	// Run connects and stays connected until ctx ends.
	Run(ctx context.Context) error
	Presence(ctx context.Context) ([]skaldclient.PublicKey, error)
}

// party is the part of a chat in which an agent and a client differ. talk calls its
// methods from one goroutine.
type party interface {
	// connected runs after each admission to the relay, before lines are sent.
	connected(ctx context.Context)
	// event handles messages, and the events that talk does not handle itself. A
	// change of presence comes here after the person was told.
	event(ctx context.Context, e skaldclient.Event)
	// refused tells the person about an attempt that failed, if it knows better than
	// talk why, and reports whether it did.
	refused(err error) bool
	// say sends a line. Without a connection it returns the lines to enter later.
	say(ctx context.Context, text string, live bool) (later []string)
	// answer takes a line that answers an open question.
	answer(ctx context.Context, text string) bool
	// who names a member.
	who(key skaldclient.PublicKey) string
	// tick runs when the alarm of talk goes off.
	tick(ctx context.Context)
	// ended says why the session has given up.
	ended(err error)
}

// chatCommand is a command that can be typed after a slash.
type chatCommand struct {
	name, args, help string
	// offline commands need no connection.
	offline bool
	do      func(ctx context.Context, rest string)
}

// talk is a chat: one loop that owns everything, fed by the lines that a person
// types and by the events of the connection.
type talk struct {
	screen   *screen
	input    <-chan line
	stay     bool
	session  session
	party    party
	commands []chatCommand

	events chan skaldclient.Event
	// alarm is when to call the party's tick, once; nil for never.
	alarm <-chan time.Time
	// linked says that there is a connection, as far as the events tell;
	// linkedOnce that there was one before.
	linked, linkedOnce bool
	online             map[skaldclient.PublicKey]bool
	// failure is what was last said about a failed attempt.
	failure string
	// held are lines that wait for the connection.
	held []string
	// sent says that something was sent on this connection.
	sent bool
	// quit says that the person wants to end; ended that there is no more input;
	// leaving that the end has begun.
	quit, ended, leaving bool
}

// Bounds of what a person waits for.
const (
	maxHeld      = 1000
	askRelay     = 10 * time.Second
	leaveTimeout = 3 * time.Second
)

func newTalk(s *screen, input <-chan line, stay bool) *talk {
	t := &talk{
		screen: s,
		input:  input,
		stay:   stay,
		events: make(chan skaldclient.Event, 16),
		online: make(map[skaldclient.PublicKey]bool),
	}
	t.commands = []chatCommand{
		{"live", "TEXT", "send only to peers that are online; nothing waits at the relay", false, t.live},
		{"who", "", "ask the relay who is online", false, t.listOnline},
		{"help", "", "show this list", true, func(context.Context, string) { t.help() }},
		{"quit", "", "end; so does Ctrl-C", true, func(context.Context, string) { t.quit = true }},
	}
	return t
}

// onEvent takes events from the connection. The loop takes them all, until the
// session has ended: so a message is shown even while the chat ends.
func (t *talk) onEvent(_ context.Context, e skaldclient.Event) { t.events <- e }

// loop runs the chat and returns the exit status.
func (t *talk) loop(ctx context.Context) int {
	runCtx, stop := context.WithCancel(ctx)
	defer stop()
	result := make(chan error, 1)
	go func() { result <- t.session.Run(runCtx) }()
	interrupted := ctx.Done()
	for {
		if t.mayLeave() {
			t.leave(ctx)
			stop()
		}
		if !t.leaving {
			t.screen.ready()
		}
		select {
		case l, more := <-t.input:
			if !more {
				t.input, t.ended = nil, true
				continue
			}
			t.screen.entered()
			t.entered(ctx, l)
		case e := <-t.events:
			t.event(ctx, e)
		case <-t.alarm:
			t.alarm = nil
			t.party.tick(ctx)
		case <-interrupted:
			interrupted, t.leaving, t.input = nil, true, nil
		case err := <-result:
			for len(t.events) > 0 {
				t.event(ctx, <-t.events)
			}
			return t.end(err)
		}
	}
}

func (t *talk) mayLeave() bool {
	return !t.leaving && (t.quit || t.ended && !t.stay && len(t.held) == 0)
}

// leave waits until the relay has what was sent: it handles frames in order, so its
// answer to one more request comes after them.
func (t *talk) leave(ctx context.Context) {
	t.leaving, t.input = true, nil
	if !t.linked || !t.sent {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, leaveTimeout)
	defer cancel()
	if _, err := t.session.Presence(ctx); err != nil {
		t.screen.warn("The relay has not confirmed that it has everything: %s.", explain(err))
	}
}

func (t *talk) end(err error) int {
	if err != nil {
		t.party.ended(err)
		return 1
	}
	if len(t.held) > 0 {
		t.screen.warn("Not sent, because there was no connection: %s.", count(len(t.held), "line"))
		return 1
	}
	t.screen.note("Bye.")
	return 0
}

// entered handles a line of input.
func (t *talk) entered(ctx context.Context, l line) {
	text := strings.TrimSpace(l.text)
	switch {
	case l.tooLong:
		t.screen.warn("That line was too long and is not sent.")
		return
	case text == "":
		return
	}
	name, rest, isCommand := cutCommand(text)
	if !isCommand {
		if !t.party.answer(ctx, text) {
			t.whenLinked(text, func() { t.hold(t.party.say(ctx, text, false)...) })
		}
		return
	}
	for _, c := range t.commands {
		if c.name != name {
			continue
		}
		if c.offline {
			c.do(ctx, rest)
		} else {
			t.whenLinked(text, func() { c.do(ctx, rest) })
		}
		return
	}
	t.screen.warn("There is no command /%s. /help lists them; a second slash (//…) sends a line that begins with one.", foreign(name))
}

// cutCommand takes a command line apart. Two slashes are one slash of a text.
func cutCommand(text string) (name, rest string, ok bool) {
	if !strings.HasPrefix(text, "/") || strings.HasPrefix(text, "//") {
		return "", "", false
	}
	name, rest, _ = strings.Cut(text[1:], " ")
	return name, strings.TrimSpace(rest), true
}

// whenLinked does something now, or keeps the line for when there is a
// connection.
func (t *talk) whenLinked(text string, do func()) {
	if t.linked {
		do()
		return
	}
	t.hold(text)
}

// hold keeps lines until there is a connection.
func (t *talk) hold(lines ...string) {
	for _, text := range lines {
		if len(t.held) >= maxHeld {
			t.screen.warn("There is no connection, and too many lines wait for it: this one is not sent.")
			return
		}
		t.held = append(t.held, text)
		if len(t.held) == 1 {
			t.screen.note("No connection yet: this waits here until there is one.")
		}
	}
}

func (t *talk) live(ctx context.Context, rest string) {
	if rest == "" {
		t.screen.warn("What shall I send? /live TEXT")
		return
	}
	if later := t.party.say(ctx, rest, true); len(later) > 0 {
		t.screen.warn("The connection has just been lost: a live message does not wait, so it is not sent.")
	}
}

func (t *talk) help() {
	var b strings.Builder
	b.WriteString("Type a line and press Enter to send it. A peer that is away gets it later.\n")
	for _, c := range t.commands {
		fmt.Fprintf(&b, "  %-16s %s\n", strings.TrimSpace("/"+c.name+" "+c.args), c.help)
	}
	if t.screen.prompt != "" {
		b.WriteString("If a message comes in while you type, Ctrl-R shows again what you have typed.\n")
	}
	t.screen.print("%s", strings.TrimSuffix(b.String(), "\n"))
}
