// Package secret keeps a shared secret of one or several words, separated by white
// space, that is read from somewhere and read again now and then.
//
// Several words are for a rotation without a gap: the side that checks accepts every
// word, the side that shows one shows the first. So the new word is first added at the
// end; when everybody has read it, it is moved to the front; and when everybody has
// read that, the old one is taken out.
//
// No error, and nothing that is logged, holds a word.
package secret

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// MaxAge is how long the words are believed before they are read again, so that
	// one that was rotated away is refused soon.
	MaxAge = 5 * time.Minute
	// MinWord is the length of the shortest word that Check accepts and Word shows,
	// where Options.Long is set.
	MinWord = 16
	// forgetAfter is how long the words are believed at least after they were read,
	// even if somebody says that they are wrong: whoever causes that must not be able
	// to have them read again with every request.
	forgetAfter = 10 * time.Second
)

// Options say where the words come from. Read is required.
type Options struct {
	Read func(ctx context.Context) (string, error)
	// Long refuses words that are shorter than MinWord.
	Long bool
	// Check, if there is one, says whether the words that were read are of any use. The
	// error holds none of them.
	Check func(words []string) error
	Now   func() time.Time
	Log   *slog.Logger
}

// Words are the words of one secret. They are safe for concurrent use.
type Words struct {
	o Options

	mu    sync.Mutex
	words []string
	at    time.Time
}

// New makes Words. It reads nothing yet.
func New(o Options) *Words {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Words{o: o}
}

// Check reports whether value is one of the words. It takes the same time for all
// values.
func (w *Words) Check(ctx context.Context, value string) (bool, error) {
	words, err := w.current(ctx)
	if err != nil {
		return false, err
	}
	// Hashes, because a comparison tells the length.
	got, match := sha256.Sum256([]byte(value)), 0
	for _, word := range words {
		want := sha256.Sum256([]byte(word))
		match |= subtle.ConstantTimeCompare(got[:], want[:])
	}
	return match == 1, nil
}

// Word is the word to show.
func (w *Words) Word(ctx context.Context) (string, error) {
	words, err := w.current(ctx)
	if err != nil {
		return "", err
	}
	if len(words) == 0 {
		return "", errors.New("secret is empty")
	}
	return words[0], nil
}

// All are the words, for a check that is more than a comparison.
func (w *Words) All(ctx context.Context) ([]string, error) {
	words, err := w.current(ctx)
	return slices.Clone(words), err
}

// Forget has the words read again when they are next needed: the other side has
// refused one. It reports whether that is so; they may have been read just now.
func (w *Words) Forget() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.words == nil || w.o.Now().Sub(w.at) < forgetAfter {
		return false
	}
	w.at = w.o.Now().Add(-MaxAge)
	return true
}

// Reread has the words read again when they are next needed: the operator has changed
// them.
func (w *Words) Reread() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at = time.Time{}
}

func (w *Words) current(ctx context.Context) ([]string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.words != nil && w.o.Now().Sub(w.at) < MaxAge {
		return w.words, nil
	}
	words, err := w.read(ctx)
	if err != nil && w.words != nil {
		w.o.Log.WarnContext(ctx, "failed to read a secret again, the last one still counts", "error", err)
		w.at = w.o.Now()
		return w.words, nil
	}
	if err != nil {
		return nil, err
	}
	w.words, w.at = words, w.o.Now()
	return words, nil
}

func (w *Words) read(ctx context.Context) ([]string, error) {
	text, err := w.o.Read(ctx)
	if err != nil {
		return nil, err
	}
	words := strings.Fields(text)
	if words == nil {
		words = []string{}
	}
	for i, word := range words {
		if w.o.Long && len(word) < MinWord {
			return nil, fmt.Errorf("word %d of a secret is shorter than %d characters", i+1, MinWord)
		}
	}
	if w.o.Long && len(words) == 0 {
		return nil, errors.New("secret is empty")
	}
	if w.o.Check != nil {
		if err := w.o.Check(words); err != nil {
			return nil, err
		}
	}
	return words, nil
}
