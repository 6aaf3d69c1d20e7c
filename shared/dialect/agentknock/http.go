package agentknock

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"blindpost/shared/relay"
)

// maxBody bounds the body of a request: a claim with a chain of certificates is the
// largest.
const maxBody = 64 << 10

// maxRest bounds how many bytes of a refused body are read and discarded.
const maxRest = 1 << 20

// answer is the answer of an endpoint: a JSON object, or an error.
type answer struct {
	status int
	body   map[string]any
	header http.Header
}

func ok(body map[string]any) answer { return answer{status: http.StatusOK, body: body} }

func no(status int, code, message string) answer {
	return answer{status: status, body: map[string]any{"error": code, "message": message}}
}

func tooMany(after time.Duration) answer {
	a := no(http.StatusTooManyRequests, codeRateLimited, "Too many requests.")
	a.body["retryable"], a.body["retry_after_ms"] = true, milliseconds(after)
	a.header = http.Header{"Retry-After": {strconv.FormatInt(int64((after+time.Second-1)/time.Second), 10)}}
	return a
}

// call is a request to an endpoint.
type call struct {
	*http.Request
	device string
	member *relay.Member // nil for claim
	body   bodyMembers
}

// bodyMembers are the members of the body.
type bodyMembers map[string][]byte

// text returns a member that is a string.
func (m bodyMembers) text(name string) (string, bool) { return unquote(m[name]) }

// endpoint handles a call.
type endpoint struct {
	// open says that the device need not authenticate.
	open   bool
	handle func(*Dialect, *call) (answer, error)
}

// endpoints are those under /v1/device/{device_id}.
var endpoints = map[string]endpoint{
	"claim":               {open: true, handle: (*Dialect).serveClaim},
	"address":             {handle: (*Dialect).serveAddress},
	"pairing":             {handle: (*Dialect).servePairing},
	"push":                {handle: (*Dialect).servePush},
	"delete":              {handle: (*Dialect).serveDelete},
	"subscription/status": {handle: (*Dialect).serveSubscription},
}

// ServeHTTP serves the endpoints of devices.
func (d *Dialect) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a, err := d.serve(r)
	if err != nil {
		if r.Context().Err() == nil {
			d.core.Log().ErrorContext(r.Context(), "failed to handle a request", "error", err)
		}
		a = no(http.StatusInternalServerError, "INTERNAL_ERROR", "The relay failed to handle the request.")
		a.body["retryable"] = true
	}
	b, err := json.Marshal(a.body)
	if err != nil {
		b = []byte("{}")
	}
	// A client that is still sending would not read the answer before the connection is
	// closed. Only a client with more than maxRest left is cut off.
	_, _ = io.CopyN(io.Discard, r.Body, maxRest)
	h := w.Header()
	for name, values := range a.header {
		h[name] = values
	}
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(a.status)
	_, _ = w.Write(b) // a peer that is gone needs no answer
}

// splitPath returns the device and the endpoint of a path; false if there is none.
func splitPath(path string) (device string, e endpoint, ok bool) {
	rest, ok := strings.CutPrefix(path, "/v1/device/")
	if !ok {
		return "", endpoint{}, false
	}
	device, verb, ok := strings.Cut(rest, "/")
	if !ok {
		return "", endpoint{}, false
	}
	e, ok = endpoints[verb]
	return device, e, ok
}

func (d *Dialect) serve(r *http.Request) (answer, error) {
	device, e, found := splitPath(pathOf(r))
	media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case !found:
		return no(http.StatusNotFound, "NOT_FOUND", "There is nothing at this path."), nil
	case r.Method != http.MethodPost:
		a := no(http.StatusMethodNotAllowed, "METHOD_NOT_ALLOWED", "This path takes POST.")
		a.header = http.Header{"Allow": {http.MethodPost}}
		return a, nil
	case media != "application/json":
		return no(http.StatusUnsupportedMediaType, "UNSUPPORTED_MEDIA_TYPE", "The body has to be application/json."), nil
	case !validID(device):
		return no(http.StatusBadRequest, "INVALID_REQUEST", "The device id is not a canonical ULID."), nil
	}
	c := &call{Request: r, device: device}
	if !e.open {
		if a, err := d.authenticate(c); err != nil || a.status != 0 {
			return a, err
		}
	}
	if a := c.read(); a.status != 0 {
		return a, nil
	}
	return e.handle(d, c)
}

// authenticate finds the device of a call; an answer with a status refuses it.
func (d *Dialect) authenticate(c *call) (answer, error) {
	token, hasToken := bearer(c.Header.Values("Authorization"))
	if !hasToken {
		return no(refuseToken.status, refuseToken.code, refuseToken.message), nil
	}
	m, err := d.core.GetMember(c.Context(), groupOf(c.device), deviceMember)
	if err != nil {
		return answer{}, err
	}
	if m != nil && sameToken(m.Attr(attrToken).Raw(), token) {
		c.member = m
		return answer{}, nil
	}
	// Only wrong tokens are counted, so that others cannot use up the limit of the device
	// itself.
	if wait, err := d.takeGuess(c, m, wrongTokens); err != nil || wait > 0 {
		return tooMany(wait), err
	}
	if m == nil {
		return no(refuseDevice.status, refuseDevice.code, refuseDevice.message), nil
	}
	return no(refuseToken.status, refuseToken.code, refuseToken.message), nil
}

