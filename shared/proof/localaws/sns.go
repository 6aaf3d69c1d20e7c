//go:build unix

package localaws

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"net/http"
	"strings"
	"sync"
)

// Platform applications that the functions push to.
const (
	IOSApplication     = "arn:aws:sns:" + Region + ":" + account + ":app/APNS/blindpost"
	AndroidApplication = "arn:aws:sns:" + Region + ":" + account + ":app/GCM/blindpost"
)

// Push is one message to a phone.
type Push struct {
	Token   string
	Android bool
	Payload []byte
}

// snsServer is the part of SNS (Query protocol) that pushes need.
type snsServer struct {
	mu     sync.Mutex
	tokens map[string]string // by endpoint
	pushes []Push
}

var _ http.Handler = (*snsServer)(nil)

type snsResult struct {
	XMLName xml.Name
	Result  snsFields
}

type snsFields struct {
	XMLName     xml.Name
	EndpointARN string `xml:"EndpointArn,omitempty"`
	MessageID   string `xml:"MessageId,omitempty"`
}

// ServeHTTP implements http.Handler.
func (s *snsServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		http.Error(w, "no form", http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var out snsFields
	switch action := r.PostForm.Get("Action"); action {
	case "CreatePlatformEndpoint":
		token := r.PostForm.Get("Token")
		out.EndpointARN = strings.Replace(r.PostForm.Get("PlatformApplicationArn"), ":app/", ":endpoint/", 1) + fmt.Sprintf("/%x", token)
		s.tokens[out.EndpointARN] = token
		s.answer(w, action, out)
	case "Publish":
		var m map[string]string
		token, known := s.tokens[r.PostForm.Get("TargetArn")]
		if !known || json.Unmarshal([]byte(r.PostForm.Get("Message")), &m) != nil || m["default"] == "" {
			http.Error(w, `<ErrorResponse><Error><Code>InvalidParameter</Code></Error></ErrorResponse>`, http.StatusBadRequest)
			return
		}
		_, android := m["GCM"]
		s.pushes = append(s.pushes, Push{Token: token, Android: android, Payload: []byte(m["APNS"] + m["GCM"])})
		out.MessageID = fmt.Sprint(len(s.pushes))
		s.answer(w, action, out)
	case "DeleteEndpoint":
		delete(s.tokens, r.PostForm.Get("EndpointArn"))
		s.answer(w, action, out)
	default:
		http.Error(w, `<ErrorResponse><Error><Code>InvalidAction</Code></Error></ErrorResponse>`, http.StatusBadRequest)
	}
}

func (s *snsServer) answer(w http.ResponseWriter, action string, out snsFields) {
	out.XMLName.Local = action + "Result"
	w.Header().Set("Content-Type", "text/xml")
	_ = xml.NewEncoder(w).Encode(snsResult{XMLName: xml.Name{Local: action + "Response"}, Result: out})
}

func (s *snsServer) all() []Push {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Push(nil), s.pushes...)
}
