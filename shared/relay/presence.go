package relay

import "context"

// Announce tells the other members of a group whether a member is online. It
// looks again after it has told them, and tells them once more if that has
// changed meanwhile, so that the last word is true. The caller holds the
// member; then it does not change.
func (r *Relay) Announce(ctx context.Context, group, key string) error {
	return r.announceChange(ctx, group, key, nil)
}

// announceChange is Announce where the others know already that the member is as in
// told (nil: they know nothing): they hear only of a change.
func (r *Relay) announceChange(ctx context.Context, group, key string, told *Member) error {
	d := r.dialectOfGroup(group)
	if d == nil {
		return nil
	}
	for range maxTries {
		m, err := r.GetMember(ctx, group, key)
		if err != nil {
			return err
		}
		switch {
		case m == nil && (told == nil || told.Conn == ""):
			return nil
		case m == nil: // removed since it was known as online
			m = told
			m.Conn = ""
		case told != nil && (m.Conn != "") == (told.Conn != ""):
			return nil
		}
		if err := r.announce(ctx, d, m, m.Conn != ""); err != nil {
			return err
		}
		told = m
	}
	return nil
}

// announceAgain follows an admission whose first run has joined and died, and whose
// second run was refused. The first run may have told the others that the member is
// online after they were told that it is offline, and died before it looked again. The
// caller does not hold the member.
func (r *Relay) announceAgain(ctx context.Context, c *Conn) error {
	release, err := r.Hold(ctx, c.Group, c.Member)
	if err != nil {
		return err
	}
	defer release()
	m, err := r.GetMember(ctx, c.Group, c.Member)
	if err != nil || m != nil && m.Conn == c.ID {
		return err // when the connection ends, the others are told
	}
	var told *Member
	if m == nil { // removed since
		root, err := r.Root(ctx, c.Group)
		if err != nil || root == nil {
			return err
		}
		told = &Member{Group: c.Group, Key: c.Member, Generation: root.Generation, Conn: c.ID}
	}
	return r.announceChange(ctx, c.Group, c.Member, told)
}

func (r *Relay) announce(ctx context.Context, d Dialect, m *Member, online bool) error {
	f, ok := d.Presence(m.Key, online)
	if !ok {
		return nil
	}
	members, err := r.Members(ctx, m.Group, m.Generation)
	if err != nil {
		return err
	}
	for _, other := range members {
		if other.Key == m.Key || other.Conn == "" {
			continue
		}
		again, err := r.notify(ctx, other, f)
		if again {
			err = r.Notify(ctx, m.Group, other.Key, f)
		}
		if err != nil {
			// A failure with one member must not keep the rest from being told.
			r.log.WarnContext(ctx, "failed to announce presence", "error", err)
		}
	}
	return nil
}
