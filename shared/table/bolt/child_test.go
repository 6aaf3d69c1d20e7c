package bolt

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Some tests need a process of their own, to kill it or to limit what it may
// write. They start this test binary again with the name of a role and the path
// of a file.
const (
	envRole = "BLINDPOST_BOLT_TEST_ROLE"
	envFile = "BLINDPOST_BOLT_TEST_FILE"
)

// roles are what a child can do; its error ends it with status 1.
var roles = map[string]func(path string) error{
	"crash": crashChild,
}

// runChild plays the role that the environment asks for, if any.
func runChild() bool {
	name := os.Getenv(envRole)
	if name == "" {
		return false
	}
	role, ok := roles[name]
	if !ok {
		fmt.Fprintln(os.Stderr, "unknown role")
		os.Exit(2)
	}
	if err := role(os.Getenv(envFile)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return true
}

// child is a running role.
type child struct {
	cmd    *exec.Cmd
	lines  *bufio.Scanner // what it prints
	stderr strings.Builder
}

func startChild(t *testing.T, role, path string) *child {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := &child{cmd: exec.Command(exe)}
	c.cmd.Env = append(os.Environ(), envRole+"="+role, envFile+"="+path)
	c.cmd.Stderr = &c.stderr
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.lines = bufio.NewScanner(out)
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return c
}
