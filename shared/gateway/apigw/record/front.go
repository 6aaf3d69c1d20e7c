package record

// The stage variables by which a front of our own (package invoke) says in an event
// what API Gateway has no field for. API Gateway itself sends only those that the
// operator has given to the stage.
const (
	// CallbackVariable is Record.Callback.
	CallbackVariable = "blindpostCallback"
	// OversizeVariable is Record.Oversize, in decimal.
	OversizeVariable = "blindpostOversize"
)
