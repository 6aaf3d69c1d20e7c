package relay

import (
	"time"

	"blindpost/shared/push"
)

// Observer counts what happens. Its arguments are words of fixed sets, never
// content, keys or tokens. It must not block.
type Observer interface {
	// Refused counts an upgrade that was refused.
	Refused(dialect, reason string)
	// Authenticated counts an attempt to authenticate; result is "ok" or an
	// error code of the dialect.
	Authenticated(dialect, role, result string)
	// Joined and Left count connections with a member behind them.
	Joined(dialect, role string)
	Left(dialect, role string)
	// Frame counts a frame from a peer by its kind, which the dialect names,
	// and how long its handling took.
	Frame(dialect, kind string, took time.Duration)
	// Message counts a message that was sent, by its result.
	Message(class Class, result Result)
	// Confirmed counts stored messages that were confirmed and left a mailbox.
	Confirmed(n int)
	// Dropped counts messages that left a mailbox undelivered, or never got in.
	Dropped(class Class, reason string, n int)
	// Depth is the number of stored frames in a mailbox after one was added.
	Depth(n int64)
	// Pushed counts an attempt to push.
	Pushed(n push.Notification, err error)
}

type nopObserver struct{}

func (nopObserver) Refused(string, string)               {}
func (nopObserver) Authenticated(string, string, string) {}
func (nopObserver) Joined(string, string)                {}
func (nopObserver) Left(string, string)                  {}
func (nopObserver) Frame(string, string, time.Duration)  {}
func (nopObserver) Message(Class, Result)                {}
func (nopObserver) Confirmed(int)                        {}
func (nopObserver) Dropped(Class, string, int)           {}
func (nopObserver) Depth(int64)                          {}
func (nopObserver) Pushed(push.Notification, error)      {}
