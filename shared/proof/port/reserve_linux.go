package port

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// reserve binds a socket and does not listen. Linux gives its port to no connection and to
// no listener that lets it choose; one that names the port and sets SO_REUSEADDR, as those
// of net do, shares it.
func reserve() (address string, release func(), err error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return "", nil, fmt.Errorf("failed to open a socket: %w", err)
	}
	release = func() { _ = unix.Close(fd) }
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
		release()
		return "", nil, fmt.Errorf("failed to share the address: %w", err)
	}
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		release()
		return "", nil, fmt.Errorf("failed to bind: %w", err)
	}
	name, err := unix.Getsockname(fd)
	if err != nil {
		release()
		return "", nil, fmt.Errorf("failed to read the address: %w", err)
	}
	return fmt.Sprintf("127.0.0.1:%d", name.(*unix.SockaddrInet4).Port), release, nil
}
