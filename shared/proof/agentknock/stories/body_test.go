package stories

import (
	"bufio"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// A client that sends more than it may, and takes its time, hears why it is refused
// instead of being cut off.
func TestKnockRefusedBody(t *testing.T) {
	inBubble(t, func(_ *testing.T, w *world) {
		nc, ok := w.Pipes.Dial("127.0.0.1")
		if !ok {
			w.T.Fatal("nobody listens")
		}
		defer nc.Close()
		const size = 400 << 10
		_, err := fmt.Fprintf(nc, "POST /v1/device/%s/claim HTTP/1.1\r\nHost: relay\r\nX-Forwarded-Proto: https\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n", newID(), size)
		w.must(err)
		for range 8 {
			_, err := nc.Write([]byte(strings.Repeat(" ", size/8)))
			w.must(err)
			w.Sleep(700 * time.Millisecond)
		}
		res, err := http.ReadResponse(bufio.NewReader(nc), nil)
		w.must(err)
		defer res.Body.Close()
		if res.StatusCode != http.StatusRequestEntityTooLarge {
			w.T.Errorf("the answer is %s", res.Status)
		}
	})
}
