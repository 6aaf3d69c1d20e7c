// Package dynamo is a table in DynamoDB: the contract of package table, with one
// DynamoDB table below. Package dynamo/layout says how an item is stored.
//
// # What it asks of the table
//
// A partition key pk and a sort key sk, both strings; capacity on demand; time to
// live on the attribute ttl. No index, no stream. The rights that it needs are
// dynamodb:GetItem, PutItem, UpdateItem, DeleteItem, Query and ConditionCheckItem.
//
// # Expiry
//
// DynamoDB removes expired items only after hours or days, so every read, every
// condition and every update looks at ttl itself. An update of an item that has
// expired and is still there must not build upon what is left of it: it is refused
// by its condition, and a second request then replaces the item. That costs two
// writes, but only for the first update after an expiry.
//
// # Requests
//
// Whatever touches one item is a single conditional write, also a transaction of
// one operation, as a transaction costs twice as much. Reads are strongly
// consistent. A query is one request and at most one page; it may read one item
// more than it returns.
//
// An item weighs 4 to 13 bytes more than its content, and DynamoDB counts 19 bytes
// more for each attribute that an update sets, so an item within 1 KB of the limit
// may be ErrTooLarge. It may also count what the updates of a transaction leave
// behind, and not only what they carry, against the limit of 4 MB. An update of
// several hundred attributes is ErrInvalid: the expression that says it would
// exceed 4 KB.
//
// # Errors, and what is tried again
//
// The client's own retries are turned off for every request, as they know nothing
// of the following.
//
// What DynamoDB refused for a reason that passes (throttling, a conflict with a
// transaction), or what could not be sent for want of a connection, is tried again
// after a pause that doubles and is drawn at random; for a few seconds, but not
// longer than the context lasts. Then it is table.ErrBusy, and nothing was written.
//
// When the answer to a write got lost (the connection broke, an internal error of
// DynamoDB), the write may have been done or not. A transaction carries a token by
// which DynamoDB recognises it, so it is sent again until there is an answer, and
// done once. A single write has no such token. Sending it again could count twice,
// bring back what another writer deleted in between, or fail the condition that its
// first try made false, and the old item, which Write returns, would be lost at any
// rate. So it is not sent again; Write returns ErrUncertain, and the caller is
// where it would be after a crash at this point. It is never ErrBusy.
//
// On Lambda a connection may have died while the function was frozen, and then the
// first write over it is uncertain. A client whose idle connections live shorter
// than those of DynamoDB and of what lies between (http.Transport.IdleConnTimeout,
// which goes by the wall clock; some 20 seconds) does not try them.
//
// Errors carry the code of DynamoDB's error but never its message, as that may
// quote keys and values.
package dynamo
