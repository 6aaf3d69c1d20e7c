package sqs

import (
	"encoding/json"
	"errors"
	"fmt"

	"blindpost/shared/queue"
)

// body is the JSON form of a job.
type body struct {
	Kind  string `json:"kind"`
	Group string `json:"group,omitempty"`
	Body  []byte `json:"body,omitempty"` // base64
	At    int64  `json:"at,omitempty"`   // milliseconds since 1970, 0 for now
}

func encodeJob(j queue.Job) (string, error) {
	b, err := json.Marshal(body{Kind: j.Kind, Group: j.Group, Body: j.Body, At: milliseconds(j.At)})
	if err != nil {
		return "", fmt.Errorf("failed to encode a job: %w", err)
	}
	return string(b), nil
}

// decodeJob decodes a job. Its errors do not quote the job.
func decodeJob(s string) (queue.Job, error) {
	var b body
	if err := json.Unmarshal([]byte(s), &b); err != nil {
		return queue.Job{}, errors.New("failed to decode a job: not JSON of the right form")
	}
	if b.Kind == "" {
		return queue.Job{}, errors.New("failed to decode a job: it has no kind")
	}
	return queue.Job{Kind: b.Kind, Group: b.Group, Body: b.Body, At: fromMilliseconds(b.At)}, nil
}
