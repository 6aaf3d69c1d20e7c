// Command sweeper is the Lambda function that runs jobs from the jobs queue, and every few minutes does what is due.
package main

import "blindpost/functions/internal/wiring"

func main() { wiring.Start(wiring.Sweeper) }
