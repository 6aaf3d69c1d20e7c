//go:build unix

package localaws

import (
	"context"
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"blindpost/shared/proof/sqstest"
)

// maxQueueRequest is the largest request that is read: SQS takes messages of a megabyte
// at most.
const maxQueueRequest = 2 << 20

// sqsServer is the wire protocol of SQS (AWS JSON 1.0) in front of sqstest.
type sqsServer struct {
	queues *sqstest.Server
	// url is the URL of a queue as sqstest knows it, by its name.
	url map[string]string
}

var _ http.Handler = (*sqsServer)(nil)

// ServeHTTP implements http.Handler.
func (s *sqsServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxQueueRequest))
	if err != nil {
		awsError(w, http.StatusBadRequest, "com.amazonaws.sqs#InvalidParameterValue")
		return
	}
	var out any
	switch action := strings.TrimPrefix(r.Header.Get("X-Amz-Target"), "AmazonSQS."); action {
	case "SendMessage":
		out, err = s.send(r.Context(), body)
	case "ChangeMessageVisibilityBatch":
		out, err = s.postpone(r.Context(), body)
	default:
		awsError(w, http.StatusBadRequest, "com.amazon.coral.service#UnknownOperationException")
		return
	}
	var missing *types.QueueDoesNotExist
	var contents *types.InvalidMessageContents
	switch {
	case errors.As(err, &missing):
		awsError(w, http.StatusBadRequest, "com.amazonaws.sqs#QueueDoesNotExist")
	case errors.As(err, &contents):
		awsError(w, http.StatusBadRequest, "com.amazonaws.sqs#InvalidMessageContents")
	case errors.Is(err, errUnavailable):
		awsError(w, http.StatusServiceUnavailable, "com.amazonaws.sqs#ServiceUnavailable")
	case err != nil:
		awsError(w, http.StatusBadRequest, "com.amazonaws.sqs#InvalidParameterValue")
	default:
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		_ = json.NewEncoder(w).Encode(out)
	}
}

// errUnavailable is for sqstest.Server.Fail: SQS does not answer as it should.
var errUnavailable = errors.New("service is unavailable")

func (s *sqsServer) known(url string) *string {
	return aws.String(s.url[url[strings.LastIndex(url, "/")+1:]])
}

func (s *sqsServer) send(ctx context.Context, body []byte) (any, error) {
	var in struct {
		QueueURL        string `json:"QueueUrl"`
		MessageBody     string
		Group           *string `json:"MessageGroupId"`
		DeduplicationID *string `json:"MessageDeduplicationId"`
		DelaySeconds    int32
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	out, err := s.queues.SendMessage(ctx, &awssqs.SendMessageInput{
		QueueUrl: s.known(in.QueueURL), MessageBody: &in.MessageBody, DelaySeconds: in.DelaySeconds,
		MessageGroupId: in.Group, MessageDeduplicationId: in.DeduplicationID,
	})
	if err != nil {
		return nil, err
	}
	sum := md5.Sum([]byte(in.MessageBody)) // the client checks it
	return map[string]string{"MessageId": aws.ToString(out.MessageId), "MD5OfMessageBody": hex.EncodeToString(sum[:])}, nil
}

func (s *sqsServer) postpone(ctx context.Context, body []byte) (any, error) {
	var in struct {
		QueueURL string `json:"QueueUrl"`
		Entries  []struct {
			ID                string `json:"Id"`
			ReceiptHandle     string
			VisibilityTimeout int32
		}
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	q := &awssqs.ChangeMessageVisibilityBatchInput{QueueUrl: s.known(in.QueueURL)}
	for _, e := range in.Entries {
		q.Entries = append(q.Entries, types.ChangeMessageVisibilityBatchRequestEntry{
			Id: &e.ID, ReceiptHandle: &e.ReceiptHandle, VisibilityTimeout: e.VisibilityTimeout,
		})
	}
	res, err := s.queues.ChangeMessageVisibilityBatch(ctx, q)
	if err != nil {
		return nil, err
	}
	out := struct {
		Successful []map[string]string
		Failed     []map[string]any
	}{[]map[string]string{}, []map[string]any{}}
	for _, e := range res.Successful {
		out.Successful = append(out.Successful, map[string]string{"Id": *e.Id})
	}
	for _, e := range res.Failed {
		out.Failed = append(out.Failed, map[string]any{"Id": *e.Id, "Code": "ReceiptHandleIsInvalid", "SenderFault": true})
	}
	return out, nil
}

// awsError is an error of the JSON protocols of AWS.
func awsError(w http.ResponseWriter, status int, kind string) {
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"__type": kind, "message": "as the house was told"})
}
