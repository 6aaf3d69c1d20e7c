// Command disconnect is the Lambda function that reports the end of a connection: the $disconnect route.
package main

import "blindpost/functions/internal/wiring"

func main() { wiring.Start(wiring.Disconnect) }
