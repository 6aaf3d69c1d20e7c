package skald

import (
	"context"
	"net"
	"sync"
)

// bufferedDial puts a cable between the two ends that holds any number of
// bytes, where a net.Pipe holds none.
func bufferedDial(dial func(context.Context, string, string) (net.Conn, error)) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		far, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		near, middle := net.Pipe()
		pump(middle, far)
		pump(far, middle)
		return near, nil
	}
}

// pump carries bytes until either end is closed, and closes both.
func pump(to, from net.Conn) {
	var mu sync.Mutex
	var held []byte
	more := make(chan struct{}, 1)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		b := make([]byte, 32<<10)
		for {
			n, err := from.Read(b)
			mu.Lock()
			held = append(held, b[:n]...)
			mu.Unlock()
			select {
			case more <- struct{}{}:
			default:
			}
			if err != nil {
				return
			}
		}
	}()
	go func() {
		defer to.Close()
		defer from.Close()
		for last := false; !last; {
			select {
			case <-more:
			case <-ended:
				last = true
			}
			mu.Lock()
			now := held
			held = nil
			mu.Unlock()
			if _, err := to.Write(now); err != nil {
				return
			}
		}
	}()
}
