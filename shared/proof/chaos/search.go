package chaos

import (
	"bufio"
	"fmt"
	"io"

	"blindpost/shared/proof/suite"
)

// finding is a line that tells something.
type finding struct {
	line int
	what string
}

// search reads lines and returns how many bytes there were, and the first
// findings.
func search(s *suite.Secrets, r io.Reader) (size int64, found []finding, err error) {
	lines := bufio.NewReaderSize(r, 64<<10)
	for n := 1; ; n++ {
		line, err := lines.ReadBytes('\n')
		size += int64(len(line))
		if what := s.In(line); what != "" && len(found) < maxFaults {
			found = append(found, finding{n, what})
		}
		if err == io.EOF {
			return size, found, nil
		}
		if err != nil {
			return size, found, fmt.Errorf("failed to read what is searched: %w", err)
		}
	}
}
