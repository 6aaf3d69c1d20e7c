// Command message is the Lambda function that handles the events of each connection in their order: frames, its end, and
// jobs that belong to it. They come from the ingress queue, or straight from the $default route.
package main

import "blindpost/functions/internal/wiring"

func main() { wiring.Start(wiring.Message) }
