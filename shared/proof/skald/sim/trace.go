package sim

import (
	"encoding/hex"
	"fmt"
	"sort"
	"strings"

	"google.golang.org/protobuf/proto"

	"blindpost/shared/dialect/skald/skaldpb"
	"blindpost/shared/table"
)

// trace is what happened, for a person. It is only written when a schedule that
// has failed runs again.
type trace struct {
	lines []string
	names *strings.Replacer
}

func (s *sim) tracef(format string, args ...any) {
	if s.trace == nil {
		return
	}
	if s.trace.names == nil && len(s.peers) > 0 {
		var pairs []string
		for _, ns := range s.spaces {
			pairs = append(pairs, ns.group, fmt.Sprintf("ns%d", ns.index))
		}
		for _, p := range s.peers {
			pairs = append(pairs, p.ident.hex, p.name, p.ident.hex[:16], p.name)
		}
		s.trace.names = strings.NewReplacer(pairs...)
	}
	line := fmt.Sprintf(format, args...)
	if s.trace.names != nil {
		line = s.trace.names.Replace(line)
	}
	s.trace.lines = append(s.trace.lines, fmt.Sprintf("%4d %s  %s", s.steps, s.now().Format("02 15:04:05"), line))
}

func (s *sim) traceOp(t *task, v verdict, err error) {
	if s.trace == nil {
		return
	}
	result := v.String()
	if err != nil {
		result = err.Error()
	}
	s.tracef("    %v: %s -> %s", t, s.describeOp(t.op), result)
}

func (s *sim) describeOp(o op) string {
	switch o.kind {
	case opWrite:
		parts := make([]string, len(o.ops))
		for i := range o.ops {
			parts[i] = s.describeWrite(&o.ops[i])
		}
		return o.name + " " + strings.Join(parts, "; ")
	case opRead:
		return o.name + " " + o.key.Partition + " " + o.key.Sort
	case opPost:
		var f skaldpb.RelayFrame
		if proto.Unmarshal(o.data, &f) == nil {
			return fmt.Sprintf("post to %s %s", s.connName(string(o.conn)), s.describe(&f))
		}
		return fmt.Sprintf("post to %s", s.connName(string(o.conn)))
	case opClose:
		return fmt.Sprintf("close %s (%s)", s.connName(string(o.conn)), o.note)
	case opStat:
		return "stat " + s.connName(string(o.conn))
	}
	return o.name + " " + o.note
}

func (s *sim) connName(id string) string {
	for _, k := range s.sockList {
		if string(k.id) == id {
			return k.String()
		}
	}
	return id
}

func (s *sim) describeWrite(o *table.Op) string {
	var b strings.Builder
	b.WriteString([...]string{"", "put", "update", "delete", "check"}[o.Action])
	fmt.Fprintf(&b, " %s %s", o.Key.Partition, o.Key.Sort)
	var parts []string
	for name, v := range o.Set {
		parts = append(parts, name+"="+s.describeValue(v))
	}
	for name, n := range o.Add {
		parts = append(parts, fmt.Sprintf("%s%+d", name, n))
	}
	for _, name := range o.Remove {
		parts = append(parts, "-"+name)
	}
	sort.Strings(parts)
	if len(parts) > 0 {
		fmt.Fprintf(&b, " {%s}", strings.Join(parts, " "))
	}
	if len(o.Conds) > 0 {
		b.WriteString(" if")
		for _, c := range o.Conds {
			switch c.Test {
			case table.Exists:
				b.WriteString(" exists")
			case table.Absent:
				b.WriteString(" absent")
			case table.AttrAbsent:
				fmt.Fprintf(&b, " no %s", c.Attr)
			case table.Equal:
				fmt.Fprintf(&b, " %s=%s", c.Attr, s.describeValue(c.Value))
			default:
				fmt.Fprintf(&b, " %s<%s", c.Attr, s.describeValue(c.Value))
			}
		}
	}
	return b.String()
}

func (s *sim) describeValue(v table.Value) string {
	switch v.Kind() {
	case table.KindString:
		return v.Str()
	case table.KindNumber:
		return fmt.Sprint(v.Num())
	case table.KindBytes:
		if m := s.findMessage(v.Raw()); m != nil {
			return m.String()
		}
		var f skaldpb.RelayFrame
		if len(v.Raw()) > 32 && proto.Unmarshal(v.Raw(), &f) == nil && f.GetFrame() != nil {
			return s.describe(&f)
		}
		return fmt.Sprintf("%d bytes", len(v.Raw()))
	}
	return "?"
}

// describe names a frame.
func (s *sim) describe(f *skaldpb.RelayFrame) string {
	name := func(pub []byte) string {
		if p := s.peerOf(pub); p != nil {
			return p.name
		}
		return hex.EncodeToString(pub)
	}
	switch f := f.GetFrame().(type) {
	case *skaldpb.RelayFrame_Message:
		if m := s.findMessage(f.Message.GetCiphertext()); m != nil {
			return m.String()
		}
		return "a message"
	case *skaldpb.RelayFrame_PresenceEvent:
		return fmt.Sprintf("PresenceEvent %s %s", name(f.PresenceEvent.GetPubkey()),
			onOff(f.PresenceEvent.GetStatus() == skaldpb.Status_STATUS_ONLINE))
	case *skaldpb.RelayFrame_PresenceList:
		out := "PresenceList"
		for _, pub := range f.PresenceList.GetOnline() {
			out += " " + name(pub)
		}
		return out
	case *skaldpb.RelayFrame_PeerOffline:
		return "PeerOffline " + name(f.PeerOffline.GetPeer())
	case *skaldpb.RelayFrame_ClientPaired:
		return "ClientPaired " + name(f.ClientPaired.GetClientEd25519Pub())
	case *skaldpb.RelayFrame_Error:
		return "Error " + f.Error.GetCode()
	case *skaldpb.RelayFrame_AuthError:
		return "AuthError " + f.AuthError.GetCode()
	case nil:
		return "an empty frame"
	default:
		full := fmt.Sprintf("%T", f)
		return full[strings.LastIndexByte(full, '_')+1:]
	}
}
