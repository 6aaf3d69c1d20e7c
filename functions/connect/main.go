// Command connect is the Lambda function that admits a connection: the $connect route.
package main

import "blindpost/functions/internal/wiring"

func main() { wiring.Start(wiring.Connect) }
