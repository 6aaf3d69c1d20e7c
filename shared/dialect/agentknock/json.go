package agentknock

import (
	"encoding/json"
	"errors"
	"unicode/utf8"
)

// A reader of JSON objects, because encoding/json does not do what the protocol demands:
// names of members match exactly, values stay as their bytes, the size of the frame is
// the only limit on nesting, and text that is not UTF-8 is refused.

var errNotJSON = errors.New("not a JSON object in UTF-8")

// errTwice says that a known member is there more than once: two readers could use
// different ones.
var errTwice = errors.New("a member is there twice")

// members reads a JSON object and gives its members to take. Raw values are parts of data.
func members(data []byte, take func(name string, raw []byte) error) error {
	if !utf8.Valid(data) {
		return errNotJSON
	}
	s := scanner{b: data}
	s.space()
	if !s.eat('{') {
		return errNotJSON
	}
	s.space()
	for more := !s.eat('}'); more; {
		s.space()
		name, ok := s.text()
		s.space()
		if !ok || !s.eat(':') {
			return errNotJSON
		}
		s.space()
		start := s.i
		if !s.value() {
			return errNotJSON
		}
		if err := take(name, data[start:s.i:s.i]); err != nil {
			return err
		}
		s.space()
		if more = s.eat(','); !more && !s.eat('}') {
			return errNotJSON
		}
	}
	s.space()
	if s.i != len(data) {
		return errNotJSON
	}
	return nil
}

// scanner reads JSON (RFC 8259). Its methods report false where the JSON is invalid.
type scanner struct {
	b []byte
	i int
	// stack has one entry for each value that is open: true for an object.
	stack []bool
}

func (s *scanner) space() {
	for s.i < len(s.b) && (s.b[s.i] == ' ' || s.b[s.i] == '\t' || s.b[s.i] == '\n' || s.b[s.i] == '\r') {
		s.i++
	}
}

func (s *scanner) eat(c byte) bool {
	if s.i < len(s.b) && s.b[s.i] == c {
		s.i++
		return true
	}
	return false
}

// value reads one value, without recursion: a frame can hold 130,000 nested arrays.
func (s *scanner) value() bool {
	s.stack = s.stack[:0]
	for {
		opened, ok := s.begin()
		if !ok {
			return false
		}
		if opened {
			continue
		}
		// A value has ended: close all that ends with it, up to a comma.
		for {
			if len(s.stack) == 0 {
				return true
			}
			s.space()
			object := s.stack[len(s.stack)-1]
			if s.eat(',') {
				s.space()
				if object && !s.key() {
					return false
				}
				break
			}
			if !s.close(object) {
				return false
			}
		}
	}
}

// begin reads a scalar or an empty array or object, or opens one that is not empty.
func (s *scanner) begin() (opened, ok bool) {
	if s.i == len(s.b) {
		return false, false
	}
	switch c := s.b[s.i]; c {
	case '{', '[':
		object := c == '{'
		s.i++
		s.stack = append(s.stack, object)
		s.space()
		if s.close(object) {
			return false, true
		}
		return true, !object || s.key()
	case '"':
		return false, s.str()
	case 't':
		return false, s.word("true")
	case 'f':
		return false, s.word("false")
	case 'n':
		return false, s.word("null")
	default:
		return false, s.number()
	}
}

func (s *scanner) close(object bool) bool {
	end := byte(']')
	if object {
		end = '}'
	}
	if !s.eat(end) {
		return false
	}
	s.stack = s.stack[:len(s.stack)-1]
	return true
}

// key reads the name of a member and the colon, up to its value.
func (s *scanner) key() bool {
	if !s.str() {
		return false
	}
	s.space()
	if !s.eat(':') {
		return false
	}
	s.space()
	return true
}

func (s *scanner) word(w string) bool {
	if len(s.b)-s.i < len(w) || string(s.b[s.i:s.i+len(w)]) != w {
		return false
	}
	s.i += len(w)
	return true
}

func (s *scanner) str() bool {
	if !s.eat('"') {
		return false
	}
	for s.i < len(s.b) {
		c := s.b[s.i]
		s.i++
		switch {
		case c == '"':
			return true
		case c < ' ':
			return false
		case c == '\\':
			if !s.escape() {
				return false
			}
		}
	}
	return false
}

func (s *scanner) escape() bool {
	if s.i == len(s.b) {
		return false
	}
	c := s.b[s.i]
	s.i++
	switch c {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return true
	case 'u':
		for range 4 {
			if s.i == len(s.b) || !isHex(s.b[s.i]) {
				return false
			}
			s.i++
		}
		return true
	}
	return false
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'f'
}

func (s *scanner) number() bool {
	s.eat('-')
	if !s.eat('0') && !s.digits() {
		return false
	}
	if s.eat('.') && !s.digits() {
		return false
	}
	if s.eat('e') || s.eat('E') {
		if !s.eat('+') {
			s.eat('-')
		}
		return s.digits()
	}
	return true
}

// digits reads one or more.
func (s *scanner) digits() bool {
	start := s.i
	for s.i < len(s.b) && s.b[s.i] >= '0' && s.b[s.i] <= '9' {
		s.i++
	}
	return s.i > start
}

// text reads a string and decodes it.
func (s *scanner) text() (string, bool) {
	start := s.i
	if !s.str() {
		return "", false
	}
	return unquote(s.b[start:s.i])
}

// unquote reads a JSON string; false if raw is something else.
func unquote(raw []byte) (string, bool) {
	var v string
	if len(raw) == 0 || raw[0] != '"' || json.Unmarshal(raw, &v) != nil {
		return "", false
	}
	return v, true
}
