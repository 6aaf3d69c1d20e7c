package bolt

import (
	"errors"
	"fmt"
	"time"

	"go.etcd.io/bbolt"
)

// A commit syncs the disk twice: for the data pages, then for the state page that makes
// them current. If the second sync fails, every reader sees the new state, but it may be
// lost in a power failure. Neither answer to the batch would be true: after "failed" the
// items would appear although their writer believes them absent; "done" would promise
// what the disk has not confirmed. A second sync proves nothing, as the kernel may have
// dropped the pages that it could not write. A further commit does prove it: it writes a
// new state page, which refers to the same data pages.

// ErrBroken is the answer of every write after a commit that could neither be confirmed
// nor be rolled back. Only opening the file again shows which state it has.
var ErrBroken = errors.New("the disk did not confirm a commit and has not accepted a write since")

const (
	// confirmEvery and confirmFor are how often and how long the writer tries to confirm
	// such a commit, while its callers wait.
	confirmEvery = 100 * time.Millisecond
	confirmFor   = 10 * time.Second
)

// finish commits a transaction. After an error it finds out whether readers see it.
func (t *Table) finish(tx *bbolt.Tx) error {
	id := tx.ID()
	err := t.commit(tx)
	if err == nil {
		return nil
	}
	_ = rollback(tx, nil)
	visible, errRead := t.reached(id)
	if errRead != nil {
		return errors.Join(err, errRead)
	}
	if !visible {
		return err
	}
	return t.confirm(err)
}

// reached reports whether the state of the file is that of transaction id.
func (t *Table) reached(id int) (bool, error) {
	tx, err := t.db.Begin(false)
	if err != nil {
		return false, fmt.Errorf("failed to read the state of the file: %w", err)
	}
	reached := tx.ID() >= id
	return reached, tx.Rollback()
}

// confirm confirms a commit that is visible in spite of the error reason. If that fails,
// the table is broken.
func (t *Table) confirm(reason error) error {
	for waited := time.Duration(0); ; waited += confirmEvery {
		err := t.commitNothing()
		if err == nil {
			return nil
		}
		if waited >= confirmFor || t.abandoned() {
			t.broken = true
			close(t.failed)
			return errors.Join(ErrBroken, reason, err)
		}
		time.Sleep(confirmEvery)
	}
}

// commitNothing makes a commit that changes nothing.
func (t *Table) commitNothing() error {
	tx, err := t.db.Begin(true)
	if err != nil {
		return err
	}
	if err := tx.Bucket(bucketMeta).Put(keyFormat, []byte{format}); err != nil {
		return rollback(tx, err)
	}
	if err := t.commit(tx); err != nil {
		return rollback(tx, err)
	}
	return nil
}

// Failed is closed when the table is broken. It then answers every write with
// [ErrBroken]; the process should end and open the file again.
func (t *Table) Failed() <-chan struct{} { return t.failed }
