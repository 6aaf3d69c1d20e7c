package record

// Stage variables in the events of our own fronts (package invoke), for values that have
// no field in the events of API Gateway. API Gateway itself sends only the variables
// that the operator has set on the stage.
const (
	// CallbackVariable is Record.Callback.
	CallbackVariable = "blindpostCallback"
	// OversizeVariable is Record.Oversize, in decimal.
	OversizeVariable = "blindpostOversize"
)