var errBody = no(http.StatusBadRequest, "INVALID_REQUEST", "The body lacks a member or has one of the wrong type.")

// read reads the body; an answer with a status refuses it.
func (c *call) read() answer {
	b, err := io.ReadAll(io.LimitReader(c.Body, maxBody+1))
	switch {
	case err != nil:
		return no(http.StatusBadRequest, "INVALID_REQUEST", "The body did not arrive.")
	case len(b) > maxBody:
		return no(http.StatusRequestEntityTooLarge, "PAYLOAD_TOO_LARGE", "The body is too large.")
	}
	c.body = make(bodyMembers)
	err = members(b, func(name string, raw []byte) error {
		if _, twice := c.body[name]; twice {
			return errTwice
		}
		c.body[name] = raw
		return nil
	})
	if err != nil {
		return no(http.StatusBadRequest, "INVALID_REQUEST", "The body is not a JSON object.")
	}
	return answer{}
}

func (d *Dialect) serveClaim(c *call) (answer, error) {
	token, has := c.body.text("device_token")
	if !has {
		return errBody, nil
	}
	hash, valid := hashToken(token)
	if !valid {
		return no(http.StatusBadRequest, "INVALID_REQUEST", "The device token is not 32 bytes in unpadded base64url."), nil
	}
	given, valid := parseAttestation(c.body["attestation"])
	if !valid {
		return errBody, nil
	}
	if wait, err := d.takeAddress(c); err != nil || wait > 0 {
		return tooMany(wait), err
	}
	err := d.claim(c.Context(), c.device, hash, func() error { return d.attested(given, c.device, token) })
	var refused *unattested
	switch {
	case errors.As(err, &refused):
		d.core.Log().InfoContext(c.Context(), "claim refused", "device", short(c.device), "reason", refused.Error())
		return no(http.StatusForbidden, refused.code, refused.message()), nil
	case errors.Is(err, errOtherToken):
		return no(http.StatusConflict, "DEVICE_ALREADY_CLAIMED", "The device is claimed with another token."), nil
	case err != nil:
		return answer{}, err
	}
	return ok(map[string]any{"claimed": true, "device_id": c.device}), nil
}

func (d *Dialect) serveAddress(c *call) (answer, error) {
	address, has := c.body.text("address_id")
	if !has || !validAddress(address) {
		return no(http.StatusBadRequest, "INVALID_REQUEST", "The address is not 32 lowercase hexadecimal digits."), nil
	}
	if c.member.Attr(attrAddress).Str() != address { // its own address is no guess
		if wait, err := d.takeGuess(c, c.member, newAddresses); err != nil || wait > 0 {
			return tooMany(wait), err
		}
	}
	switch err := d.setAddress(c.Context(), c.member, address); {
	case errors.Is(err, errAddressTaken):
		return no(http.StatusConflict, "ADDRESS_ALREADY_CLAIMED", "The address belongs to another device."), nil
	case err != nil:
		return gone(err)
	}
	return ok(map[string]any{"address_id": address}), nil
}

// gone answers a call whose device was deleted meanwhile.
func gone(err error) (answer, error) {
	if errors.Is(err, errNoDevice) {
		return no(refuseDevice.status, refuseDevice.code, refuseDevice.message), nil
	}
	return answer{}, err
}

func (d *Dialect) servePairing(c *call) (answer, error) {
	raw := string(c.body["enabled"])
	if raw != "true" && raw != "false" {
		return errBody, nil
	}
	if err := d.setPairing(c.Context(), c.member, raw == "true"); err != nil {
		return gone(err)
	}
	return ok(map[string]any{"pairing_enabled": raw == "true"}), nil
}

// maxFID is the length in bytes of the longest Firebase installation id that is accepted.
// Such ids have 22 characters; this leaves room for registration tokens.
const maxFID = 4096

func (d *Dialect) servePush(c *call) (answer, error) {
	fid, has := c.body.text("fid")
	if !has || fid == "" || len(fid) > maxFID {
		return errBody, nil
	}
	if err := d.setPush(c.Context(), c.member, fid); err != nil {
		return gone(err)
	}
	return ok(map[string]any{"push_registration": pushRegistered}), nil
}

func (d *Dialect) serveDelete(c *call) (answer, error) {
	if err := d.delete(c.Context(), c.member); err != nil {
		return answer{}, err
	}
	return ok(map[string]any{"deleted": true}), nil
}

// serveSubscription answers that the subscription is active: this relay sells none.
func (d *Dialect) serveSubscription(*call) (answer, error) {
	return ok(map[string]any{"active": true}), nil
}
