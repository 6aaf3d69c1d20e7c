// Package dynamo implements the contract of package table with one DynamoDB table.
// Package dynamo/layout describes how an item is stored.
//
// # What the DynamoDB table needs
//
// A partition key pk and a sort key sk, both strings; capacity on demand; time to
// live on the attribute ttl. No index, no stream. The rights that it needs are
// dynamodb:GetItem, PutItem, UpdateItem, DeleteItem, Query and ConditionCheckItem.
//
// # Expiry
//
// DynamoDB removes expired items only after hours or days, so every read, every
// condition and every update checks ttl itself. An update must not build upon an expired
// item that is still stored: its condition fails, and a second request then replaces the
// item. That costs two writes, but only for the first update after an expiry.
//
// # Requests
//
// Every operation on one item is a single conditional write, even a transaction of one
// operation, as a transaction costs twice as much. Reads are strongly consistent. A query
// is one request and at most one page; it may read one item more than it returns.
//
// An item is 4 to 13 bytes larger than its content, and DynamoDB counts 19 bytes more for
// each attribute that an update sets, so an item within 1 KB of the limit may be
// ErrTooLarge. Against the limit of 4 MB DynamoDB may also count the whole items after
// the updates of a transaction, not only the updates. An update of several hundred
// attributes is ErrInvalid, because its expression would exceed 4 KB.
//
// # Errors and retries
//
// The retries of the SDK are turned off for every request, because they do not follow
// these rules:
//
// A request that DynamoDB refused for a transient reason (throttling, a conflict with a
// transaction), or that could not be sent for lack of a connection, is retried with
// exponential backoff and jitter; for a few seconds, but not longer than the context
// lasts. Then it fails with table.ErrBusy, and nothing was written.
//
// If the answer to a write was lost (the connection broke, an internal error of
// DynamoDB), the outcome of the write is uncertain. A transaction has a token by which
// DynamoDB recognises it, so it is retried until there is an answer, and done once. A
// single write has no such token. A retry could count twice, restore an item that another
// writer deleted in between, or fail the condition that the first attempt made false, and
// the old item, which Write returns, would be lost in any case. So it is not retried;
// Write returns ErrUncertain, which for the caller is like a crash at this point. It
// never returns ErrBusy then.
//
// On Lambda a connection may have died while the function was frozen. The first write
// over it would be uncertain. The client should therefore close idle connections sooner
// than DynamoDB or the network does (http.Transport.IdleConnTimeout, which goes by the
// wall clock; some 20 seconds).
//
// Errors carry the code of DynamoDB's error but never its message, which may quote keys
// and values.
package dynamo
