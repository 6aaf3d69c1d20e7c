// Command sweeper is the Lambda function that runs jobs from the jobs queue, and does what is due when the schedule calls it.
package main

import "blindpost/functions/internal/wiring"

func main() { wiring.Start(wiring.Sweeper) }
