package bolt

import (
	"errors"
	"fmt"
	"time"

	"go.etcd.io/bbolt"
)

// A commit has two steps that wait for the disk: the pages, then the page that
// makes them the current state. When the second wait fails, the state is
// there for every reader, and may or may not be there after a loss of power.
// Neither answer to the batch would be true: "failed" has items appear which
// their writer believes absent, "done" promises what the disk has not confirmed.
// Waiting for the disk again proves nothing either, as the kernel may have
// dropped what it could not write. A further commit does: it writes a state page
// of its own, which has the same pages below it.

// ErrBroken is the answer of every write after a commit that could neither be
// confirmed nor be taken back. Opening the file anew brings certainty.
var ErrBroken = errors.New("the disk has not confirmed a commit, and does not answer since")

const (
	// confirmEvery and confirmFor say how often and for how long it is tried to
	// settle such a commit, while its callers wait.
	confirmEvery = 100 * time.Millisecond
	confirmFor   = 10 * time.Second
)

// finish commits a transaction and finds out whether it is there.
func (t *Table) finish(tx *bbolt.Tx) error {
	id := tx.ID()
	err := t.commit(tx)
	if err == nil {
		return nil
	}
	_ = rollback(tx, nil)
	there, errLook := t.reached(id)
	if errLook != nil {
		return errors.Join(err, errLook)
	}
	if !there {
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

// confirm settles a commit that is there in spite of the error reason. If that
// does not work the table is broken.
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

// commitNothing makes a commit that leaves everything as it is.
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

// Failed is closed when the table is broken: it answers every write with
// [ErrBroken], and its owner should end, so that it is opened anew.
func (t *Table) Failed() <-chan struct{} { return t.failed }
