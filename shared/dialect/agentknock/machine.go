package agentknock

// Phase is the phase of an exchange, as in the specification.
type Phase uint8

// The phases. All but Void are values of the state frame.
const (
	// Void is an exchange whose state is forgotten; only its id is still known to be used.
	Void Phase = iota
	Open
	Closing
	Settled
	Expired
)

var phaseNames = [...]string{"void", "open", "closing", "settled", "expired"}

func (p Phase) String() string { return phaseNames[p] }

// Delivery is the state of one message.
type Delivery uint8

// The states of a message.
const (
	Absent Delivery = iota
	Accepted
	Delivered
	Discarded
)

var deliveryNames = [...]string{"absent", "accepted", "delivered", "discarded"}

func (d Delivery) String() string { return deliveryNames[d] }

// Exchange is the state of one exchange. The zero value is void.
type Exchange struct {
	Phase                         Phase
	Request, Response, Completion Delivery
}

// Event is an event of an exchange.
type Event uint8

// The events. A message is published, then accepted for delivery by its recipient.
const (
	RequestSent Event = iota
	RequestTaken
	ResponseSent
	ResponseTaken
	CompletionSent
	CompletionTaken
	// End is a deadline that passes, or a client that is revoked.
	End
	// Forget is the end of the time for which the state is kept after the end.
	Forget
)

// events is how many there are.
const events = int(Forget) + 1

// Verdict is the effect of an event.
type Verdict uint8

// The verdicts.
const (
	// Changed: the event has changed the state.
	Changed Verdict = iota
	// Repeated: the event came before, or has nothing left to change. It gets the same
	// answer as the first time.
	Repeated
	// Ignored: the event is not possible in this state, and is not answered.
	Ignored
	// Late: the message can no longer be accepted; the exchange goes on without it.
	Late
	// Dead: the exchange has expired, or does not exist.
	Dead
)

// Live reports whether the exchange is open or closing.
func (x Exchange) Live() bool { return x.Phase == Open || x.Phase == Closing }

// Next is the state after an event. It decides about every transition:
//
//	            void        open             closing               settled   expired
//	request     dead        (repeated)       (repeated)            repeated  dead
//	 taken      ignored     req delivered    req delivered         repeated  ignored
//	response    dead        res accepted,    late,                 late,     dead
//	                        req delivered    req delivered         or repeated
//	 taken      ignored     res delivered    ignored               ignored   ignored
//	completion  repeated    closing,         repeated              repeated  comp discarded
//	                        res discarded
//	                        if accepted
//	 taken      ignored     ignored          settled if req        repeated  ignored
//	                                         delivered
//	end         -           expired, what is accepted discarded    -         -
//	forget      -           -                -                     void      void
//
// A request creates the exchange ([Begun]) where there is none, not even a void one;
// that is not an event of an exchange. In closing and settled, a response that was
// delivered is repeated and not late. An event repeats if its message, or its taking,
// has been noted before.
func (x Exchange) Next(e Event) (Exchange, Verdict) {
	switch e {
	case RequestSent:
		if x.Live() || x.Phase == Settled {
			return x, Repeated
		}
		return x, Dead
	case RequestTaken:
		return x.requestTaken()
	case ResponseSent:
		return x.responseSent()
	case ResponseTaken:
		return x.responseTaken()
	case CompletionSent:
		return x.completionSent()
	case CompletionTaken:
		return x.completionTaken()
	case End:
		return x.end()
	case Forget:
		if x.Phase == Settled || x.Phase == Expired {
			return Exchange{}, Changed
		}
	}
	return x, Ignored
}

// Begun is an exchange whose request was just accepted.
func Begun() Exchange { return Exchange{Phase: Open, Request: Accepted} }

func (x Exchange) requestTaken() (Exchange, Verdict) {
	switch {
	case x.Phase == Settled || (x.Live() && x.Request == Delivered):
		return x, Repeated
	case !x.Live():
		return x, Ignored
	}
	x.Request = Delivered
	return x, Changed
}

// responseSent handles a response. A device that responds has the request, so the request
// is delivered too, even if the response is late.
func (x Exchange) responseSent() (Exchange, Verdict) {
	switch x.Phase {
	case Open:
		if x.Response != Absent {
			return x, Repeated
		}
		x.Request, x.Response = Delivered, Accepted
		return x, Changed
	case Closing:
		if x.Response == Delivered {
			return x, Repeated
		}
		x.Request = Delivered
		return x, Late
	case Settled:
		if x.Response == Delivered {
			return x, Repeated
		}
		return x, Late
	}
	return x, Dead
}

func (x Exchange) responseTaken() (Exchange, Verdict) {
	switch {
	case x.Response == Delivered:
		return x, Repeated
	case x.Phase != Open || x.Response != Accepted:
		return x, Ignored // never sent, or discarded
	}
	x.Response = Delivered
	return x, Changed
}

func (x Exchange) completionSent() (Exchange, Verdict) {
	switch x.Phase {
	case Open:
		x.Phase, x.Completion = Closing, Accepted
		if x.Response == Accepted {
			x.Response = Discarded
		}
		return x, Changed
	case Expired:
		if x.Completion == Absent {
			x.Completion = Discarded
			return x, Changed
		}
	}
	return x, Repeated
}

func (x Exchange) completionTaken() (Exchange, Verdict) {
	switch {
	case x.Phase == Settled:
		return x, Repeated
	case x.Phase != Closing || x.Request != Delivered:
		return x, Ignored // it was never sent there
	}
	x.Phase, x.Completion = Settled, Delivered
	return x, Changed
}

func (x Exchange) end() (Exchange, Verdict) {
	if !x.Live() {
		return x, Ignored
	}
	x.Phase = Expired
	for _, d := range []*Delivery{&x.Request, &x.Response, &x.Completion} {
		if *d == Accepted {
			*d = Discarded
		}
	}
	return x, Changed
}
