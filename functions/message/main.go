// Command message is the Lambda function that handles what happens on connections, in the order of each: frames,
// their ends, and jobs that belong to one of them. Behind it is the ingress queue, or
// the $default route itself.
package main

import "blindpost/functions/internal/wiring"

func main() { wiring.Start(wiring.Message) }
