package server

import (
	"context"
	"log"
	"log/slog"
	"strings"
)

// httpLog takes what net/http has to say. Most of it is about single peers, whose
// handshake failed or who spoke no HTTP: that is for debugging. That no
// connection can be accepted is for the operator.
type httpLog struct {
	log *slog.Logger
}

func newHTTPLog(l *slog.Logger) *log.Logger { return log.New(httpLog{l}, "", 0) }

// Write implements io.Writer; each call is one line.
func (h httpLog) Write(line []byte) (int, error) {
	text := strings.TrimSpace(string(line))
	level := slog.LevelDebug
	if strings.Contains(text, "Accept error") {
		level = slog.LevelWarn // net/http waits up to a second between two of these
	}
	h.log.Log(context.Background(), level, text)
	return len(line), nil
}
