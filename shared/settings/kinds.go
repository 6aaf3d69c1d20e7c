package settings

import (
	"log/slog"
	"math"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"
)

// kind is how the values of a setting are written.
type kind[T any] struct {
	unit string
	want string
	read func(string) (T, bool)
	list bool
}

var (
	count    = kind[int64]{unit: "NUMBER", want: "a whole number, 0 or more", read: readCount}
	size     = kind[int64]{unit: "BYTES", want: "a number of bytes, such as 65536, 64KiB or 4MiB", read: readSize}
	duration = kind[time.Duration]{unit: "TIME", want: "a time with its unit, such as 500ms, 30s, 168h or 7d", read: readDuration}
	boolean  = kind[bool]{want: "true or false", read: func(s string) (bool, bool) {
		b, err := strconv.ParseBool(s)
		return b, err == nil
	}}
	level = kind[slog.Level]{unit: "LEVEL", want: "debug, info, warn or error", read: func(s string) (l slog.Level, ok bool) {
		return l, !strings.ContainsAny(s, "+-") && l.UnmarshalText([]byte(s)) == nil
	}}

	text     = textOf("TEXT", "text", func(string) bool { return true })
	filled   = textOf("NAME", "text that is not empty", isFilled)
	folder   = textOf("FOLDER", "the name of a folder", isFilled)
	file     = textOf("FILE", "the name of a file", func(string) bool { return true })
	listener = textOf("ADDRESS", "an address such as :8443 or 127.0.0.1:8443, with a port from 0 to 65535", isAddress)
	fifo     = textOf("URL", "the URL of a FIFO queue, which ends in .fifo", func(s string) bool { return isURL(s) && strings.HasSuffix(s, ".fifo") })
	standard = textOf("URL", "the URL of a standard queue: a FIFO queue cannot delay a job", func(s string) bool { return isURL(s) && !strings.HasSuffix(s, ".fifo") })
	link     = textOf("URL", "a URL such as https://relay.example.org, with no more than a host and a path", isURL)
	endpoint = textOf("URL", "a URL such as https://relay.example.org, with no more than a host and a path, and no slash at its end", func(s string) bool { return isURL(s) && !strings.HasSuffix(s, "/") })
	line     = textOf("TEXT", "a line of at most 200 characters", matches(`[^\p{Cc}]{1,200}`))
	pushed   = textOf("TEXT", "a line of at most 256 bytes", func(s string) bool {
		return len(s) <= 256 && utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
	})
	path   = textOf("PATH", "a path such as /v1/ws", matches(`(?:/[A-Za-z0-9._~-]+)+`))
	header = textOf("HEADER", "the name of a header, other than X-Forwarded-For", func(s string) bool {
		return headerName(s) && !strings.EqualFold(s, "X-Forwarded-For")
	})
	headerName = matches(`[A-Za-z0-9-]+`)
	secretARN  = textOf("ARN", "the ARN of a secret, not the secret itself", func(s string) bool { return strings.HasPrefix(s, "arn:") })

	// off reads an address, or "off" for none.
	off = kind[string]{unit: "ADDRESS", want: "an address such as 127.0.0.1:9464, or off", read: func(s string) (string, bool) {
		if s == "off" || s == "" {
			return "", true
		}
		return s, isAddress(s)
	}}
	// domain is read in small letters.
	domain = kind[string]{unit: "DOMAIN", want: "a host name such as relay.example.org, neither an address nor a wildcard", read: func(s string) (string, bool) {
		s = strings.ToLower(s)
		return s, len(s) <= 253 && domainName(s)
	}}
	domainName = matches(`(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?`)
	domains    = listOf("DOMAINS", "host names such as relay.example.org, neither addresses nor wildcards, separated by commas", domain.read)
	networks   = listOf("ADDRESSES", "addresses or CIDRs such as 10.0.0.0/8, separated by commas", readNetwork)
)

func textOf(unit, want string, fits func(string) bool) kind[string] {
	return kind[string]{unit: unit, want: want, read: func(s string) (string, bool) { return s, fits(s) }}
}

// word is one of several words.
func word(words ...string) kind[string] {
	all := strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
	return textOf("WORD", all, func(s string) bool { return strings.Contains(","+strings.Join(words, ",")+",", ","+s+",") })
}

// matches compiles the pattern at its first use: a function that starts needs few of them.
func matches(pattern string) func(string) bool {
	compiled := sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(?:` + pattern + `)$`) })
	return func(s string) bool { return compiled().MatchString(s) }
}

// listOf reads values that are separated by commas.
func listOf[T any](unit, want string, read func(string) (T, bool)) kind[[]T] {
	return kind[[]T]{unit: unit, want: want, list: true, read: func(s string) (list []T, ok bool) {
		for one := range strings.SplitSeq(s, ",") {
			if one = strings.TrimSpace(one); one == "" {
				continue
			}
			v, ok := read(one)
			if !ok {
				return nil, false
			}
			list = append(list, v)
		}
		return list, true
	}}
}

func readCount(s string) (int64, bool) {
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil && n >= 0
}

// readSize reads a number of bytes: 65536, 64KiB, 4MiB.
func readSize(s string) (int64, bool) {
	digits, bits := s, 0
	for i, unit := range []string{"KiB", "MiB", "GiB"} {
		if d, ok := strings.CutSuffix(s, unit); ok {
			digits, bits = d, 10*(i+1)
		}
	}
	n, ok := readCount(strings.TrimSpace(digits))
	return n << bits, ok && n<<bits>>bits == n
}

// readDuration is time.ParseDuration with days in front, which have 24 hours.
func readDuration(s string) (time.Duration, bool) {
	days, rest, found := strings.Cut(s, "d")
	if !found {
		days, rest = "0", s
	}
	const most = uint64(math.MaxInt64 / (24 * time.Hour))
	n, err := strconv.ParseUint(days, 10, 32)
	if err != nil || n > most {
		return 0, false
	}
	d := time.Duration(n) * 24 * time.Hour
	if found && rest == "" {
		return d, true
	}
	more, err := time.ParseDuration(rest)
	return d + more, err == nil && more >= 0 && d <= math.MaxInt64-more
}

func readNetwork(s string) (netip.Prefix, bool) {
	if p, err := netip.ParsePrefix(s); err == nil {
		return p.Masked(), true
	}
	a, err := netip.ParseAddr(s)
	a = a.Unmap()
	return netip.PrefixFrom(a, a.BitLen()), err == nil && a.Zone() == ""
}

func isAddress(s string) bool {
	_, port, err := net.SplitHostPort(s)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	return err == nil
}

func isFilled(s string) bool { return strings.TrimSpace(s) != "" }

func isURL(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Hostname() != "" && u.User == nil && u.RawQuery == "" && u.Fragment == ""
}
