// Package costrun counts what a day on AWS takes: the functions, over stand-ins of the
// AWS services that count what AWS charges for, serve real peers for a whole day. The
// day takes seconds, because it is one of a testing/synctest bubble; the services take
// as long to answer as in AWS (see assumed_test.go), so the time that is charged for
// functions is counted too.
//
// Package cost prices the counts; counts that are kept there are compared with a new
// run by the test of this package.
package costrun
