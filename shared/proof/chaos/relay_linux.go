package chaos

import (
	"os/exec"
	"syscall"
)

// dieWithUs has the system kill a process when this one ends, however it ends.
func dieWithUs(p *exec.Cmd) {
	if p.SysProcAttr == nil {
		p.SysProcAttr = &syscall.SysProcAttr{}
	}
	p.SysProcAttr.Pdeathsig = syscall.SIGKILL
}
