package agentknock

import (
	"context"
	"encoding/json"
	"time"
)

// Client is the identity of a client.
type Client struct {
	Relay *Relay
	// AddressID is the address at which it pairs, DeviceID the device it is paired with.
	AddressID string
	DeviceID  string
	ID        string
	Token     string
}

// NewClient makes a client that pairs at an address.
func NewClient(r *Relay, addressID string, at time.Time) *Client {
	return &Client{Relay: r, AddressID: addressID, ID: NewID(at), Token: NewToken()}
}

// PairingPath is the path of the pairing: its exchange has the id of the client.
func (c *Client) PairingPath() string { return "/v1/address/" + c.AddressID + "/request/" + c.ID }

// Path is the path of a paired client.
func (c *Client) Path() string { return "/v1/device/" + c.DeviceID + "/client/" + c.ID }

// DialPairing opens an initial-pairing connection.
func (c *Client) DialPairing(ctx context.Context, o Options) (*Conn, error) {
	return c.Relay.Dial(ctx, ClientRole, c.PairingPath(), c.Token, o)
}

// Dial opens an authenticated connection.
func (c *Client) Dial(ctx context.Context, o Options) (*Conn, error) {
	return c.Relay.Dial(ctx, ClientRole, c.Path(), c.Token, o)
}

// Device is the identity of a device.
type Device struct {
	Relay *Relay
	ID    string
	Token string
}

// NewDevice makes a device that no relay knows yet.
func NewDevice(r *Relay, at time.Time) *Device {
	return &Device{Relay: r, ID: NewID(at), Token: NewToken()}
}

// Path is the path of its connection, and the prefix of its endpoints.
func (d *Device) Path() string { return "/v1/device/" + d.ID }

// Dial opens a device connection.
func (d *Device) Dial(ctx context.Context, o Options) (*Conn, error) {
	return d.Relay.Dial(ctx, DeviceRole, d.Path(), d.Token, o)
}

// Post calls one of the device's endpoints and returns the members of the answer. An
// answer other than 200 is a *Refusal.
func (d *Device) Post(ctx context.Context, endpoint string, in any) (map[string]json.RawMessage, error) {
	return d.Relay.post(ctx, d.Path()+endpoint, d.Token, in)
}

// Claim registers the device at the relay.
func (d *Device) Claim(ctx context.Context) error {
	_, err := d.Relay.Post(ctx, d.Path()+"/claim", map[string]string{"device_token": d.Token})
	return err
}

// SetAddress makes clients find the device at an address.
func (d *Device) SetAddress(ctx context.Context, addressID string) error {
	_, err := d.Post(ctx, "/address", map[string]string{"address_id": addressID})
	return err
}

// SetPairing allows or forbids new initial pairings.
func (d *Device) SetPairing(ctx context.Context, enabled bool) error {
	_, err := d.Post(ctx, "/pairing", map[string]bool{"enabled": enabled})
	return err
}

// SetPush sets the Firebase installation for pushes.
func (d *Device) SetPush(ctx context.Context, fid string) error {
	_, err := d.Post(ctx, "/push", map[string]string{"fid": fid})
	return err
}

// Delete deletes the device at the relay.
func (d *Device) Delete(ctx context.Context) error {
	_, err := d.Post(ctx, "/delete", struct{}{})
	return err
}
