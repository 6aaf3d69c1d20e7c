package sim

// kept are seeds that have failed once, each with what it has found. What they do
// changes with the relay, so each bug has a test of its own too.
var kept = []uint64{
	99001970, 426006768, // a replaced connection of a boat could not be closed, and stayed
	325003279,     // nobody closed it because the function that was to had died
	1796087532352, // a late word came under the next lease, whose handler took its own for the last one
	1796088862739, // a boat was told of a viewer and to forget it in one frame

	// In these the model was wrong.
	123003947, // a token expired while sessions were looked at
	527009293, // what was under way from a viewer came after the boat was told to forget it
	298,       // who looks for a hello was held up until it had come
}
