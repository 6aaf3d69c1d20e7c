package server

import (
	"context"
	"log"
	"log/slog"
	"strings"
)

// httpLog takes the log lines of net/http. Most are about single peers whose handshake
// failed or that did not speak HTTP: they are logged at debug level. Only a failure to
// accept connections concerns the operator.
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
